/* Inside src/ops only: what the taps of a convolution see of its source, a run of positions at a time. */
#ifndef MR_OPS_CONV_RUNS_H
#define MR_OPS_CONV_RUNS_H

#include "ops/body.h"
#include "ops/network.h"

/* Neighbouring positions of one row of the grid. */
typedef struct {
    int64_t image, row, column;
    int at, length; /* in the block of positions */
} mr_conv_piece;

static inline int64_t mr_least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* The pieces of positions [first, first + count), none of which goes beyond a multiple of `width`; returns how many. */
static inline int mr_conv_cut(const mr_conv *c, int64_t first, int64_t count, int64_t width,
                              mr_conv_piece *out_pieces) {
    int pieces = 0;
    int64_t column = first % c->grid[1], row = first / c->grid[1] % c->grid[0],
            image = first / (c->grid[0] * c->grid[1]);
    for (int64_t at = 0; at < count;) {
        int64_t length = mr_least(c->grid[1] - column, mr_least(count - at, width - at % width));
        out_pieces[pieces++] = (mr_conv_piece){image, row, column, (int)at, (int)length};
        at += length;
        column += length;
        if (column == c->grid[1]) column = 0, row++;
        if (row == c->grid[0]) row = 0, image++;
    }
    return pieces;
}

/* The columns of a piece whose tap, at column `start` of the source for the first, lies inside. */
static inline void mr_conv_inside(const mr_conv *c, int64_t start, int64_t length,
                                  int64_t *out_first, int64_t *out_end) {
    int64_t step = c->step[1], first = 0, end = length;
    if (start < 0) first = mr_least((-start + step - 1) / step, length);
    if (start + (length - 1) * step >= c->source_size[1])
        end = start < c->source_size[1] ? (c->source_size[1] - start - 1) / step + 1 : 0;
    *out_first = first;
    *out_end = end < first ? first : end;
}

/* mr_conv_see_<tag>: what tap (a, b) of a channel sees of a piece; 0 outside. `source`: the group's first element. */
#define MR_CONV_SEE(tag, T)                                                                        \
    static inline void mr_conv_see_##tag(const mr_conv *c, const T *source, int64_t channel,       \
                                         int64_t a, int64_t b, const mr_conv_piece *p, T *to) {    \
        int64_t y = p->row * c->step[0] + a * c->tap_step[0] + c->start[0], first = 0, end = 0;    \
        int64_t x = p->column * c->step[1] + b * c->tap_step[1] + c->start[1];                     \
        if (y >= 0 && y < c->source_size[0]) mr_conv_inside(c, x, p->length, &first, &end);        \
        int64_t apart = c->step[1] * c->source_stride[1];                                          \
        const T *from = source + p->image * c->source_image + channel * c->source_channel +        \
                        y * c->source_stride[0] + x * c->source_stride[1];                         \
        for (int64_t i = 0; i < first; i++) to[i] = 0;                                             \
        if (apart == 1)                                                                            \
            for (int64_t i = first; i < end; i++) to[i] = from[i];                                 \
        else                                                                                       \
            for (int64_t i = first; i < end; i++) to[i] = from[i * apart];                         \
        for (int64_t i = end; i < p->length; i++) to[i] = 0;                                       \
    }
MR_CONV_SEE(f32, float)
MR_CONV_SEE(f64, double)

#endif
