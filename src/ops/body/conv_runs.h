/* Inside src/ops only: the elements of its source that the taps of a convolution read, a run of positions at a time. */
#ifndef MR_OPS_BODY_CONV_RUNS_H
#define MR_OPS_BODY_CONV_RUNS_H

#include "ops/body.h"
#include "ops/network.h"

#include <string.h>

enum { MR_CONV_DEPTH = 192 }; /* taps of a panel: 48 columns of them fit the first-level cache */

/* conv_direct.c: whether a part of a convolution is one that it carries out, and positions [first, end) of a group. */
bool mr_conv_is_direct(const mr_conv *c);
mr_status mr_conv_run_direct(const mr_command *command, const mr_conv *c, int64_t group,
                             int64_t first, int64_t end);

/* conv_weight_direct.c: the same for conv2d_weight, and its items. */
bool mr_conv_weight_is_direct(const mr_conv *c);
mr_status mr_conv_weight_run_direct(const mr_command *command, int64_t first, int64_t end);

/* Neighbouring positions of one row of the grid. */
typedef struct {
    int64_t image, row, column;
    int at, length;   /* in the block of positions */
    int tile, inside; /* at: where its tile begins in the block, and how far behind that it is */
} mr_conv_piece;

static inline int64_t mr_least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Cuts positions [first, first + count) at each multiple of `width`; returns the number of pieces. */
static inline int mr_conv_cut(const mr_conv *c, int64_t first, int64_t count, int64_t width,
                              mr_conv_piece *out_pieces) {
    int pieces = 0;
    int64_t column = first % c->grid[1], row = first / c->grid[1] % c->grid[0],
            image = first / (c->grid[0] * c->grid[1]);
    for (int64_t at = 0; at < count;) {
        int64_t length = mr_least(c->grid[1] - column, mr_least(count - at, width - at % width));
        int inside = (int)(at % width);
        out_pieces[pieces++] =
            (mr_conv_piece){image, row, column, (int)at, (int)length, (int)at - inside, inside};
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

/* The part of a piece that a tap reads: its elements [first, end). The piece begins at `offset` of the channel, perhaps
 * outside it. */
typedef struct {
    int64_t offset;
    int32_t first, end;
} mr_conv_sight;

static inline mr_conv_sight mr_conv_look(const mr_conv *c, const mr_conv_piece *p, int64_t a,
                                         int64_t b) {
    int64_t y = p->row * c->step[0] + a * c->tap_step[0] + c->start[0], first = 0, end = 0;
    int64_t x = p->column * c->step[1] + b * c->tap_step[1] + c->start[1];
    if (y >= 0 && y < c->source_size[0]) mr_conv_inside(c, x, p->length, &first, &end);
    return (mr_conv_sight){p->image * c->source_image + y * c->source_stride[0] +
                               x * c->source_stride[1],
                           (int32_t)first, (int32_t)end};
}

/* The elements of a source that lies densely, [0, count); 0: it does not. A copy may read any of them. */
static inline int64_t mr_conv_readable(const mr_conv *c, const mr_tensor *source) {
    return source->contiguous && c->step[1] == 1 ? source->numel : 0;
}

/* mr_conv_see_<tag>: writes the elements of a piece, and 0 for those outside. `at`: where the channel begins in the
 * tensor `all`. A few elements beside a row are soon overwritten, which is quicker than a copy of odd length. And most
 * of what lies outside is one element, for which a call of memset takes longer than the rest. */
#define MR_CONV_SEE(tag, T)                                                                        \
    static inline void mr_conv_clear_##tag(T *to, int64_t count) {                                 \
        if (count == 1) to[0] = 0;                                                                 \
        else if (count > 0) memset(to, 0, (size_t)count * sizeof *to);                             \
    }                                                                                              \
    static inline void mr_conv_see_##tag(const T *all, int64_t at, int64_t readable,               \
                                         int64_t apart, const mr_conv_sight *s, int64_t length,    \
                                         T *to) {                                                  \
        enum { WHOLE = 16 };                                                                       \
        int64_t begin = at + s->offset, i = s->first;                                              \
        const T *from = all + begin;                                                               \
        if (length % WHOLE == 0 && begin >= 0 && begin + length <= readable && i < s->end) {       \
            for (int64_t j = 0; j < length; j += WHOLE)                                            \
                memcpy(to + j, from + j, WHOLE * sizeof *to);                                      \
            i = s->end;                                                                            \
        } else if (apart == 1) {                                                                   \
            for (; i < s->end; i++) to[i] = from[i];                                               \
        } else {                                                                                   \
            for (; i < s->end; i++) to[i] = from[i * apart];                                       \
        }                                                                                          \
        mr_conv_clear_##tag(to, s->first);                                                         \
        mr_conv_clear_##tag(to + i, length - i);                                                   \
    }
MR_CONV_SEE(f32, float)
MR_CONV_SEE(f64, double)

#endif
