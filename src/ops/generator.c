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

static mr_dtype same(mr_dtype out) {
    return out;
}

/* Integers are computed as i64, floats and what is rounded from them as f64. */
static mr_dtype wide(mr_dtype out) {
    return mr_dtype_category(out) == 2 ? MR_F64 : MR_I64;
}

/* ------------------------------------------------------------------------- fill, zero */

MR_CLONES static void repeat4(uint32_t *to, uint32_t v, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = v;
}

MR_CLONES static void repeat8(uint64_t *to, uint64_t v, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = v;
}

static void fill_value(mr_dtype dtype, mr_scalar value, int64_t n, void *block) {
    union {
        uint8_t u1;
        uint32_t u4;
        uint64_t u8;
    } bits;
    mr_dtype_store(dtype, &bits, value);
    switch (mr_dtype_size(dtype)) {
    case 1: memset(block, bits.u1, (size_t)n); break;
    case 4: repeat4(block, bits.u4, n); break;
    default: repeat8(block, bits.u8, n); break;
    }
}

static void fill(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n, void *block) {
    (void)first;
    fill_value(dtype, command->u.op.params.scalar[0], n, block);
}
const mr_generator mr_gen_fill = {same, fill, NULL};

static void zero(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n, void *block) {
    (void)command, (void)first;
    memset(block, 0, (size_t)n * mr_dtype_size(dtype));
}
const mr_generator mr_gen_zero = {same, zero, NULL};

/* ------------------------------------------------------------------------- sequences */

static void arange(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n,
                   void *block) {
    mr_scalar start = command->u.op.params.scalar[0], step = command->u.op.params.scalar[1];
    if (dtype == MR_I64) {
        int64_t *out = block;
        uint64_t from, by;
        mr_dtype_store(MR_I64, &from, start);
        mr_dtype_store(MR_I64, &by, step);
        for (int64_t i = 0; i < n; i++) out[i] = (int64_t)(from + (uint64_t)(first + i) * by);
        return;
    }
    double *out = block;
    for (int64_t i = 0; i < n; i++) out[i] = start.f + (double)(first + i) * step.f;
}
const mr_generator mr_gen_arange = {wide, arange, NULL};

static mr_dtype as_f64(mr_dtype out) {
    (void)out;
    return MR_F64;
}

/* Counted from the nearer end, so that both ends are exact and the values symmetric. */
static void linspace(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n,
                     void *block) {
    (void)dtype;
    double *out = block;
    double from = command->u.op.params.scalar[0].f, to = command->u.op.params.scalar[1].f;
    int64_t count = command->operands[0].tensor->numel;
    double step = count > 1 ? (to - from) / (double)(count - 1) : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = first + i;
        out[i] =
            k < (count + 1) / 2 ? from + step * (double)k : to - step * (double)(count - 1 - k);
    }
}
const mr_generator mr_gen_linspace = {as_f64, linspace, NULL};

static void eye(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n, void *block) {
    const mr_tensor *t = command->operands[0].tensor;
    int64_t columns = t->ndim > 0 ? t->shape[t->ndim - 1] : 1;
    memset(block, 0, (size_t)n * mr_dtype_size(dtype));
    /* Ones are at row * columns + row, for as many rows as there are columns. */
    int64_t step = columns + 1, row = (first + step - 1) / step;
    for (; row < columns && row * step < first + n; row++)
        mr_dtype_store(dtype, (char *)block + (size_t)(row * step - first) * mr_dtype_size(dtype),
                       (mr_scalar){.is_integer = true, .i = 1, .f = 1});
}
const mr_generator mr_gen_eye = {same, eye, NULL};

/* ------------------------------------------------------------------------- bytes */

int64_t mr_bytes_items(const mr_command *command) {
    const mr_tensor *t = command->operands[0].tensor;
    return t->numel * (int64_t)mr_dtype_size(t->dtype);
}

mr_status mr_bytes_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    if (first >= end) return MR_OK;
    memset((char *)mr_tensor_data(command->operands[0].tensor) + first,
           (int)command->u.op.params.integer[0], (size_t)(end - first));
    return MR_OK;
}
