/* How operands lie in memory, as kernels take it: a shape with the strides of each operand. */
#ifndef MR_CUDA_LAYOUT_H
#define MR_CUDA_LAYOUT_H

#include "cuda/kernels/args.h"
#include "cuda/state.h"

/* `count` operands with their strides over a shape; operand 0 is the output. */
typedef struct {
    int count;
    int ndim;
    int64_t size[MR_MAX_DIMS]; /* the outermost first */
    int64_t stride[1 + MR_CUDA_INPUTS][MR_MAX_DIMS];
} cuda_layout;

/* A layout of a shape alone, then operands, aligned at the last dims, broadcast to it. */
void mr_cuda_layout_begin(cuda_layout *layout, int ndim, const int64_t *size);
void mr_cuda_layout_add(cuda_layout *layout, int ndim, const int64_t *size, const int64_t *stride);
static inline void mr_cuda_layout_tensor(cuda_layout *layout, const mr_tensor *t) {
    mr_cuda_layout_add(layout, t->ndim, t->shape, t->stride);
}

/* Drops sizes of 1, merges dims that lie one after the other for all operands, and writes the shape and the
 * strides as kernels take them. `sort`: positions mean nothing, so dims may be put in the order in which the
 * output lies in memory. */
void mr_cuda_layout_end(cuda_layout *layout, bool sort, mr_cuda_shape *out_shape,
                        mr_cuda_strides *out_strides);

/* Makes args->d.count, the shape and the strides those of vectors of `length` elements. It does
 * so if there are fewer than 2^31 vectors, and each operand (the output and `inputs` more) begins
 * at a multiple of 16 bytes. Along the innermost dim an operand must have neighbouring elements,
 * or one element for all of it. */
bool mr_cuda_in_vectors(mr_cuda_strided *args, int inputs, int64_t length);

static inline uint64_t mr_cuda_blocks(uint64_t items, uint64_t a_block) {
    return (items + a_block - 1) / a_block;
}

/* One operand's elements are all neighbours, in order. */
static inline bool mr_cuda_is_run(const mr_cuda_shape *shape, const mr_cuda_strides *strides) {
    return shape->ndim == 1 && (strides->stride[0] == 1 || shape->size[0] == 1);
}
static inline bool mr_cuda_aligned(CUdeviceptr address) {
    return address % 16 == 0;
}

mr_cuda_divisor mr_cuda_divide_by(int64_t value);

#endif
