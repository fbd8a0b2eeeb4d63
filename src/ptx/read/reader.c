/* Tokens and errors of the reader. An error stops reading: no part of the reader recovers. */
#include "ptx/read/reader.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* ---- errors */

/* Compilers write .file at the end of the text, so the name of a file may stand after the error. */
static void find_file_names(ptx_reader *r) {
    if (r->has_files) return;
    r->has_files = true;
    while (r->token.kind != PTX_TOKEN_END) {
        bool is_file = ptx_at_dot(r, "file");
        ptx_lex(&r->lexer, &r->token);
        if (is_file) mr_error_destroy(ptx_read_file(r));
    }
}

static const char *file_name(const ptx_reader *r, uint32_t index) {
    return index < r->files.count && r->files.items[index] ? r->files.items[index] : "";
}

mr_status ptx_fail(ptx_reader *r, uint32_t line, mr_code code, const char *format, ...) {
    char message[600];
    va_list args;
    va_start(args, format);
    mr_text_formatv(message, sizeof message, format, args);
    va_end(args);
    /* Reading .file on the way can fail, too, and would come back here. */
    if (r->failed) return mr_fail(code, "%s", message);
    r->failed = true;
    find_file_names(r);
    const char *file = file_name(r, r->place.outer_file);
    if (*file && r->place.outer_line)
        return mr_fail(code, "%s:%u: %s (line %u of the PTX)", file, (unsigned)r->place.outer_line,
                       message, (unsigned)line);
    return mr_fail(code, "%s, line %u of the PTX: %s", r->name, (unsigned)line, message);
}

mr_status ptx_wrong(ptx_reader *r, const char *format, ...) {
    char message[600];
    va_list args;
    va_start(args, format);
    mr_text_formatv(message, sizeof message, format, args);
    va_end(args);
    return ptx_fail(r, r->token.line, MR_CODE_INVALID_ARGUMENT, "%s", message);
}

mr_status ptx_pardon(ptx_reader *r, mr_status error, const char **problem) {
    if (error->code != MR_CODE_NOT_SUPPORTED) return error;
    if (!*problem) *problem = ptx_copy(r, error->message, strlen(error->message) + 1, 1);
    mr_error_destroy(error);
    r->failed = false;
    return *problem ? MR_OK : ptx_no_memory(r);
}

mr_status ptx_no_memory(ptx_reader *r) {
    return mr_no_memory("to read %s", r->name);
}

const char *ptx_shown(const char *text, size_t size, char out[PTX_SHOWN]) {
    char copy[41];
    size_t kept = size < sizeof copy ? size : sizeof copy - 4, n = 0;
    for (; n < kept; n++) copy[n] = text[n] ? text[n] : ' ';
    copy[n] = '\0';
    mr_buffer shown = {0};
    mr_text_put(&shown, copy);
    snprintf(out, PTX_SHOWN, "`%.90s%s`", shown.data ? shown.data : "", kept < size ? "..." : "");
    mr_buffer_free(&shown);
    return out;
}

mr_status ptx_expected(ptx_reader *r, const char *what) {
    char shown[PTX_SHOWN];
    const ptx_token *t = &r->token;
    if (t->kind == PTX_TOKEN_END) return ptx_wrong(r, "expected %s, but the text ends here", what);
    bool dotted = t->kind == PTX_TOKEN_DOT;
    return ptx_wrong(r, "expected %s, found %s", what,
                     ptx_shown(t->text - dotted, t->size + dotted, shown));
}

/* ---- tokens */

mr_status ptx_advance(ptx_reader *r) {
    ptx_lex(&r->lexer, &r->token);
    if (r->token.kind != PTX_TOKEN_BAD) return MR_OK;
    char shown[PTX_SHOWN];
    if (!r->token.size) return ptx_wrong(r, "%s", r->token.problem);
    return ptx_wrong(r, "%s: %s", ptx_shown(r->token.text, r->token.size, shown), r->token.problem);
}

bool ptx_at_dot(const ptx_reader *r, const char *word) {
    return r->token.kind == PTX_TOKEN_DOT && r->token.size == strlen(word) &&
           memcmp(r->token.text, word, r->token.size) == 0;
}

mr_status ptx_accept(ptx_reader *r, uint16_t mark, bool *out_taken) {
    *out_taken = ptx_at(r, mark);
    return *out_taken ? ptx_advance(r) : MR_OK;
}

mr_status ptx_accept_dot(ptx_reader *r, const char *word, bool *out_taken) {
    *out_taken = ptx_at_dot(r, word);
    return *out_taken ? ptx_advance(r) : MR_OK;
}

mr_status ptx_expect(ptx_reader *r, uint16_t mark, const char *where) {
    if (ptx_at(r, mark)) return ptx_advance(r);
    char what[100];
    snprintf(what, sizeof what, "`%c` %s", mark, where);
    return ptx_expected(r, what);
}

mr_status ptx_take_name(ptx_reader *r, const char *what, ptx_name *out_name) {
    if (r->token.kind != PTX_TOKEN_WORD) return ptx_expected(r, what);
    *out_name = ptx_names_intern(&r->names, r->token.text, r->token.size);
    if (*out_name == PTX_NO_NAME) return ptx_no_memory(r);
    return ptx_advance(r);
}

mr_status ptx_take_count(ptx_reader *r, const char *what, uint64_t most, uint64_t *out) {
    if (r->token.kind != PTX_TOKEN_INTEGER) return ptx_expected(r, what);
    if (r->token.bits > most)
        return ptx_wrong(r, "expected %s of at most %llu, found %llu", what,
                         (unsigned long long)most, (unsigned long long)r->token.bits);
    *out = r->token.bits;
    return ptx_advance(r);
}

/* ---- memory */

void *ptx_alloc(ptx_reader *r, size_t count, size_t size) {
    return mr_region_alloc(r->arena, count ? count * size : 1);
}

const void *ptx_copy(ptx_reader *r, const void *items, size_t count, size_t size) {
    void *copy = ptx_alloc(r, count, size);
    if (copy && count) memcpy(copy, items, count * size);
    return copy;
}

/* ---- files */

mr_status ptx_file_index(ptx_reader *r, uint64_t number, uint32_t *out_index) {
    const uint32_t *known = mr_map_find(&r->file_indices, number);
    *out_index = known ? *known : (uint32_t)r->files.count;
    if (known) return MR_OK;
    if (!mr_vec_push(&r->files, NULL) || !mr_map_put(&r->file_indices, number, *out_index))
        return ptx_no_memory(r);
    return MR_OK;
}

mr_status ptx_read_file(ptx_reader *r) {
    uint64_t number = 0;
    uint32_t index = 0;
    MR_TRY(ptx_take_count(r, "the number of a file", UINT32_MAX, &number));
    if (r->token.kind != PTX_TOKEN_STRING) return ptx_expected(r, "the name of the file in quotes");
    MR_TRY(ptx_file_index(r, number, &index));
    char *copy = ptx_alloc(r, r->token.size + 1, 1);
    if (!copy) return ptx_no_memory(r);
    memcpy(copy, r->token.text, r->token.size);
    r->files.items[index] = copy;
    MR_TRY(ptx_advance(r));
    for (bool more = true; more;) { /* time and size of the file */
        MR_TRY(ptx_accept(r, ',', &more));
        if (more) MR_TRY(ptx_take_count(r, "a number", UINT64_MAX, &number));
    }
    return MR_OK;
}
