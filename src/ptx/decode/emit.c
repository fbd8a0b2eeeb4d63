/* Shared by all parts of the decoder: adds a code, or refuses an instruction. See decode.h. */
#include "base/number.h"
#include "ptx/decode/decode.h"

#include <stdarg.h>
#include <stdio.h>

static void fail(ptx_decoder *d, mr_code code, const char *verdict, const char *format,
                 va_list args) {
    if (d->failure) return;
    char why[512], what[256], where[256];
    mr_number_formatv(why, sizeof why, format, args);
    const ptx_tree *tree = &d->module->tree;
    d->failure = mr_fail(code, "%s: `%s` in `%s` %s: %s",
                         ptx_place_text(tree, &d->instruction->place, where, sizeof where),
                         ptx_instruction_text(tree, d->function, d->instruction, what, sizeof what),
                         d->function->name, verdict, why);
}

void ptx_refuse(ptx_decoder *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail(d, MR_CODE_NOT_SUPPORTED, "is not covered", format, args);
    va_end(args);
}

void ptx_reject(ptx_decoder *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail(d, MR_CODE_INVALID_ARGUMENT, "is wrong", format, args);
    va_end(args);
}

ptx_code *ptx_emit(ptx_decoder *d, ptx_run *run, ptx_place_of to, ptx_place_of a, ptx_place_of b,
                   ptx_place_of c) {
    ptx_code code = {.run = run,
                     .guard = d->guard,
                     .guard_flip = d->guard_flip,
                     .d = to,
                     .a = a,
                     .b = b,
                     .c = c,
                     .source = d->instruction};
    if (!mr_vec_push(&d->codes, code)) {
        if (!d->failure) d->failure = mr_no_memory("to decode PTX");
        return NULL;
    }
    return &d->codes.items[d->codes.count - 1];
}

void ptx_fix_later(ptx_decoder *d, ptx_fix_kind kind, uint32_t instruction) {
    ptx_fix fix = {.code = (uint32_t)d->codes.count - 1, .kind = kind, .instruction = instruction};
    if (!mr_vec_push(&d->fixes, fix) && !d->failure) {
        d->failure = mr_no_memory("to decode PTX");
    }
}
