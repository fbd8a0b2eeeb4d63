/* Directives with source locations, and directives that the virtual GPU ignores.
 *
 * `.loc 2 84 3, function_name f, inlined_at 1 20 3` names a line of inlined code and the place of the call. Where the
 * call itself was inlined, an earlier .loc with an inlined_at of its own has named its place. So each such place is
 * remembered with its outermost call, and one look gives the outermost call of any depth.
 *
 * Only nvcc and NVRTC write inlined_at. clang names a line of a header and no call; there the last line before it that
 * is of the function's own file counts as the call. */
#include <string.h>

#include "ptx/read/reader.h"

typedef struct {
    uint32_t file;
    uint64_t line, column;
} location;

static mr_status read_location(ptx_reader *r, location *out) {
    uint64_t number;
    MR_TRY(ptx_take_count(r, "the number of a file", UINT32_MAX, &number));
    MR_TRY(ptx_file_index(r, number, &out->file));
    MR_TRY(ptx_take_count(r, "the number of a line", INT32_MAX, &out->line));
    return ptx_take_count(r, "the number of a column", INT32_MAX, &out->column);
}

static uint64_t key_of(const location *l) {
    return ((uint64_t)l->file << 44) + (l->line << 12) + l->column;
}

/* Sets the outer place of a place that was inlined at `call`. */
static mr_status set_outer(ptx_reader *r, const location *call, ptx_place *place) {
    const uint32_t *caller = mr_map_find(&r->inlined, key_of(call));
    place->outer_file = call->file;
    place->outer_line = (uint32_t)call->line;
    place->outer_column = (uint32_t)call->column;
    if (!caller || *caller == UINT32_MAX) return MR_OK;
    place->outer_file = r->callers.items[*caller].outer_file;
    place->outer_line = r->callers.items[*caller].outer_line;
    place->outer_column = r->callers.items[*caller].outer_column;
    return MR_OK;
}

static mr_status remember(ptx_reader *r, const location *at, const ptx_place *place) {
    uint32_t caller = (uint32_t)r->callers.count;
    return mr_vec_push(&r->callers, *place) && mr_map_put(&r->inlined, key_of(at), caller)
               ? MR_OK
               : ptx_no_memory(r);
}

/* The same place is now code that was not inlined. */
static void forget(ptx_reader *r, const location *at) {
    uint32_t *caller = mr_map_find(&r->inlined, key_of(at));
    if (caller) *caller = UINT32_MAX;
}

static bool at_word(const ptx_reader *r, const char *word) {
    return r->token.kind == PTX_TOKEN_WORD && r->token.size == strlen(word) &&
           memcmp(r->token.text, word, r->token.size) == 0;
}

/* function_name LABEL or function_name LABEL + 16 */
static mr_status skip_function_name(ptx_reader *r) {
    ptx_name name;
    int64_t offset;
    MR_TRY(ptx_advance(r));
    MR_TRY(ptx_take_name(r, "the label of a function's name", &name));
    return ptx_read_offset(r, &offset);
}

mr_status ptx_read_loc(ptx_reader *r) {
    location at, call;
    bool inlined = false, more;
    MR_TRY(read_location(r, &at));
    for (;;) {
        MR_TRY(ptx_accept(r, ',', &more));
        if (!more) break;
        if (at_word(r, "function_name")) {
            MR_TRY(skip_function_name(r));
        } else if (at_word(r, "inlined_at")) {
            inlined = true;
            MR_TRY(ptx_advance(r));
            MR_TRY(read_location(r, &call));
        } else {
            return ptx_expected(r, "`function_name` or `inlined_at`");
        }
    }
    /* Line 0: the compiler knows no line. The line before is nearer to the truth than none. */
    if (!at.line && r->place.line) return MR_OK;
    r->place = (ptx_place){.file = at.file, .line = (uint32_t)at.line};
    r->place.outer_file = r->place.file;
    r->place.outer_line = r->place.line;
    r->place.outer_column = (uint32_t)at.column;
    const ptx_place *own = &r->body.first_place;
    if (!own->line || (at.file == own->file && !inlined)) r->body.own_place = r->place;
    if (!own->line) r->body.first_place = r->place;
    if (inlined) {
        MR_TRY(set_outer(r, &call, &r->place));
        MR_TRY(remember(r, &at, &r->place));
        return MR_OK;
    }
    forget(r, &at);
    if (r->depth && at.file != own->file) {
        r->place.outer_file = r->body.own_place.file;
        r->place.outer_line = r->body.own_place.line;
        r->place.outer_column = r->body.own_place.outer_column;
    }
    return MR_OK;
}

mr_status ptx_read_pragma(ptx_reader *r) {
    for (bool more = true; more;) {
        if (r->token.kind != PTX_TOKEN_STRING) return ptx_expected(r, "a string after `.pragma`");
        MR_TRY(ptx_advance(r));
        MR_TRY(ptx_accept(r, ',', &more));
    }
    return ptx_expect(r, ';', "after `.pragma`");
}

/* Sections hold debugging information. What stands in them need not be PTX's tokens. */
mr_status ptx_skip_section(ptx_reader *r) {
    uint32_t line = r->token.line;
    uint64_t open = 0;
    for (;; ptx_lex(&r->lexer, &r->token)) {
        if (r->token.kind == PTX_TOKEN_END)
            return ptx_fail(r, line, MR_CODE_INVALID_ARGUMENT, "the section has no closing `}`");
        if (ptx_at(r, '{')) open++;
        else if (ptx_at(r, '}') && open <= 1) return ptx_advance(r);
        else if (ptx_at(r, '}')) open--;
    }
}
