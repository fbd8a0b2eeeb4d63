/* The windows of pools, in one dim: compiled here as C and for kernels as CUDA, so that both see the same elements. */
#ifndef MR_OPS_POOL_WINDOW_H
#define MR_OPS_POOL_WINDOW_H

#include <stdint.h>

/* `adaptive`: out windows of about equal size cover the input, and the rest does not count. */
typedef struct {
    int32_t in, out; /* elements of the input, of the output */
    int32_t size, stride, padding, dilation;
    int32_t adaptive;
} mr_pool_line;

/* Output o is made of the inputs [begin, end); begin may lie in the padding. */
static inline int32_t mr_pool_begin(const mr_pool_line *l, int32_t o) {
    return l->adaptive ? (int32_t)((int64_t)o * l->in / l->out) : o * l->stride - l->padding;
}
static inline int32_t mr_pool_end(const mr_pool_line *l, int32_t o) {
    if (l->adaptive) return (int32_t)((((int64_t)o + 1) * l->in + l->out - 1) / l->out);
    int32_t end = mr_pool_begin(l, o) + l->size, most = l->in + l->padding;
    return end < most ? end : most;
}

/* Input i may be in the windows of the outputs [first, last]; with a dilation, in not all of them. */
static inline int32_t mr_pool_first(const mr_pool_line *l, int32_t i) {
    if (l->adaptive) return (int32_t)((int64_t)i * l->out / l->in);
    int32_t before = i + l->padding - (l->size - 1) * l->dilation;
    return before <= 0 ? 0 : (int32_t)(((int64_t)before + l->stride - 1) / l->stride);
}
static inline int32_t mr_pool_last(const mr_pool_line *l, int32_t i) {
    if (l->adaptive) return (int32_t)((((int64_t)i + 1) * l->out + l->in - 1) / l->in) - 1;
    int32_t last = (i + l->padding) / l->stride;
    return last < l->out - 1 ? last : l->out - 1;
}

/* By how many an average of the window (y, x) divides. `override` 0: by the elements, with or without the padding. */
static inline double mr_pool_divisor(const mr_pool_line *rows, int32_t y,
                                     const mr_pool_line *columns, int32_t x,
                                     int32_t include_padding, int64_t override) {
    if (override) return (double) override;
    const mr_pool_line *line[2] = {rows, columns};
    const int32_t at[2] = {y, x};
    double count = 1;
    for (int d = 0; d < 2; d++) {
        int32_t begin = mr_pool_begin(line[d], at[d]), end = mr_pool_end(line[d], at[d]);
        if (!include_padding && begin < 0) begin = 0;
        if (!include_padding && end > line[d]->in) end = line[d]->in;
        count *= end - begin;
    }
    return count;
}

#endif
