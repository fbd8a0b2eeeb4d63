/* Inside src/ops and src/cuda: a tensor as lines along one dim, which stand side by side in the others. For rows that
 * work along a dim (scan.c, sort.c). */
#ifndef MR_OPS_LINE_H
#define MR_OPS_LINE_H

#include "tensor/tensor.h"

typedef struct {
    int64_t length, count; /* of a line; of lines */
    int ndim;              /* the dims that number the lines, in row-major order */
    int64_t shape[MR_MAX_DIMS];
} mr_lines;

/* Where the lines of one tensor are. */
typedef struct {
    int64_t step; /* from element to element of a line */
    int64_t stride[MR_MAX_DIMS];
} mr_line_strides;

/* A tensor without dims is one line of one element. */
static inline mr_lines mr_lines_of(const mr_tensor *t, int dim) {
    mr_lines lines = {.length = 1, .count = 1};
    for (int d = 0; d < t->ndim; d++) {
        if (d == dim) {
            lines.length = t->shape[d];
        } else {
            lines.shape[lines.ndim++] = t->shape[d];
            lines.count *= t->shape[d];
        }
    }
    return lines;
}

static inline mr_line_strides mr_line_strides_of(const mr_tensor *t, int dim) {
    mr_line_strides s = {.step = 1};
    int n = 0;
    for (int d = 0; d < t->ndim; d++) {
        if (d == dim) s.step = t->stride[d];
        else s.stride[n++] = t->stride[d];
    }
    return s;
}

/* Where the first element of a line is. */
static inline int64_t mr_line_offset(const mr_lines *lines, const mr_line_strides *s,
                                     int64_t line) {
    int64_t offset = 0;
    for (int d = lines->ndim; d-- > 0;) {
        offset += line % lines->shape[d] * s->stride[d];
        line /= lines->shape[d];
    }
    return offset;
}

#endif
