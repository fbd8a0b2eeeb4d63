/* One compilation as a value of the cache: see entry.h.
 *
 * The place of the text in the user's file is usually no part of the key. The value says for which place it was made,
 * and on the way out its `.loc` lines are moved. So an edit elsewhere in a script compiles nothing again. */
#include "compile/cache/entry.h"

#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "compile/text/include.h"
#include "compile/text/messages.h"
#include "compile/text/ptx.h"

/* ---------------------------------------------------------------- the key */

/* With its length, so that no two lists of texts give the same bytes. */
static void add(mr_hash *hash, const void *data, size_t size) {
    uint64_t length = size;
    mr_hash_add(hash, &length, sizeof length);
    mr_hash_add(hash, data, size);
}

static void add_text(mr_hash *hash, const char *text) {
    add(hash, text, strlen(text));
}

static void add_number(mr_hash *hash, int number) {
    add(hash, &number, sizeof number);
}

static void add_list(mr_hash *hash, const char *const *list, int count) {
    add_number(hash, count);
    for (int i = 0; i < count; i++) add_text(hash, list[i]);
}

static void add_headers(mr_hash *hash) {
    for (const mr_embedded *file = mr_embedded_files; file->name; file++)
        if (strncmp(file->name, MR_COMPILE_HEADERS, strlen(MR_COMPILE_HEADERS)) == 0)
            add(hash, &file->hash, sizeof file->hash);
}

bool mr_entry_key(const mr_compile_job *job, const char *compiler, mr_cache_key *out) {
    const mr_compile_source *source = job->source;
    mr_dependencies needed;
    mr_hash hash;
    mr_include_collect(job, &needed);
    mr_hash_begin(&hash);
    add_text(&hash, MR_VERSION);
    add_text(&hash, compiler);
    add_headers(&hash);
    add_number(&hash, job->architecture);
    add_list(&hash, source->options, source->option_count);
    add_list(&hash, source->names, source->name_count);
    add(&hash, source->text, source->size);
    add(&hash, needed.contents.data, needed.contents.size);
    add_text(&hash, needed.uses_place ? job->file : "");
    add_number(&hash, needed.uses_place ? job->line : 0);
    mr_hash_end(&hash, out->bytes);
    mr_buffer_free(&needed.contents);
    return !needed.is_unknown;
}

/* ---------------------------------------------------------------- the value */

static void put(mr_buffer *out, const char *data, size_t size) {
    mr_buffer_printf(out, "%zu\n", size);
    mr_buffer_add(out, data, size);
}

static void put_text(mr_buffer *out, const char *text) {
    put(out, text, strlen(text));
}

void mr_entry_write(const mr_compile_job *job, const mr_compiled *compiled, mr_buffer *out) {
    put_text(out, compiled->compiler);
    put_text(out, job->file);
    mr_buffer_printf(out, "%d\n%d\n", job->line, compiled->entry_count);
    for (int i = 0; i < compiled->entry_count; i++) put_text(out, compiled->entries[i]);
    put_text(out, compiled->log ? compiled->log : "");
    put(out, compiled->ptx, compiled->size);
}

typedef struct {
    const char *at, *end;
    bool failed;
} reader;

static size_t take_number(reader *r) {
    size_t number = 0;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && number < (size_t)1 << 40)
        number = number * 10 + (size_t)(*r->at++ - '0');
    if (r->at == r->end || *r->at++ != '\n') r->failed = true;
    return r->failed ? 0 : number;
}

static char *take_text(reader *r, size_t *out_size) {
    size_t size = take_number(r);
    if (r->failed || size > (size_t)(r->end - r->at)) {
        r->failed = true;
        return NULL;
    }
    char *text = malloc(size + 1);
    if (!text) r->failed = true;
    else {
        memcpy(text, r->at, size);
        text[size] = '\0';
        r->at += size;
        *out_size = size;
    }
    return text;
}

/* To the place of the job. */
static bool move(const mr_compile_job *job, const char *old_file, int old_line, mr_compiled *out) {
    int lines = job->line - old_line;
    if (lines == 0 && strcmp(job->file, old_file) == 0) return true;
    mr_buffer ptx = {.data = out->ptx, .size = out->size, .capacity = out->size + 1};
    mr_ptx_move(&ptx, old_file, job->file, lines);
    out->ptx = ptx.data;
    out->size = ptx.size;
    if (!ptx.failed && out->log) {
        char *moved = mr_messages_move(out->log, old_file, job->file, lines);
        free(out->log);
        out->log = moved;
        return moved != NULL;
    }
    return !ptx.failed;
}

bool mr_entry_read(const mr_compile_job *job, const mr_buffer *entry, mr_compiled *out) {
    reader r = {.at = entry->data, .end = entry->data + entry->size};
    size_t size;
    *out = (mr_compiled){.from_cache = true};
    char *compiler = take_text(&r, &size), *file = take_text(&r, &size);
    int line = (int)take_number(&r), count = (int)take_number(&r);
    if (count != job->source->name_count) r.failed = true;
    if (!r.failed) out->entries = calloc((size_t)count + 1, sizeof *out->entries);
    if (!out->entries) r.failed = true;
    while (!r.failed && out->entry_count < count)
        out->entries[out->entry_count++] = take_text(&r, &size);
    if (!r.failed) out->log = take_text(&r, &size);
    if (!r.failed) out->ptx = take_text(&r, &out->size);
    if (!r.failed && !*out->log) {
        free(out->log);
        out->log = NULL;
    }
    if (!r.failed) mr_compile_set_name(out->compiler, sizeof out->compiler, compiler);
    bool is_whole = !r.failed && r.at == r.end && move(job, file, line, out);
    free(compiler);
    free(file);
    if (!is_whole) mr_compiled_free(out);
    return is_whole;
}
