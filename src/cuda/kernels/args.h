/* What a launch hands to the built-in kernels, by value: included by cuda/launch*.c as C and by the kernels
 * as CUDA C++. Strides count elements; dims are in reverse, the innermost first, sizes of 1 gone and
 * neighbours that lie one after the other merged. */
#ifndef MR_CUDA_KERNELS_ARGS_H
#define MR_CUDA_KERNELS_ARGS_H

#include <stdint.h>

enum { MR_CUDA_DIMS = 8, MR_CUDA_INPUTS = 3 };

/* Threads a block of every kernel whose comment says nothing else. */
enum { MR_CUDA_THREADS = 256 };

/* A shape that positions are taken apart by. */
typedef struct {
    int64_t size[MR_CUDA_DIMS];
    /* position / size[d] = (umulhi(position, multiplier[d]) + position) >> shift[d], below 2^31. */
    uint32_t multiplier[MR_CUDA_DIMS];
    uint8_t shift[MR_CUDA_DIMS];
    uint32_t ndim; /* at least 1 */
    uint32_t wide; /* there are 2^31 positions or more: divide in 64 bits */
} mr_cuda_shape;

typedef struct {
    int64_t stride[MR_CUDA_DIMS];
} mr_cuda_strides;

/* How an elementwise kernel gets one of its inputs. */
enum {
    MR_CUDA_TENSOR,  /* one element for each of the output */
    MR_CUDA_NUMBER,  /* `number` */
    MR_CUDA_ELEMENT, /* the one element that `in` points to, of dtype `dtype` */
};

/* All tensors dense, 16-byte aligned and of the types that the kernel computes with. */
typedef struct {
    void *out;
    const void *in[MR_CUDA_INPUTS];
    uint64_t number[MR_CUDA_INPUTS]; /* the bits, as the kernel's type */
    uint64_t count;
    uint8_t kind[MR_CUDA_INPUTS];
    uint8_t dtype[MR_CUDA_INPUTS];
    uint8_t out_dtype; /* mr_dtype */
} mr_cuda_dense;

/* Any strides, any dtypes. */
typedef struct {
    mr_cuda_dense d;
    uint32_t own; /* all tensors are of the kernel's own types */
    mr_cuda_shape shape;
    mr_cuda_strides stride[1 + MR_CUDA_INPUTS]; /* the output's first */
} mr_cuda_strided;

/* Rows and columns of one matrix are exchanged, in each of `batch` matrices: element (i, j) of the output, at
 * i * out_row + j, is at i + j * in_row of the input. Both strides count elements. */
typedef struct {
    void *out;
    const void *in;
    int64_t rows, columns; /* of the output */
    int64_t out_row, in_row;
    int64_t batch_out, batch_in;
    uint32_t column_tiles, row_tiles;
    uint32_t aligned; /* rows of both sides begin at multiples of 16 bytes */
} mr_cuda_transpose;

/* `bytes` bytes of a pattern that repeats every 16. */
typedef struct {
    void *out;
    uint64_t bytes;
    uint32_t pattern[4];
} mr_cuda_fill;

/* Element i of the output is made of i. */
typedef struct {
    void *out;
    uint64_t count;
    uint64_t seed, offset;
    double real[3];
    int64_t integer[2];
    uint32_t dense; /* and aligned to 16 bytes: `shape` and `stride` do not count */
    mr_cuda_shape shape;
    mr_cuda_strides stride;
} mr_cuda_generate;

/* randperm: sorts `keys` (a power of two of them) by (key, position). */
typedef struct {
    uint64_t *keys;
    uint64_t *positions;
    uint64_t count, padded;
    uint64_t block, step; /* of the bitonic network */
    uint64_t seed, offset;
    void *out;
    uint32_t dtype;
    mr_cuda_shape shape;
    mr_cuda_strides stride;
} mr_cuda_sort;

/* What the fold of one reduction keeps: 24 bytes, as the fold sees fit. */
typedef struct {
    double f, g;
    int64_t i;
} mr_cuda_cell;

/* A block of MR_CUDA_THREADS threads makes `width` outputs with `lanes` threads each (width * lanes =
 * MR_CUDA_THREADS, both powers of two); blockIdx.x counts groups of `width` outputs, blockIdx.y the `splits`
 * parts of `part` elements that each output's elements are cut into. */
typedef struct {
    const void *in;
    void *out;
    int64_t outputs, length;
    int64_t part;
    uint32_t lanes, width, splits;
    uint32_t columns; /* neighbouring outputs' elements are neighbours: threads go along them */
    uint32_t vectors; /* the elements of an output are dense, and each output's begin at 16 bytes */
    uint32_t out_dtype;
    double correction;
    mr_cuda_shape kept, reduced, out_shape;
    mr_cuda_strides kept_stride, reduced_stride, out_stride;
    mr_cuda_cell *partial; /* [group][split][width], where splits > 1 */
    uint32_t *arrived;     /* [group], zero between launches */
} mr_cuda_reduce;

/* c[batch][i][j] = sum over l of a[batch][i][l] b[batch][l][j]; c is dense. */
typedef struct {
    const void *a, *b;
    void *c;
    int64_t m, n, k;
    int64_t a_row, a_column, b_row, b_column;
    uint32_t row_tiles, column_tiles;
    mr_cuda_shape batch;
    mr_cuda_strides a_batch, b_batch;
} mr_cuda_product;

/* One operand of mr.op. */
typedef struct {
    void *data;
    int64_t count;
    uint8_t dtype;
    uint8_t reads, writes;
    uint8_t ndim;
    int64_t size[MR_CUDA_DIMS], stride[MR_CUDA_DIMS]; /* as in the tensor, the outermost first */
} mr_cuda_operand;

enum { MR_CUDA_INLINE_OPERANDS = 16 };

typedef struct {
    uint64_t mix;
    uint64_t duration_ns;
    int64_t items;
    uint32_t operand_count;
    const mr_cuda_operand *many; /* device memory; NULL: `few` */
    mr_cuda_operand few[MR_CUDA_INLINE_OPERANDS];
} mr_cuda_abstract;

#endif
