/* Operations whose values depend only on the position: fill, arange, linspace, eye, and (with random.c)
 * the random ones. Also memset. */
#include "ops/body.h"

#include <string.h>

mr_status mr_generator_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    if (first >= end) return MR_OK;
    const mr_generator *generator = command->u.op.row->body;
    const mr_tensor *t = command->operands[0].tensor;
    mr_dtype dtype = generator->computed((mr_dtype)t->dtype);
    mr_output out;
    mr_output_init(&out, t, dtype);
    if (out.direct) {
        generator->fill(command, dtype, first, end - first, mr_output_begin(&out, first));
        return MR_OK;
    }
    for (int64_t i = first; i < end; i += MR_BLOCK) {
        int64_t n = end - i < MR_BLOCK ? end - i : MR_BLOCK;
        generator->fill(command, dtype, i, n, mr_output_begin(&out, i));
        mr_output_end(&out, i, n);
    }
    return MR_OK;
}

void mr_generator_constants(const mr_command *command, mr_constants *out_constants) {
    const mr_generator *generator = command->u.op.row->body;
    mr_params params = mr_params_of(command);
    *out_constants = (mr_constants){0};
    if (generator->constants)
        generator->constants(&params, command->operands[0].tensor, out_constants);
}

static mr_dtype same(mr_dtype out) {
    return out;
}

/* Integers are computed as i64, floats and what is rounded from them as f64. */
static mr_dtype wide(mr_dtype out) {
    return mr_dtype_category(out) == 2 ? MR_F64 : MR_I64;
}

/* ------------------------------------------------------------------------- fill, zero */

MR_CLONES static void repeat2(uint16_t *to, uint16_t v, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = v;
}

MR_CLONES static void repeat4(uint32_t *to, uint32_t v, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = v;
}

MR_CLONES static void repeat8(uint64_t *to, uint64_t v, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = v;
}

static void fill_value(mr_dtype dtype, mr_scalar value, int64_t n, void *block) {
    union {
        uint8_t u1;
        uint16_t u2;
        uint32_t u4;
        uint64_t u8;
    } bits;
    mr_dtype_store(dtype, &bits, value);
    switch (mr_dtype_size(dtype)) {
    case 1: memset(block, bits.u1, (size_t)n); break;
    case 2: repeat2(block, bits.u2, n); break;
    case 4: repeat4(block, bits.u4, n); break;
    default: repeat8(block, bits.u8, n); break;
    }
}

static void fill(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n, void *block) {
    (void)first;
    fill_value(dtype, mr_params_of(command).fill.value, n, block);
}

static mr_status prepare_fill(const char *name, mr_dtype out, const mr_scalar numbers[2],
                              mr_params *params) {
    (void)name, (void)out;
    params->fill.value = numbers[0];
    return MR_OK;
}
const mr_generator mr_gen_fill = {
    .computed = same, .fill = fill, .prepare = prepare_fill, .is_uniform = true};

static void zero(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n, void *block) {
    (void)command, (void)first;
    memset(block, 0, (size_t)n * mr_dtype_size(dtype));
}
/* fill.value is 0 too: a call gives none. */
const mr_generator mr_gen_zero = {.computed = same, .fill = zero, .is_uniform = true};

/* ------------------------------------------------------------------------- sequences */

static void arange_constants(const mr_params *params, const mr_tensor *out, mr_constants *c) {
    const mr_scalar numbers[] = {params->fill.arange.start, params->fill.arange.step};
    (void)out;
    for (int i = 0; i < 2; i++) {
        c->real[i] = numbers[i].f;
        mr_dtype_store(MR_I64, &c->integer[i], numbers[i]);
    }
}

static mr_status prepare_arange(const char *name, mr_dtype out, const mr_scalar numbers[2],
                                mr_params *params) {
    (void)name, (void)out;
    params->fill.arange.start = numbers[0];
    params->fill.arange.step = numbers[1];
    return MR_OK;
}

static void arange(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n,
                   void *block) {
    mr_constants c;
    mr_generator_constants(command, &c);
    if (dtype == MR_I64) {
        int64_t *out = block;
        uint64_t from = (uint64_t)c.integer[0], by = (uint64_t)c.integer[1];
        for (int64_t i = 0; i < n; i++) out[i] = (int64_t)(from + (uint64_t)(first + i) * by);
        return;
    }
    double *out = block;
    for (int64_t i = 0; i < n; i++) out[i] = c.real[0] + (double)(first + i) * c.real[1];
}
const mr_generator mr_gen_arange = {
    .computed = wide, .fill = arange, .prepare = prepare_arange, .constants = arange_constants};

static mr_dtype as_f64(mr_dtype out) {
    (void)out;
    return MR_F64;
}

/* real[2]: from one element to the next. */
static void linspace_constants(const mr_params *params, const mr_tensor *out, mr_constants *c) {
    double from = params->fill.linspace.first, to = params->fill.linspace.last;
    c->real[0] = from;
    c->real[1] = to;
    c->real[2] = out->numel > 1 ? (to - from) / (double)(out->numel - 1) : 0;
}

static mr_status prepare_linspace(const char *name, mr_dtype out, const mr_scalar numbers[2],
                                  mr_params *params) {
    (void)name, (void)out;
    params->fill.linspace.first = numbers[0].f;
    params->fill.linspace.last = numbers[1].f;
    return MR_OK;
}

/* Counted from the nearer end, so that both ends are exact and the values symmetric. */
static void linspace(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n,
                     void *block) {
    (void)dtype;
    mr_constants c;
    mr_generator_constants(command, &c);
    double *out = block, from = c.real[0], to = c.real[1], step = c.real[2];
    int64_t count = command->operands[0].tensor->numel;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = first + i;
        out[i] =
            k < (count + 1) / 2 ? from + step * (double)k : to - step * (double)(count - 1 - k);
    }
}
const mr_generator mr_gen_linspace = {.computed = as_f64,
                                      .fill = linspace,
                                      .prepare = prepare_linspace,
                                      .constants = linspace_constants};

/* integer[0]: the number of columns. */
static void eye_constants(const mr_params *params, const mr_tensor *out, mr_constants *c) {
    (void)params;
    c->integer[0] = out->ndim > 0 ? out->shape[out->ndim - 1] : 1;
}

static void eye(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n, void *block) {
    mr_constants c;
    mr_generator_constants(command, &c);
    memset(block, 0, (size_t)n * mr_dtype_size(dtype));
    /* Ones are at row * columns + row, for as many rows as there are columns. */
    int64_t columns = c.integer[0], step = columns + 1, row = (first + step - 1) / step;
    for (; row < columns && row * step < first + n; row++)
        mr_dtype_store(dtype, (char *)block + (size_t)(row * step - first) * mr_dtype_size(dtype),
                       (mr_scalar){.is_integer = true, .i = 1, .f = 1});
}
const mr_generator mr_gen_eye = {.computed = same, .fill = eye, .constants = eye_constants};

/* ------------------------------------------------------------------------- bytes */

int64_t mr_bytes_items(const mr_command *command) {
    const mr_tensor *t = command->operands[0].tensor;
    return t->numel * (int64_t)mr_dtype_size(t->dtype);
}

mr_status mr_bytes_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    if (first >= end) return MR_OK;
    memset((char *)mr_tensor_data(command->operands[0].tensor) + first,
           mr_params_of(command).memset.byte, (size_t)(end - first));
    return MR_OK;
}
