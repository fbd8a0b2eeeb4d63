/* Runs pools and their gradients. An item is a row of the result: one row of one channel of an image. Averages are
 * added up in double, in the order in which the elements lie. A gradient sums over the windows that hold an element,
 * in their order, so no two threads write the same element. */
#include "ops/body.h"
#include "ops/ids.h"
#include "ops/network.h"

#include <math.h>

void mr_pool_lines(const mr_command *command, mr_pool_line out_lines[2]) {
    mr_window w = mr_params_of(command).pool.window;
    mr_op_id row = command->u.op.row->id;
    bool backward = row == MR_OP_max_pool2d_backward || row == MR_OP_avg_pool2d_backward ||
                    row == MR_OP_adaptive_avg_pool2d_backward;
    const mr_tensor *result = command->operands[0].tensor, *other = command->operands[1].tensor;
    const mr_tensor *in = backward ? result : other, *out = backward ? other : result;
    for (int d = 0; d < 2; d++)
        out_lines[d] = (mr_pool_line){.in = (int32_t)in->shape[in->ndim - 2 + d],
                                      .out = (int32_t)out->shape[out->ndim - 2 + d],
                                      .size = w.size[d],
                                      .stride = w.stride[d],
                                      .padding = w.padding[d],
                                      .dilation = w.dilation[d],
                                      .adaptive = row == MR_OP_adaptive_avg_pool2d ||
                                                  row == MR_OP_adaptive_avg_pool2d_backward};
}

typedef struct {
    const mr_command *command;
    const mr_tensor *result, *other, *positions;
    mr_pool_line rows, columns;
} pool;

static pool pool_of(const mr_command *command) {
    mr_pool_line lines[2];
    mr_pool_lines(command, lines);
    return (pool){.command = command,
                  .result = command->operands[0].tensor,
                  .other = command->operands[1].tensor,
                  .positions = command->operand_count > 2 ? command->operands[2].tensor : NULL,
                  .rows = lines[0],
                  .columns = lines[1]};
}

int64_t mr_pool_items(const mr_command *command) {
    const mr_tensor *result = command->operands[0].tensor;
    return result->shape[0] * result->shape[1] * result->shape[2];
}

/* Where row `row` of the item's channel begins in a tensor of four dims. */
static int64_t row_offset(const mr_tensor *t, int64_t plane, int64_t row) {
    return plane / t->shape[1] * t->stride[0] + plane % t->shape[1] * t->stride[1] +
           row * t->stride[2];
}

/* ------------------------------------------------------------------------- loops */

#define POOLS(tag, T)                                                                              \
    /* One row of taps, for the outputs [first, end): a NaN wins, and the last of several. */      \
    MR_CLONES static void take_greater_##tag(const T *x, int64_t step, int64_t position,           \
                                             int64_t apart, int32_t first, int32_t end, T *most,   \
                                             int64_t *at) {                                        \
        MR_INDEPENDENT                                                                             \
        for (int32_t o = first; o < end; o++) {                                                    \
            T v = x[o * step], m = most[o];                                                        \
            bool wins = v > m || v != v;                                                           \
            most[o] = wins ? v : m;                                                                \
            at[o] = wins ? position + o * apart : at[o];                                           \
        }                                                                                          \
    }                                                                                              \
    MR_CLONES static void take_greatest_##tag(const T *x, int64_t step, int32_t first,             \
                                              int32_t end, T *most) {                              \
        MR_INDEPENDENT                                                                             \
        for (int32_t o = first; o < end; o++) {                                                    \
            T v = x[o * step], m = most[o];                                                        \
            most[o] = v > m || v != v ? v : m;                                                     \
        }                                                                                          \
    }                                                                                              \
    /* `at`: where positions go, or NULL. */                                                       \
    static void max_row_##tag(const pool *p, int64_t plane, int32_t y, T *most, int64_t *at) {     \
        const mr_pool_line *r = &p->rows, *c = &p->columns;                                        \
        const T *x = (const T *)mr_tensor_data(p->other) + row_offset(p->other, plane, 0);         \
        int32_t begin = mr_pool_begin(r, y), top = begin;                                          \
        while (top < 0) top += r->dilation;                                                        \
        for (int32_t o = 0; o < c->out; o++) {                                                     \
            int32_t left = mr_pool_begin(c, o);                                                    \
            while (left < 0) left += c->dilation;                                                  \
            most[o] = -(T)INFINITY;                                                                \
            if (at) at[o] = (int64_t)top * c->in + left + 1;                                       \
        }                                                                                          \
        for (int32_t a = 0; a < r->size; a++) {                                                    \
            int32_t v = begin + a * r->dilation;                                                   \
            if (v < 0 || v >= r->in) continue;                                                     \
            for (int32_t b = 0; b < c->size; b++) {                                                \
                int32_t u = b * c->dilation - c->padding, first = 0, end = c->out;                 \
                if (u < 0) first = (-u + c->stride - 1) / c->stride;                               \
                if (u + (end - 1) * c->stride >= c->in)                                            \
                    end = c->in > u ? (c->in - u - 1) / c->stride + 1 : 0;                         \
                const T *from = x + v * p->other->stride[2] + u * p->other->stride[3];             \
                int64_t step = c->stride * p->other->stride[3];                                    \
                if (at)                                                                            \
                    take_greater_##tag(from, step, (int64_t)v * c->in + u + 1, c->stride, first,   \
                                       end, most, at);                                             \
                else take_greatest_##tag(from, step, first, end, most);                            \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void avg_row_##tag(const pool *p, int64_t plane, int32_t y, T *result) {                \
        mr_pool_params params = mr_params_of(p->command).pool;                                     \
        const mr_tensor *t = p->other;                                                             \
        const T *x = (const T *)mr_tensor_data(t) + row_offset(t, plane, 0);                       \
        int32_t top = mr_pool_begin(&p->rows, y), bottom = mr_pool_end(&p->rows, y);               \
        if (top < 0) top = 0;                                                                      \
        if (bottom > p->rows.in) bottom = p->rows.in;                                              \
        for (int32_t o = 0; o < p->columns.out; o++) {                                             \
            int32_t left = mr_pool_begin(&p->columns, o), right = mr_pool_end(&p->columns, o);     \
            double sum = 0;                                                                        \
            if (left < 0) left = 0;                                                                \
            if (right > p->columns.in) right = p->columns.in;                                      \
            for (int32_t v = top; v < bottom; v++)                                                 \
                for (int32_t u = left; u < right; u++)                                             \
                    sum += (double)x[v * t->stride[2] + u * t->stride[3]];                         \
            result[o] = (T)(sum / mr_pool_divisor(&p->rows, y, &p->columns, o,                     \
                                                  params.include_padding, params.divisor));        \
        }                                                                                          \
    }                                                                                              \
    static void max_gradient_row_##tag(const pool *p, int64_t plane, int32_t y, T *result) {       \
        const mr_tensor *g = p->other, *i = p->positions;                                          \
        const T *gradient = (const T *)mr_tensor_data(g) + row_offset(g, plane, 0);                \
        const int64_t *at = (const int64_t *)mr_tensor_data(i) + row_offset(i, plane, 0);          \
        int32_t first = mr_pool_first(&p->rows, y), last = mr_pool_last(&p->rows, y);              \
        for (int32_t x = 0; x < p->columns.in; x++) {                                              \
            int32_t left = mr_pool_first(&p->columns, x), right = mr_pool_last(&p->columns, x);    \
            int64_t own = (int64_t)y * p->columns.in + x + 1;                                      \
            double sum = 0;                                                                        \
            for (int32_t v = first; v <= last; v++)                                                \
                for (int32_t u = left; u <= right; u++)                                            \
                    if (at[v * i->stride[2] + u * i->stride[3]] == own)                            \
                        sum += (double)gradient[v * g->stride[2] + u * g->stride[3]];              \
            result[x] = (T)sum;                                                                    \
        }                                                                                          \
    }                                                                                              \
    static void avg_gradient_row_##tag(const pool *p, int64_t plane, int32_t y, T *result) {       \
        mr_pool_params params = mr_params_of(p->command).pool;                                     \
        const mr_tensor *g = p->other;                                                             \
        const T *gradient = (const T *)mr_tensor_data(g) + row_offset(g, plane, 0);                \
        int32_t first = mr_pool_first(&p->rows, y), last = mr_pool_last(&p->rows, y);              \
        for (int32_t x = 0; x < p->columns.in; x++) {                                              \
            int32_t left = mr_pool_first(&p->columns, x), right = mr_pool_last(&p->columns, x);    \
            double sum = 0;                                                                        \
            for (int32_t v = first; v <= last; v++)                                                \
                for (int32_t u = left; u <= right; u++)                                            \
                    sum += (double)gradient[v * g->stride[2] + u * g->stride[3]] /                 \
                           mr_pool_divisor(&p->rows, v, &p->columns, u, params.include_padding,    \
                                           params.divisor);                                        \
            result[x] = (T)sum;                                                                    \
        }                                                                                          \
    }                                                                                              \
    static void run_row_##tag(const pool *p, int64_t item) {                                       \
        int64_t rows = p->result->shape[2], plane = item / rows;                                   \
        int32_t y = (int32_t)(item % rows);                                                        \
        T *result = (T *)mr_tensor_data(p->result) + item * p->result->shape[3];                   \
        switch (p->command->u.op.row->id) {                                                        \
        case MR_OP_max_pool2d:                                                                     \
            max_row_##tag(p, plane, y, result,                                                     \
                          p->positions ? (int64_t *)mr_tensor_data(p->positions) +                 \
                                             item * p->result->shape[3]                            \
                                       : NULL);                                                    \
            break;                                                                                 \
        case MR_OP_max_pool2d_backward: max_gradient_row_##tag(p, plane, y, result); break;        \
        case MR_OP_avg_pool2d:                                                                     \
        case MR_OP_adaptive_avg_pool2d: avg_row_##tag(p, plane, y, result); break;                 \
        default: avg_gradient_row_##tag(p, plane, y, result); break;                               \
        }                                                                                          \
    }
POOLS(f32, float)
POOLS(f64, double)

mr_status mr_pool_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    pool p = pool_of(command);
    for (int64_t item = first; item < end; item++) {
        if (p.result->dtype == MR_F32) run_row_f32(&p, item);
        else run_row_f64(&p, item);
    }
    return MR_OK;
}
