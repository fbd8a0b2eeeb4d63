/* Is it an entry? See entry.h. */
#include "repl/entry.h"

#include <lauxlib.h>
#include <string.h>

#include "repl/nesting.h"

/* Lua's message for a text that ends too early ends so. */
static bool is_too_short(lua_State *L, int status) {
    static const char mark[] = "<eof>";
    size_t length;
    if (status != LUA_ERRSYNTAX) return false;
    const char *message = lua_tolstring(L, -1, &length);
    return length >= sizeof mark - 1 && strcmp(message + length - (sizeof mark - 1), mark) == 0;
}

/* The pieces of a text as the compiler reads them. */
typedef struct {
    const char *text[2];
    size_t size[2];
    int next;
} pieces;

static const char *next_piece(lua_State *L, void *context, size_t *out_size) {
    pieces *p = context;
    (void)L;
    while (p->next < 2 && !p->size[p->next]) p->next++;
    if (p->next == 2) return NULL;
    *out_size = p->size[p->next];
    return p->text[p->next++];
}

static mr_entry_verdict try_with(lua_State *L, const char *before, const char *text, size_t size) {
    pieces p = {.text = {before, text}, .size = {strlen(before), size}};
    int status = lua_load(L, next_piece, &p, "=mr", "t");
    mr_entry_verdict found = status == LUA_OK          ? MR_ENTRY_WHOLE
                             : is_too_short(L, status) ? MR_ENTRY_TOO_SHORT
                                                       : MR_ENTRY_WRONG;
    lua_pop(L, 1);
    return found;
}

static mr_entry_verdict judge_one(lua_State *L, const char *text, size_t size) {
    size_t blank = 0;
    while (blank < size && (text[blank] == ' ' || text[blank] == '\t')) blank++;
    char mark = blank < size ? text[blank] : '\0', next = blank + 1 < size ? text[blank + 1] : '\0';
    if (mark == '?' || (mark == ':' && next != ':'))
        return memchr(text, '\n', size) ? MR_ENTRY_WRONG : MR_ENTRY_WHOLE;
    if (mark == '=') /* `= x`, as in older versions of Lua */
        return try_with(L, "return ", text + blank + 1, size - blank - 1);
    mr_entry_verdict as_value = try_with(L, "return ", text, size);
    if (as_value == MR_ENTRY_WHOLE) return MR_ENTRY_WHOLE;
    mr_entry_verdict as_statement = try_with(L, "", text, size);
    return as_statement == MR_ENTRY_WRONG ? as_value : as_statement;
}

static size_t line_size(const char *text, size_t size) {
    const char *end = memchr(text, '\n', size);
    return end ? (size_t)(end - text) + 1 : size;
}

/* Lines are added until Lua takes them. Within a block or brackets it is not asked. */
static size_t shortest(lua_State *L, const char *text, size_t size) {
    mr_nesting nesting = {0};
    mr_entry_verdict verdict = MR_ENTRY_TOO_SHORT;
    size_t used = 0;
    while (used < size && verdict == MR_ENTRY_TOO_SHORT) {
        size_t length = line_size(text + used, size - used), end = text[used + length - 1] == '\n';
        mr_nesting_add(&nesting, text + used, length - end);
        used += length;
        if (used == size || !mr_nesting_is_open(&nesting)) verdict = judge_one(L, text, used - end);
    }
    return verdict == MR_ENTRY_WHOLE ? used : 0;
}

/* The first entry of a row of entries; 0: it is not a row. */
static size_t first_of_row(lua_State *L, const char *text, size_t size) {
    size_t first = 0;
    for (size_t at = 0; at < size;) {
        size_t length = shortest(L, text + at, size - at);
        if (!length) return 0;
        if (!first) first = length;
        at += length;
    }
    return first;
}

/* `for i in range(3): f(i)`: Lua waits for `do`. */
static bool has_python_body(const char *text, size_t size) {
    static const char body[] = "): ", begin[] = " do";
    return memmem(text, size, body, sizeof body - 1) &&
           !memmem(text, size, begin, sizeof begin - 1);
}

/* `for i in range(3):`, alone on its line: Lua waits for the name of a method, but its author for a hint. */
static bool is_python_block(const char *text, size_t size) {
    static const char *const words[] = {"for", "while", "if", "try"};
    size_t first = 0, end = size;
    while (first < size && (text[first] == ' ' || text[first] == '\t')) first++;
    while (end > first && (text[end - 1] == ' ' || text[end - 1] == '\n')) end--;
    if (end == first || memchr(text + first, '\n', end - first)) return false;
    if (text[end - 1] != ':' && !has_python_body(text + first, end - first)) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (end - first > length && memcmp(text + first, words[i], length) == 0 &&
            strchr(" (:", text[first + length]))
            return true;
    }
    return false;
}

/* `x = 5` and below it `x` is not a chunk of Lua, as it could go on; it is two entries. */
mr_entry_verdict mr_entry_judge(lua_State *L, const char *text, size_t size) {
    mr_entry_verdict verdict = judge_one(L, text, size);
    if (verdict == MR_ENTRY_TOO_SHORT && is_python_block(text, size)) return MR_ENTRY_WRONG;
    if (verdict != MR_ENTRY_TOO_SHORT || !memchr(text, '\n', size)) return verdict;
    size_t first = first_of_row(L, text, size);
    return first && first < size ? MR_ENTRY_WHOLE : verdict;
}

size_t mr_entry_first(lua_State *L, const char *text, size_t size) {
    if (!memchr(text, '\n', size) || judge_one(L, text, size) == MR_ENTRY_WHOLE) return size;
    size_t first = first_of_row(L, text, size);
    return first ? first : size;
}

/* ---- copied sessions */

static size_t blank_length(const char *line, size_t size) {
    size_t at = 0;
    while (at < size && (line[at] == ' ' || line[at] == '\t')) at++;
    return at;
}

/* The number and the state of a prompt, as far as they are there: ":7", " [3 pending at 0.1 ms]". */
static size_t skip_details(const char *line, size_t size, size_t at) {
    if (at < size && line[at] == ':') {
        size_t digits = ++at;
        while (at < size && line[at] >= '0' && line[at] <= '9') at++;
        if (at == digits) return size;
    }
    if (at + 1 < size && line[at] == ' ' && line[at + 1] == '[')
        while (at < size && line[at] != '>') at++;
    return at;
}

/* Returns the length of the prompt at the beginning of the line: "mr:7> ", "mr:7 [3 pending at 0.1 ms]> ", and "mr> ",
 * as documents write it. 0: there is none. */
static size_t prompt_length(const char *line, size_t size) {
    size_t from = blank_length(line, size);
    if (size - from < 2 || memcmp(line + from, "mr", 2) != 0) return 0;
    size_t at = skip_details(line, size, from + 2);
    if (at >= size || line[at] != '>') return 0;
    if (++at < size && line[at] == ' ') return at + 1;
    return at == from + 3 && at < size && line[at] != '\n' ? 0 : at; /* `mr>1` is Lua */
}

size_t mr_entry_more_length(const char *line, size_t size) {
    size_t from = blank_length(line, size), left = size - from;
    if (left < 3 || memcmp(line + from, "..>", 3) != 0) return 0;
    return left > 3 && line[from + 3] == ' ' ? from + 4 : from + 3;
}

static bool begins_with_prompt(const char *text, size_t size) {
    size_t at = 0;
    while (at < size && strchr(" \t\n", text[at])) at++;
    at -= at && text[at - 1] != '\n' ? 1 : 0;
    return prompt_length(text + at, size - at) || mr_entry_more_length(text + at, size - at);
}

static bool has_prompt(const char *text, size_t size) {
    for (size_t at = 0; at < size; at += line_size(text + at, size - at))
        if (prompt_length(text + at, line_size(text + at, size - at))) return true;
    return false;
}

/* Text in front of the first prompt was there before the session, such as the banner. */
bool mr_entry_is_session(lua_State *L, const char *text, size_t size) {
    if (begins_with_prompt(text, size)) return true;
    return has_prompt(text, size) && judge_one(L, text, size) != MR_ENTRY_WHOLE;
}

/* Ends the entry that begins at `from`; one without a text is dropped. */
static size_t end_entry(mr_buffer *out, size_t from) {
    while (out->size > from && out->data[out->size - 1] == '\n') out->size--;
    if (out->size > from) mr_buffer_add(out, "", 1);
    return out->size;
}

/* The lines after a prompt belong to the entry until that is whole; what follows is its answer. */
void mr_entry_from_session(lua_State *L, const char *text, size_t size, mr_buffer *out) {
    size_t entry = out->size; /* the beginning of the entry that is read */
    bool is_open = false;
    for (size_t at = 0, length; at < size; at += length) {
        length = line_size(text + at, size - at);
        size_t mark = prompt_length(text + at, length);
        size_t more = mark ? 0 : mr_entry_more_length(text + at, length);
        if (mark) entry = end_entry(out, entry);
        else if (!is_open && !more) continue;
        mr_buffer_add(out, text + at + mark + more, length - mark - more);
        if (out->failed) luaL_error(L, "not enough memory");
        is_open = judge_one(L, out->data + entry, out->size - entry) == MR_ENTRY_TOO_SHORT;
    }
    end_entry(out, entry);
    if (out->failed) luaL_error(L, "not enough memory");
}
