/* Runs conv2d and conv2d_input where a group has few outputs and few taps: depthwise convolutions, above all. A matrix
 * product would pack more than it multiplies. Here a band of rows of the source is copied to where its padding is zeros
 * in memory, and each tap is one loop over the whole band.
 *
 * Easiest to break: values are those of conv.c to the last bit, so taps are added in the same order, those that see
 * padding too, and the bias comes last. */
#include "ops/body/conv_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_OUTPUTS = 4,
    BAND = 8192, /* elements, about: they stay in the first-level cache with the sums */
    LANES = 16,  /* sums that are made at once, be there a position for each or not */
};

bool mr_conv_is_direct(const mr_conv *c) {
    int64_t taps = c->taps[0] * c->taps[1];
    int64_t depth = c->channels * taps;
    return c->outputs <= MOST_OUTPUTS && depth > 0 && depth <= MR_CONV_DEPTH;
}

/* Columns of the source that are step[1] apart lie side by side in a row of the band, so that neighbouring positions
 * see neighbours. Column u is element (u - low[1]) % step[1] * phase + (u - low[1]) / step[1]. */
typedef struct {
    const mr_command *command;
    const mr_conv *c;
    int64_t low[2];         /* row and column of the source that the first tap of position 0 sees */
    int64_t span[2];        /* rows and columns from the first tap to the last */
    int64_t width;          /* columns of the source that a row of positions sees */
    int64_t phase, pitch;   /* elements of a band: see above; from row to row */
    int64_t rows;           /* of positions, in one band */
    int64_t sum_pitch;      /* from row to row */
    int64_t sums_of_output; /* elements */
    void *band;             /* [row of the source][pitch] */
    void *sums;             /* [output][row of positions][sum_pitch] */
    int64_t *offset;        /* in the band: the element that a tap reads for position 0 */
} work;

static int64_t rounded_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

static void lay_out(work *w) {
    const mr_conv *c = w->c;
    for (int d = 0; d < 2; d++) {
        int64_t last = (c->taps[d] - 1) * c->tap_step[d];
        w->low[d] = c->start[d] + (last < 0 ? last : 0);
        w->span[d] = (last < 0 ? -last : last) + 1;
    }
    w->width = (c->grid[1] - 1) * c->step[1] + w->span[1];
    w->phase = (w->width + c->step[1] - 1) / c->step[1];
    w->pitch = w->phase * c->step[1];
    w->rows = (BAND / w->pitch - w->span[0]) / c->step[0] + 1;
    w->rows = w->rows < 1 ? 1 : mr_least(w->rows, c->grid[0]);
    w->sum_pitch = c->step[0] == 1 ? w->pitch : rounded_up(c->grid[1], LANES);
    w->sums_of_output = rounded_up(w->rows * w->sum_pitch, LANES);
}

static void free_work(work *w) {
    free(w->band);
    free(w->sums);
    free(w->offset);
}

static mr_status begin_work(work *w, const mr_command *command, const mr_conv *c) {
    *w = (work){.command = command, .c = c};
    lay_out(w);
    size_t size = mr_dtype_size((mr_dtype)command->operands[0].tensor->dtype);
    int64_t source_rows = (w->rows - 1) * c->step[0] + w->span[0];
    w->band = calloc((size_t)(source_rows * w->pitch + 2 * LANES), size);
    w->sums = calloc((size_t)(c->outputs * w->sums_of_output), size);
    w->offset = calloc((size_t)(c->taps[0] * c->taps[1]), sizeof *w->offset);
    if (!w->band || !w->sums || !w->offset) {
        free_work(w);
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: the host has no memory for a band of rows",
                       command->name);
    }
    for (int64_t a = 0; a < c->taps[0]; a++)
        for (int64_t b = 0; b < c->taps[1]; b++) {
            int64_t down = c->start[0] + a * c->tap_step[0] - w->low[0],
                    right = c->start[1] + b * c->tap_step[1] - w->low[1];
            w->offset[a * c->taps[1] + b] =
                down * w->pitch + right % c->step[1] * w->phase + right / c->step[1];
        }
    return MR_OK;
}

/* Adds one output's part to the sums of `n` positions, for `count` taps. */
#define ADD_9  ADD(0) ADD(1) ADD(2) ADD(3) ADD(4) ADD(5) ADD(6) ADD(7) ADD(8)
#define ADD_3  ADD(0) ADD(1) ADD(2)
#define ADD(k) s = FUSED(weight[k], from[offset[k] + i], s);

#define TAPS(tag, T, count)                                                                        \
    MR_CLONES static void add_##count##_##tag(T *sum, const T *from, const int64_t *offsets,       \
                                              const T *weights, int64_t n) {                       \
        int64_t offset[count];                                                                     \
        T weight[count];                                                                           \
        memcpy(offset, offsets, sizeof offset);                                                    \
        memcpy(weight, weights, sizeof weight);                                                    \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T s = sum[i];                                                                          \
            ADD_##count sum[i] = s;                                                                \
        }                                                                                          \
    }
#define ADD_1 ADD(0)

#define DIRECT(tag, T)                                                                             \
    TAPS(tag, T, 9)                                                                                \
    TAPS(tag, T, 3)                                                                                \
    TAPS(tag, T, 1)                                                                                \
    static void add_taps_##tag(T *sum, const T *from, const int64_t *offset, const T *weight,      \
                               int64_t taps, int64_t n) {                                          \
        while (taps > 0) {                                                                         \
            int done = taps >= 9 ? 9 : taps >= 3 ? 3 : 1;                                          \
            (done == 9   ? add_9_##tag                                                             \
             : done == 3 ? add_3_##tag                                                             \
                         : add_1_##tag)(sum, from, offset, weight, n);                             \
            offset += done, weight += done, taps -= done;                                          \
        }                                                                                          \
    }                                                                                              \
    /* Beside the columns of the source the band keeps its zeros. */                               \
    static void fill_row_##tag(const work *w, const T *row, T *to) {                               \
        const mr_conv *c = w->c;                                                                   \
        int64_t step = c->step[1], first = w->low[1] < 0 ? -w->low[1] : 0,                         \
                end = mr_least(w->width, c->source_size[1] - w->low[1]);                           \
        const T *from = row + w->low[1] * c->source_stride[1];                                     \
        if (step == 1 && c->source_stride[1] == 1) {                                               \
            if (first < end) memcpy(to + first, from + first, (size_t)(end - first) * sizeof *to); \
            return;                                                                                \
        }                                                                                          \
        for (int64_t r = 0; r < step; r++)                                                         \
            for (int64_t i = first <= r ? 0 : (first - r + step - 1) / step; i * step + r < end;   \
                 i++)                                                                              \
                to[r * w->phase + i] = from[(i * step + r) * c->source_stride[1]];                 \
    }                                                                                              \
    static void fill_##tag(const work *w, int64_t image, int64_t channel, int64_t y,               \
                           int64_t rows) {                                                         \
        const mr_conv *c = w->c;                                                                   \
        const T *plane = (const T *)mr_tensor_data(w->command->operands[1].tensor) +               \
                         image * c->source_image + channel;                                        \
        int64_t count = (rows - 1) * c->step[0] + w->span[0];                                      \
        for (int64_t i = 0; i < count; i++) {                                                      \
            int64_t v = y * c->step[0] + w->low[0] + i;                                            \
            T *to = (T *)w->band + i * w->pitch;                                                   \
            if (v < 0 || v >= c->source_size[0]) memset(to, 0, (size_t)w->pitch * sizeof *to);     \
            else fill_row_##tag(w, plane + v * c->source_stride[0], to);                           \
        }                                                                                          \
    }                                                                                              \
    static void pick_weights_##tag(const work *w, int64_t group, int64_t output, int64_t channel,  \
                                   T *to) {                                                        \
        const mr_conv *c = w->c;                                                                   \
        const T *from = (const T *)mr_tensor_data(w->command->operands[2].tensor) +                \
                        c->weight_offset + group * c->weight_group + output * c->weight_output +   \
                        channel * c->weight_channel;                                               \
        for (int64_t a = 0; a < c->taps[0]; a++)                                                   \
            for (int64_t b = 0; b < c->taps[1]; b++)                                               \
                *to++ = from[a * c->weight_tap[0] + b * c->weight_tap[1]];                         \
    }                                                                                              \
    static void sum_##tag(const work *w, int64_t image, int64_t group, int64_t y, int64_t rows) {  \
        const mr_conv *c = w->c;                                                                   \
        T weight[MR_CONV_DEPTH];                                                                   \
        int64_t taps = c->taps[0] * c->taps[1], lines = c->step[0] == 1 ? 1 : rows;                \
        int64_t n = lines == 1 ? (rows - 1) * w->sum_pitch + c->grid[1] : c->grid[1];              \
        memset(w->sums, 0, (size_t)(c->outputs * w->sums_of_output) * sizeof(T));                  \
        for (int64_t k = 0; k < c->channels; k++) {                                                \
            fill_##tag(w, image, group * c->source_group + k * c->source_channel, y, rows);        \
            for (int64_t o = 0; o < c->outputs; o++) {                                             \
                pick_weights_##tag(w, group, o, k, weight);                                        \
                for (int64_t line = 0; line < lines; line++)                                       \
                    add_taps_##tag((T *)w->sums + o * w->sums_of_output + line * w->sum_pitch,     \
                                   (const T *)w->band + line * c->step[0] * w->pitch, w->offset,   \
                                   weight, taps, rounded_up(n, LANES));                            \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* The positions [first, end) of those of a band, which begins at row y of an image. */        \
    MR_CLONES static void write_##tag(const work *w, int64_t image, int64_t group, int64_t y,      \
                                      int64_t rows, int64_t first, int64_t end) {                  \
        const mr_conv *c = w->c;                                                                   \
        const mr_tensor *biases =                                                                  \
            w->command->operand_count > 3 ? w->command->operands[3].tensor : NULL;                 \
        const T *all = biases ? mr_tensor_data(biases) : NULL;                                     \
        int64_t columns = c->grid[1], apart = c->out_stride[1];                                    \
        for (int64_t o = 0; o < c->outputs; o++) {                                                 \
            T bias = all ? all[(group * c->outputs + o) * biases->stride[0]] : 0;                  \
            const T *from = (const T *)w->sums + o * w->sums_of_output;                            \
            T *to = (T *)mr_tensor_data(w->command->operands[0].tensor) + c->out_offset +          \
                    image * c->out_image + group * c->out_group + o * c->out_output +              \
                    y * c->out_stride[0];                                                          \
            for (int64_t row = 0; row < rows; row++) {                                             \
                int64_t x = first - row * columns, stop = mr_least(columns, end - row * columns);  \
                if (x < 0) x = 0;                                                                  \
                if (apart == 1) {                                                                  \
                    MR_INDEPENDENT                                                                 \
                    for (int64_t i = x; i < stop; i++) to[i] = from[i] + bias;                     \
                } else {                                                                           \
                    for (int64_t i = x; i < stop; i++) to[i * apart] = from[i] + bias;             \
                }                                                                                  \
                from += w->sum_pitch;                                                              \
                to += c->out_stride[0];                                                            \
            }                                                                                      \
        }                                                                                          \
    }

#define FUSED fmaf
DIRECT(f32, float)
#undef FUSED
#define FUSED fma
DIRECT(f64, double)

/* Positions [first, end) of a group, all of rows [y, y + rows) of one image. */
static void run_band(const work *w, int64_t group, int64_t image, int64_t y, int64_t rows,
                     int64_t first, int64_t end) {
    bool single = w->command->operands[0].tensor->dtype == MR_F32;
    int64_t begin = (image * w->c->grid[0] + y) * w->c->grid[1];
    (single ? sum_f32 : sum_f64)(w, image, group, y, rows);
    (single ? write_f32 : write_f64)(w, image, group, y, rows, first - begin, end - begin);
}

mr_status mr_conv_run_direct(const mr_command *command, const mr_conv *c, int64_t group,
                             int64_t first, int64_t end) {
    work w;
    MR_TRY(begin_work(&w, command, c));
    for (int64_t at = first; at < end;) {
        int64_t line = at / c->grid[1], image = line / c->grid[0], y = line % c->grid[0];
        int64_t last = (end - 1) / c->grid[1]; /* row that is wanted */
        int64_t rows = mr_least(mr_least(w.rows, c->grid[0] - y), last - line + 1);
        int64_t stop = mr_least(end, (line + rows) * c->grid[1]);
        run_band(&w, group, image, y, rows, at, stop);
        at = stop;
    }
    free_work(&w);
    return MR_OK;
}
