/* Runs conv2d_weight where each group has one channel and one output. A matrix product would use one row. Here LANES
 * groups lie side by side in vectors. A row of their gradients and the rows of the source that its taps see are turned,
 * so that each step multiplies neighbours in memory.
 *
 * Easiest to break: values are those of conv_weight.c to the last bit, so positions are added in order, one after
 * the other. The taps of a group and the groups are independent, and keep the processor busy. */
#include "ops/body/conv_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16 };

bool mr_conv_weight_is_direct(const mr_conv *c) {
    return c->outputs == 1 && c->channels == 1 && c->taps[0] * c->taps[1] <= MR_CONV_DEPTH;
}

typedef struct {
    const mr_command *command;
    mr_conv c;
    int64_t taps, span[2]; /* rows and columns of the source from the first tap to the last */
    int64_t width;         /* columns of the source that the taps of a whole row of positions see */
    void *gradient;        /* [position][lane] */
    void *seen;            /* [slot: row of the source modulo span[0]][column][lane] */
    int64_t *held;         /* the row that is in each slot; -1: none */
    int64_t *offset;       /* in `seen`: the element that a tap reads for the first position */
    void *sums;            /* [tap][lane] */
    int64_t first, lanes;  /* groups */
} work;

/* ------------------------------------------------------------------------- products */

#define EACH_9(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8)
#define EACH_3(DO) DO(0) DO(1) DO(2)
#define EACH_1(DO) DO(0)

/* Sums of their own for each tap, which the compiler keeps in registers. */
#define LOAD_SUM(k)                                                                                \
    const T *from##k = seen + offset[k];                                                           \
    T sum##k[LANES];                                                                               \
    memcpy(sum##k, sums + (k)*LANES, sizeof sum##k);
#define ADD(k)       sum##k[l] = FUSED(g, from##k[i * step + l], sum##k[l]);
#define STORE_SUM(k) memcpy(sums + (k)*LANES, sum##k, sizeof sum##k);

/* No other file uses these names: the resolvers that clang makes for clones of static functions are global. */
#define TAPS(tag, T_, count)                                                                       \
    MR_CLONES static void add_products_##count##_##tag(                                            \
        T_ *restrict sums, const T_ *restrict gradient, const T_ *restrict seen,                   \
        const int64_t *offset, int64_t step, int64_t n) {                                          \
        typedef T_ T;                                                                              \
        EACH_##count(LOAD_SUM) for (int64_t i = 0; i < n; i++) {                                   \
            for (int l = 0; l < LANES; l++) {                                                      \
                T g = gradient[i * LANES + l];                                                     \
                EACH_##count(ADD)                                                                  \
            }                                                                                      \
        }                                                                                          \
        EACH_##count(STORE_SUM)                                                                    \
    }

#define PRODUCTS(tag, T)                                                                           \
    TAPS(tag, T, 9)                                                                                \
    TAPS(tag, T, 3)                                                                                \
    TAPS(tag, T, 1)                                                                                \
    static void add_positions_##tag(const work *w, int64_t n) {                                    \
        int64_t step = w->c.step[1] * LANES;                                                       \
        for (int64_t k = 0; k < w->taps;) {                                                        \
            int count = w->taps - k >= 9 ? 9 : w->taps - k >= 3 ? 3 : 1;                           \
            (count == 9   ? add_products_9_##tag                                                   \
             : count == 3 ? add_products_3_##tag                                                   \
                          : add_products_1_##tag)((T *)w->sums + k * LANES, w->gradient, w->seen,  \
                                                  w->offset + k, step, n);                         \
            k += count;                                                                            \
        }                                                                                          \
    }
#define FUSED fmaf
PRODUCTS(f32, float)
#undef FUSED
#define FUSED fma
PRODUCTS(f64, double)

/* ------------------------------------------------------------------------- rows */

/* `n` neighbours of a row, `apart` from each other, of all lanes, `group` apart: turned. */
#define TURN(tag, T)                                                                               \
    static void turn_##tag(T *to, const T *from, int64_t apart, int64_t group, int64_t n,          \
                           int64_t lanes) {                                                        \
        if (apart == 1) {                                                                          \
            mr_transpose(to, LANES, from, group, sizeof *to, n, lanes);                            \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t l = 0; l < lanes; l++) to[i * LANES + l] = from[i * apart + l * group];   \
    }                                                                                              \
    /* Row v of the source, columns [u, u + count); 0 outside. */                                  \
    static void see_##tag(const work *w, int64_t image, int64_t v, int64_t u, int64_t count,       \
                          T *to) {                                                                 \
        const mr_conv *c = &w->c;                                                                  \
        const T *all = mr_tensor_data(w->command->operands[2].tensor);                             \
        int64_t first = u < 0 ? mr_least(-u, count) : 0,                                           \
                end = mr_least(count, c->source_size[1] - u);                                      \
        if (v < 0 || v >= c->source_size[0] || end < first) first = end = count;                   \
        memset(to, 0, (size_t)(first * LANES) * sizeof *to);                                       \
        memset(to + end * LANES, 0, (size_t)((count - end) * LANES) * sizeof *to);                 \
        if (first < end)                                                                           \
            turn_##tag(to + first * LANES,                                                         \
                       all + image * c->source_image + w->first * c->source_group +                \
                           v * c->source_stride[0] + (u + first) * c->source_stride[1],            \
                       c->source_stride[1], c->source_group, end - first, w->lanes);               \
    }                                                                                              \
    /* Positions [x, x + n) of row y of an image. */                                               \
    static void add_row_##tag(work *w, int64_t image, int64_t y, int64_t x, int64_t n) {           \
        const mr_conv *c = &w->c;                                                                  \
        const T *gradient = mr_tensor_data(w->command->operands[1].tensor);                        \
        turn_##tag(w->gradient,                                                                    \
                   gradient + image * c->out_image + w->first * c->out_group +                     \
                       y * c->out_stride[0] + x * c->out_stride[1],                                \
                   c->out_stride[1], c->out_group, n, w->lanes);                                   \
        for (int64_t a = 0; a < c->taps[0]; a++) {                                                 \
            int64_t v = y * c->step[0] + c->start[0] + a * c->tap_step[0],                         \
                    slot = (v - c->start[0]) % w->span[0],                                         \
                    columns = (n - 1) * c->step[1] + w->span[1];                                   \
            if (w->held[slot] != v)                                                                \
                see_##tag(w, image, v, x * c->step[1] + c->start[1], columns,                      \
                          (T *)w->seen + slot * w->width * LANES);                                 \
            w->held[slot] = v;                                                                     \
            for (int64_t b = 0; b < c->taps[1]; b++)                                               \
                w->offset[a * c->taps[1] + b] = (slot * w->width + b * c->tap_step[1]) * LANES;    \
        }                                                                                          \
        add_positions_##tag(w, n);                                                                 \
    }                                                                                              \
    static void write_##tag(const work *w, int64_t item) {                                         \
        T *to = (T *)mr_tensor_data(w->command->operands[0].tensor) + item * w->taps;              \
        for (int64_t l = 0; l < w->lanes; l++)                                                     \
            for (int64_t k = 0; k < w->taps; k++) *to++ = ((const T *)w->sums)[k * LANES + l];     \
    }
TURN(f32, float)
TURN(f64, double)

/* ------------------------------------------------------------------------- items */

static void free_work(work *w) {
    free(w->gradient);
    free(w->seen);
    free(w->held);
    free(w->offset);
    free(w->sums);
}

static bool begin_work(work *w, const mr_command *command) {
    *w = (work){.command = command};
    mr_conv *c = &w->c;
    mr_conv_weight(command, c);
    size_t size = mr_dtype_size((mr_dtype)command->operands[0].tensor->dtype);
    w->taps = c->taps[0] * c->taps[1];
    for (int d = 0; d < 2; d++) w->span[d] = (c->taps[d] - 1) * c->tap_step[d] + 1;
    w->width = (c->grid[1] - 1) * c->step[1] + w->span[1];
    w->gradient = calloc((size_t)(c->grid[1] * LANES) + 1, size);
    w->seen = calloc((size_t)(w->span[0] * w->width * LANES) + 1, size);
    w->held = calloc((size_t)w->span[0] + 1, sizeof *w->held);
    w->offset = calloc((size_t)w->taps + 1, sizeof *w->offset);
    w->sums = calloc((size_t)(w->taps * LANES) + 1, size);
    if (w->gradient && w->seen && w->held && w->offset && w->sums) return true;
    free_work(w);
    return false;
}

/* Positions [begin, end) of all images, for the groups of `w`. */
static void run_chunk(work *w, int64_t begin, int64_t end) {
    const mr_conv *c = &w->c;
    bool single = w->command->operands[0].tensor->dtype == MR_F32;
    int64_t held_image = -1, held_x = -1, held_n = -1;
    memset(w->sums, 0, (size_t)(w->taps * LANES) * (single ? sizeof(float) : sizeof(double)));
    for (int64_t at = begin; at < end;) {
        int64_t x = at % c->grid[1], line = at / c->grid[1], image = line / c->grid[0];
        int64_t n = mr_least(c->grid[1] - x, end - at);
        if (image != held_image || x != held_x || n != held_n)
            for (int64_t s = 0; s < w->span[0]; s++) w->held[s] = INT64_MIN;
        held_image = image, held_x = x, held_n = n;
        (single ? add_row_f32 : add_row_f64)(w, image, line % c->grid[0], x, n);
        at += n;
    }
}

mr_status mr_conv_weight_run_direct(const mr_command *command, int64_t first, int64_t end) {
    work w;
    if (!begin_work(&w, command))
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: the host has no memory for rows of %d groups",
                       command->name, LANES);
    const mr_tensor *out = command->operands[0].tensor;
    int64_t positions = w.c.images * w.c.grid[0] * w.c.grid[1],
            chunk = (positions + out->shape[0] - 1) / out->shape[0];
    for (int64_t item = first; item < end; item += w.lanes) {
        int64_t begin = item / w.c.groups * chunk;
        w.first = item % w.c.groups;
        w.lanes = mr_least(mr_least(LANES, w.c.groups - w.first), end - item);
        run_chunk(&w, begin, mr_least(begin + chunk, positions));
        (out->dtype == MR_F32 ? write_f32 : write_f64)(&w, item);
    }
    free_work(&w);
    return MR_OK;
}
