/* Memory and launches for tests of the PTX interpreter: device addresses are made up, so a test finds each that is not
 * translated. Include it after cmocka's headers are set up, as here. */
#ifndef PTX_FIXTURE_H
#define PTX_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "ptx/run/lanes.h"
#include "ptx/module.h"
#include "ptx/ptx.h"

typedef struct {
    uint64_t first;
    size_t bytes;
    char *host;
    const char *name;
    uint8_t *unset;
    bool read_only;
    int told; /* calls of will_write */
} piece;

typedef struct {
    mr_ptx_module *module;
    piece *pieces;
    int piece_count, piece_capacity;
    uint64_t next;
    uint64_t *variables; /* addresses, 0: not of global memory */
    mr_buffer printed;
    mr_buffer unset; /* what was told of reads of bytes that nothing has written, a line each */
    mr_ptx_launch launch; /* what a test sets stays until the next begin() */
    unsigned char params[4096];
    uint32_t param_at, param_index;
    int interruptions; /* interrupted() says true after so many questions; negative: never */
} device;

static inline bool find_piece(void *context, uint64_t address, mr_ptx_range *out) {
    device *d = context;
    for (int i = 0; i < d->piece_count; i++) {
        piece *p = &d->pieces[i];
        if (address < p->first || address >= p->first + p->bytes) continue;
        *out = (mr_ptx_range){.first = p->first,
                              .end = p->first + p->bytes,
                              .host = p->host,
                              .owner = p,
                              .read_only = p->read_only,
                              .unset = p->unset};
        return true;
    }
    return false;
}
static inline void tell_piece(void *context, const mr_ptx_range *range) {
    (void)context;
    ((piece *)range->owner)->told++;
}
static inline void describe_address(void *context, uint64_t address, uint64_t meant, char *out,
                                    size_t size) {
    device *d = context;
    (void)meant;
    out[0] = 0;
    for (int i = 0; i < d->piece_count; i++) {
        piece *p = &d->pieces[i];
        if (address >= p->first && address < p->first + p->bytes) {
            snprintf(out, size, "byte %d of %s", (int)(address - p->first), p->name);
        } else if (address >= p->first + p->bytes && address < p->first + p->bytes + 4096) {
            snprintf(out, size, "%d bytes past the end of %s", (int)(address - p->first - p->bytes),
                     p->name);
        }
    }
}
static inline void keep_print(void *context, const char *text, size_t size) {
    mr_buffer_add(&((device *)context)->printed, text, size);
}
static inline void keep_unset(void *context, const mr_ptx_unset_read *read) {
    mr_buffer_printf(&((device *)context)->unset, "%s\n", read->text);
}
static inline bool is_interrupted(void *context) {
    device *d = context;
    return d->interruptions >= 0 && d->interruptions-- == 0;
}

static inline void expect_none(mr_status status) {
    if (status) {
        printf("%s: %s\n", mr_code_text(status->code), status->message);
        mr_error_destroy(status);
        fail();
    }
}

/* `bytes` of memory on the device, set to `byte`; returns its address. */
static inline uint64_t give(device *d, const char *name, size_t bytes, int byte, char **out_host) {
    if (d->piece_count == d->piece_capacity) {
        d->piece_capacity = 2 * d->piece_capacity + 16;
        d->pieces = realloc(d->pieces, (size_t)d->piece_capacity * sizeof *d->pieces);
        assert_non_null(d->pieces);
    }
    piece *p = &d->pieces[d->piece_count++];
    /* The least that is aligned, so that a sanitizer sees each byte beyond. */
    *p = (piece){.first = d->next, .bytes = bytes, .name = name, .host = malloc(bytes ? bytes : 1)};
    memset(p->host, byte, bytes);
    d->next += (bytes + 8191) / 4096 * 4096;
    if (out_host) *out_host = p->host;
    return p->first;
}
/* As above, with bits that say that nothing was written. */
static inline uint64_t give_unset(device *d, const char *name, size_t bytes, char **out_host) {
    uint64_t address = give(d, name, bytes, 0, out_host);
    piece *p = &d->pieces[d->piece_count - 1];
    p->unset = malloc(bytes / 8 + 1);
    memset(p->unset, 0xff, bytes / 8 + 1);
    return address;
}

static inline void load_ptx(device *d, const char *text) {
    memset(d, 0, sizeof *d);
    d->next = 0x700000000;
    d->interruptions = -1;
    expect_none(mr_ptx_module_load(text, strlen(text), "test.ptx", &d->module));
    const ptx_tree *tree = mr_ptx_module_tree(d->module);
    d->variables = calloc(tree->variable_count + 1, sizeof *d->variables);
    assert_non_null(d->variables);
    for (uint32_t i = 0; i < tree->variable_count; i++) {
        const ptx_variable *v = &tree->variables[i];
        if ((v->space != PTX_GLOBAL && v->space != PTX_CONST) || v->bytes == 0) continue;
        d->variables[i] = give(d, v->name, v->bytes, 0, NULL);
        d->pieces[d->piece_count - 1].read_only = v->space == PTX_CONST;
    }
    int at = 0;
    for (uint32_t i = 0; i < tree->variable_count; i++) {
        if (!d->variables[i]) continue;
        mr_ptx_variable_init(d->module, i, d->variables, d->pieces[at++].host);
    }
}

static inline void unload(device *d) {
    for (int i = 0; i < d->piece_count; i++) {
        free(d->pieces[i].host);
        free(d->pieces[i].unset);
    }
    free(d->pieces);
    free(d->variables);
    mr_buffer_free(&d->printed);
    mr_buffer_free(&d->unset);
    mr_ptx_module_release(d->module);
}

/* A launch of `kernel` in one dimension; further numbers may be set in d->launch before run(). */
static inline void begin(device *d, const char *kernel, uint32_t grid, uint32_t block) {
    d->launch =
        (mr_ptx_launch){.kernel = mr_ptx_kernel_find(d->module, kernel),
                        .grid = {grid, 1, 1},
                        .block = {block, 1, 1},
                        .params = d->params,
                        .variables = d->variables,
                        .memory = {.context = d,
                                   .find = find_piece,
                                   .will_write = tell_piece,
                                   .describe = describe_address},
                        .device = {.sm_count = 4, .max_shared = 48 * 1024, .clock_hz = 1000000000},
                        .check = true,
                        .unset_read = keep_unset,
                        .print = keep_print,
                        .interrupted = is_interrupted,
                        .context = d};
    assert_non_null(d->launch.kernel);
    memset(d->params, 0, sizeof d->params);
    d->param_index = 0;
}
static inline void pass(device *d, const void *value, size_t bytes) {
    assert_true(d->param_index < d->launch.kernel->param_count);
    const mr_ptx_param *p = &d->launch.kernel->params[d->param_index++];
    assert_int_equal(p->bytes, bytes);
    memcpy(d->params + p->offset, value, bytes);
}
#define PASS(d, type, value) pass(d, &(type){value}, sizeof(type))

static inline uint64_t blocks_of(const device *d) {
    return (uint64_t)d->launch.grid[0] * d->launch.grid[1] * d->launch.grid[2];
}
static inline void run(device *d) {
    assert_int_equal(d->param_index, d->launch.kernel->param_count);
    expect_none(mr_ptx_run(&d->launch, 0, blocks_of(d)));
}
/* The last launch must have told `part` of something that it read and nothing had written. */
static inline void expect_unset(device *d, const char *part) {
    if (!d->unset.data || !strstr(d->unset.data, part)) {
        printf("%s\nwanted: %s\n", d->unset.data ? d->unset.data : "(nothing)", part);
        fail();
    }
    mr_buffer_free(&d->unset);
}
/* The launch must fail so; the message must hold `part`. */
static inline void run_fails(device *d, mr_code code, const char *part) {
    mr_status status = mr_ptx_run(&d->launch, 0, blocks_of(d));
    assert_non_null(status);
    if (status->code != code || !strstr(status->message, part)) {
        printf("%s: %s\nwanted: %s: %s\n", mr_code_text(status->code), status->message,
               mr_code_text(code), part);
        mr_error_destroy(status);
        fail();
    }
    if (getenv("PTX_MESSAGES")) printf("%s\n", status->message);
    mr_error_destroy(status);
}

#endif
