/* Reads CUDA C++ without a compiler: see scan.h. A misreading may only cost a compilation or a worse message, so each
 * doubt counts as "depends". */
#include "compile/text/scan.h"

#include <ctype.h>
#include <string.h>

/* ---------------------------------------------------------------- comments and literals */

typedef struct {
    const char *at, *end;
    mr_buffer *out;
    bool is_include; /* the line is an #include: its name stays */
} reader;

static void put(reader *r, char c) {
    mr_buffer_add(r->out, &c, 1);
}

static bool is_word(int c) {
    return isalnum(c) || c == '_' || c >= 0x80;
}

static bool looking_at(const reader *r, const char *word) {
    size_t length = strlen(word);
    return (size_t)(r->end - r->at) >= length && memcmp(r->at, word, length) == 0;
}

static void skip_comment(reader *r, const char *last) {
    r->at += 2;
    while (r->at < r->end && !looking_at(r, last)) {
        if (*r->at == '\n') put(r, '\n');
        r->at++;
    }
    put(r, ' ');
    if (*last != '\n' && r->at < r->end) r->at += strlen(last);
}

/* R"name( ... )name" */
static bool skip_raw_literal(reader *r) {
    char last[20];
    if (!looking_at(r, "\"")) return false;
    size_t room = (size_t)(r->end - r->at) - 1, length = 0;
    while (length < room && length < 17 && r->at[1 + length] != '(') length++;
    if (length == room || length == 17) return false;
    last[0] = ')';
    memcpy(last + 1, r->at + 1, length);
    last[length + 1] = '"';
    last[length + 2] = '\0';
    r->at += length + 2;
    while (r->at < r->end && !looking_at(r, last)) {
        if (*r->at == '\n') put(r, '\n');
        r->at++;
    }
    if (r->at < r->end) r->at += strlen(last);
    put(r, '"');
    put(r, '"');
    return true;
}

static void skip_literal(reader *r) {
    char quote = *r->at++;
    put(r, quote);
    while (r->at < r->end && *r->at != quote && *r->at != '\n') {
        if (*r->at == '\\' && r->at + 1 < r->end && !r->is_include) r->at++;
        else if (r->is_include) put(r, *r->at);
        r->at++;
    }
    put(r, quote);
    if (r->at < r->end && *r->at == quote) r->at++;
}

/* A word as a whole, so that the quote in 1'000 begins no literal and R" is seen as a prefix. */
static void copy_word(reader *r) {
    const char *start = r->at;
    bool is_number = isdigit((unsigned char)*start);
    while (r->at < r->end &&
           (is_word((unsigned char)*r->at) || (is_number && *r->at == '\'' && r->at + 1 < r->end &&
                                               isalnum((unsigned char)r->at[1]))))
        r->at++;
    size_t length = (size_t)(r->at - start);
    mr_buffer_add(r->out, start, length);
    if (length >= 7 && memcmp(start, "include", 7) == 0) r->is_include = true;
    if (length <= 3 && start[length - 1] == 'R') skip_raw_literal(r);
}

static bool skip_joint(reader *r) {
    if (*r->at != '\\') return false;
    const char *next = r->at + 1;
    if (next < r->end && *next == '\r') next++;
    if (next >= r->end || *next != '\n') return false;
    r->at = next + 1;
    return true;
}

void mr_scan_code(const char *text, size_t size, mr_buffer *out) {
    reader r = {.at = text, .end = text + size, .out = out};
    while (r.at < r.end) {
        if (skip_joint(&r)) continue;
        if (looking_at(&r, "//")) skip_comment(&r, "\n");
        else if (looking_at(&r, "/*")) skip_comment(&r, "*/");
        else if (*r.at == '"' || *r.at == '\'') skip_literal(&r);
        else if (is_word((unsigned char)*r.at)) copy_word(&r);
        else {
            if (*r.at == '\n') r.is_include = false;
            put(&r, *r.at++);
        }
    }
    mr_buffer_add(out, "", 0);
}

/* ---------------------------------------------------------------- words */

/* The next place of a whole word; NULL: none. */
static const char *find_word(const char *code, const char *word) {
    size_t length = strlen(word);
    for (const char *at = code; (at = strstr(at, word)) != NULL; at += length)
        if ((at == code || !is_word((unsigned char)at[-1])) && !is_word((unsigned char)at[length]))
            return at;
    return NULL;
}

/* #line, or # and a number. */
static bool has_line_directive(const char *code) {
    for (const char *at = code; (at = strpbrk(at, "#:")) != NULL;) {
        at++;
        at += strspn(at, " \t");
        if (isdigit((unsigned char)*at) && at[-1] != ':') return true;
        if (strncmp(at, "line", 4) == 0 && !is_word((unsigned char)at[4])) return true;
    }
    return false;
}

bool mr_scan_uses_place(const char *code) {
    static const char *const words[] = {"__LINE__",         "__FILE__",
                                        "__FILE_NAME__",    "__BASE_FILE__",
                                        "__COUNTER__",      "__PRETTY_FUNCTION__",
                                        "assert",           "source_location",
                                        "__builtin_LINE",   "__builtin_FILE",
                                        "__builtin_COLUMN", "__builtin_FILE_NAME",
                                        "__TIME__",         "__DATE__",
                                        "__TIMESTAMP__",    "__builtin_source_location"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (find_word(code, words[i])) return true;
    return has_line_directive(code);
}

static const char *skip_blanks(const char *at) {
    while (*at == ' ' || *at == '\t') at++;
    return at;
}

bool mr_scan_include(const char **at, mr_include *out, bool *out_unknown) {
    for (const char *next = *at; (next = strstr(next, "include")) != NULL;) {
        bool is_start = next == *at || !is_word((unsigned char)next[-1]);
        const char *name = next + strlen("include");
        if (strncmp(name, "_next", 5) == 0) name += 5;
        next = name;
        if (!is_start) {
            /* __has_include: the answer may change without a change of any file that is read. */
            *out_unknown = true;
            continue;
        }
        if (is_word((unsigned char)*name)) continue;
        name = skip_blanks(name);
        char last = *name == '<' ? '>' : '"';
        const char *end =
            *name == '<' || *name == '"' ? strpbrk(name + 1, last == '>' ? ">\n" : "\"\n") : NULL;
        if (!end || *end != last) {
            *out_unknown = true;
            continue;
        }
        *out = (mr_include){
            .name = name + 1, .size = (size_t)(end - name - 1), .is_quoted = last == '"'};
        *at = end + 1;
        return true;
    }
    return false;
}

/* ---------------------------------------------------------------- kernels */

/* After the parenthesis that closes the one at `at`. */
static const char *skip_parentheses(const char *at) {
    int depth = 0;
    do {
        if (*at == '(') depth++;
        if (*at == ')') depth--;
        if (!*at) return at;
        at++;
    } while (depth > 0);
    return at;
}

static bool is_attribute(const char *word, size_t length) {
    static const char *const attributes[] = {"__launch_bounds__", "__attribute__",  "__maxnreg__",
                                             "__cluster_dims__",  "__block_size__", "__align__"};
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (strlen(attributes[i]) == length && memcmp(word, attributes[i], length) == 0)
            return true;
    return false;
}

/* The word in front of the first parenthesis of the declaration that follows. */
static const char *find_kernel_name(const char *at, size_t *out_length) {
    for (;;) {
        at += strcspn(at, "(;{}");
        if (*at != '(') return NULL;
        const char *end = at, *start;
        while (isspace((unsigned char)end[-1])) end--;
        for (start = end; is_word((unsigned char)start[-1]);) start--;
        *out_length = (size_t)(end - start);
        if (*out_length == 0) return NULL;
        if (!is_attribute(start, *out_length)) return start;
        at = skip_parentheses(at);
    }
}

/* Does "template" stand in the declaration that `at` belongs to? */
static bool is_template(const char *code, const char *at) {
    while (at > code && !strchr(";}", at[-1])) at--;
    const char *found = find_word(at, "template"), *kernel = find_word(at, "__global__");
    return found && kernel && found < kernel;
}

static bool is_listed(const mr_buffer *list, const char *name, size_t length) {
    char word[128];
    if (!list->data || length >= sizeof word) return false;
    memcpy(word, name, length);
    word[length] = '\0';
    return find_word(list->data, word) != NULL;
}

void mr_scan_kernels(const char *code, mr_buffer *out) {
    static const char qualifier[] = "__global__";
    for (const char *at = code; (at = find_word(at, qualifier)) != NULL;) {
        size_t length;
        const char *name = find_kernel_name(at + strlen(qualifier), &length);
        if (name && !is_listed(out, name, length))
            mr_buffer_printf(out, "%s%.*s%s", out->size ? ", " : "", (int)length, name,
                             is_template(code, at) ? "<...>" : "");
        at += strlen(qualifier);
    }
}
