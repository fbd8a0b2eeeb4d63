/* The bodies of cumsum and cumprod. An item is a line along the dim. Its elements are combined one after the other, in
 * double for floats and in i64 for all others. Each result is rounded to the output's dtype. So a line does not depend
 * on the others, and its sums are as good as those of `sum`.
 *
 * Lines go through a block side by side, so that the compiler can use vectors. These are the lines whose elements are
 * neighbours, and dense ones of halves and integers, which are transposed on their way in and out. Dense floats need no
 * block. */
#include "ops/body/scan.h"
#include "ops/body.h"
#include "ops/line.h"
#include <math.h>

enum { MOST_LINES = 16, AT_ONCE = 4 }; /* in a block; of dense ones, in registers */

/* Combines rows of a block with `last`, the last results. With two NaN as operands, a product or a sum has the bits of
 * the one that comes first in the instruction. The compiler orders them otherwise in each loop. So each NaN is stored
 * as the same one, and the width of a block cannot be seen. `last` keeps its own: the next step need not wait for that.
 * */
#define STEP(name, T, combined, stored)                                                            \
    MR_CLONES static void name(void *block, void *last_, int64_t rows, int64_t width) {            \
        T *x = block, *last = last_;                                                               \
        if (width == 1) {                                                                          \
            T a = last[0];                                                                         \
            for (int64_t j = 0; j < rows; j++) {                                                   \
                T b = x[j], r = (combined);                                                        \
                a = r;                                                                             \
                x[j] = (stored);                                                                   \
            }                                                                                      \
            last[0] = a;                                                                           \
            return;                                                                                \
        }                                                                                          \
        for (int64_t j = 0; j < rows; j++)                                                         \
            for (int64_t w = 0; w < width; w++) {                                                  \
                T a = last[w], b = x[j * width + w], r = (combined);                               \
                last[w] = r;                                                                       \
                x[j * width + w] = (stored);                                                       \
            }                                                                                      \
    }
STEP(sum_f64, double, a + b, r == r ? r : NAN)
STEP(product_f64, double, a *b, r == r ? r : NAN)
STEP(sum_i64, int64_t, (int64_t)((uint64_t)a + (uint64_t)b), r)
STEP(product_i64, int64_t, (int64_t)((uint64_t)a *(uint64_t)b), r)

/* `width` lines of dense floats of one dtype, without a block between: the lines are independent, so the processor adds
 * to several at once. A NaN stays one to the end of its line; only a line that ends in one is looked at again. */
#define DENSE(name, T, combined)                                                                   \
    static void name(const void *in_, int64_t in_across, void *out_, int64_t out_across,           \
                     int64_t length, int64_t width, double start) {                                \
        const T *in = in_;                                                                         \
        T *out = out_;                                                                             \
        int64_t line = 0;                                                                          \
        for (; line + AT_ONCE <= width; line += AT_ONCE) {                                         \
            const T *x = in + line * in_across;                                                    \
            T *y = out + line * out_across;                                                        \
            double last[AT_ONCE];                                                                  \
            for (int w = 0; w < AT_ONCE; w++) last[w] = start;                                     \
            for (int64_t j = 0; j < length; j++)                                                   \
                for (int w = 0; w < AT_ONCE; w++) {                                                \
                    double a = last[w], b = (double)x[w * in_across + j];                          \
                    last[w] = (combined);                                                          \
                    y[w * out_across + j] = (T)last[w];                                            \
                }                                                                                  \
        }                                                                                          \
        for (; line < width; line++) {                                                             \
            double last = start;                                                                   \
            for (int64_t j = 0; j < length; j++) {                                                 \
                double a = last, b = (double)in[line * in_across + j];                             \
                last = (combined);                                                                 \
                out[line * out_across + j] = (T)last;                                              \
            }                                                                                      \
        }                                                                                          \
        for (line = 0; line < width; line++) {                                                     \
            T *y = out + line * out_across;                                                        \
            for (int64_t j = length; j-- > 0 && y[j] != y[j];) y[j] = (T)NAN;                      \
        }                                                                                          \
    }
DENSE(sum_dense_f32, float, a + b)
DENSE(sum_dense_f64, double, a + b)
DENSE(product_dense_f32, float, a *b)
DENSE(product_dense_f64, double, a *b)

typedef void dense_scan(const void *in, int64_t in_across, void *out, int64_t out_across,
                        int64_t length, int64_t width, double start);

struct mr_scan {
    dense_scan *dense_f32, *dense_f64;
    void (*floats)(void *block, void *last, int64_t rows, int64_t width);
    void (*integers)(void *block, void *last, int64_t rows, int64_t width);
    double start;
};
const mr_scan mr_scan_cumsum = {sum_dense_f32, sum_dense_f64, sum_f64, sum_i64, 0},
              mr_scan_cumprod = {product_dense_f32, product_dense_f64, product_f64, product_i64, 1};

int64_t mr_scan_items(const mr_command *command) {
    const mr_tensor *out = command->operands[0].tensor;
    return out->numel > 0 ? mr_lines_of(out, mr_params_of(command).along.dim).count : 0;
}

/* One side of the lines at hand: rows of `width` elements. */
typedef struct {
    char *first;
    mr_dtype dtype;
    int64_t step, across;
} side;

static side side_of(const mr_tensor *t, const mr_lines *lines, int dim, int64_t line) {
    mr_line_strides s = mr_line_strides_of(t, dim);
    int64_t size = (int64_t)mr_dtype_size((mr_dtype)t->dtype);
    return (side){.first = (char *)mr_tensor_data(t) + mr_line_offset(lines, &s, line) * size,
                  .dtype = (mr_dtype)t->dtype,
                  .step = s.step,
                  .across = lines->ndim > 0 ? s.stride[lines->ndim - 1] : 0};
}

static void load(const side *s, int64_t row, int64_t rows, int64_t width, mr_dtype computed,
                 void *block) {
    size_t size = mr_dtype_size(s->dtype);
    const char *from = s->first + row * s->step * (int64_t)size;
    mr_block raw;
    void *to = s->dtype == computed ? block : &raw;
    if (width == 1 && s->step == 1) {
        mr_convert(computed, block, s->dtype, from, rows);
        return;
    }
    mr_gather(from, size, width == 1 ? 1 : 2, (const int64_t[]){rows, width},
              (const int64_t[]){s->step, s->across}, 0, rows * width, to);
    if (to != block) mr_convert(computed, block, s->dtype, to, rows * width);
}

/* For dense lines: each is a piece. */
static void store_turned(const side *s, int64_t row, int64_t rows, int64_t width, mr_dtype computed,
                         const void *block) {
    int64_t size = (int64_t)mr_dtype_size(s->dtype);
    mr_block turned;
    const char *from = block;
    if (width > 1) {
        mr_transpose(&turned, rows, block, width, mr_dtype_size(computed), width, rows);
        from = turned.bytes;
    }
    for (int64_t w = 0; w < width; w++, from += rows * (int64_t)mr_dtype_size(computed))
        mr_convert(s->dtype, s->first + (row + w * s->across) * size, computed, from, rows);
}

static void store(const side *s, int64_t row, int64_t rows, int64_t width, mr_dtype computed,
                  const void *block) {
    size_t size = mr_dtype_size(s->dtype);
    mr_block raw;
    const void *from = block;
    if (s->step == 1 && (width == 1 || s->across != 1)) {
        store_turned(s, row, rows, width, computed, block);
        return;
    }
    if (s->dtype != computed) {
        mr_convert(s->dtype, &raw, computed, block, rows * width);
        from = &raw;
    }
    mr_scatter(s->first + row * s->step * (int64_t)size, size, 2, (const int64_t[]){rows, width},
               (const int64_t[]){s->step, s->across}, 0, rows * width, from);
}

/* `width` lines whose numbers follow each other in the last of the other dims. */
static void scan_lines(const mr_scan *scan, const side *in, const side *out, int64_t length,
                       int64_t width) {
    dense_scan *dense = in->dtype == MR_F32   ? scan->dense_f32
                        : in->dtype == MR_F64 ? scan->dense_f64
                                              : NULL;
    if (dense && in->dtype == out->dtype && in->step == 1 && out->step == 1) {
        dense(in->first, in->across, out->first, out->across, length, width, scan->start);
        return;
    }
    mr_dtype computed = mr_dtype_category(in->dtype) == 2 ? MR_F64 : MR_I64;
    bool is_float = computed == MR_F64;
    mr_block block;
    union {
        double f[MOST_LINES];
        int64_t i[MOST_LINES];
    } last;
    for (int w = 0; w < width; w++) {
        if (is_float) last.f[w] = scan->start;
        else last.i[w] = (int64_t)scan->start;
    }
    int64_t most = MR_BLOCK / width;
    for (int64_t row = 0; row < length; row += most) {
        int64_t rows = length - row < most ? length - row : most;
        load(in, row, rows, width, computed, &block);
        (is_float ? scan->floats : scan->integers)(&block, &last, rows, width);
        store(out, row, rows, width, computed, &block);
    }
}

mr_status mr_scan_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    if (first >= end) return MR_OK;
    int dim = mr_params_of(command).along.dim;
    const mr_tensor *out = command->operands[0].tensor,
                    *in = command->operands[command->operand_count - 1].tensor;
    mr_lines lines = mr_lines_of(out, dim);
    while (first < end) {
        side from = side_of(in, &lines, dim, first), to = side_of(out, &lines, dim, first);
        int64_t run = lines.ndim > 0 ? lines.shape[lines.ndim - 1] : 1, width = 1;
        if (from.across == 1 || from.step == 1) {
            width = run - first % run;
            if (width > MOST_LINES) width = MOST_LINES;
            if (width > end - first) width = end - first;
        }
        scan_lines(command->u.op.row->body, &from, &to, lines.length, width);
        first += width;
    }
    return MR_OK;
}
