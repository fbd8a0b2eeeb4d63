/* The arguments of a launch to the built-in kernels, by value: included by cuda/family as C and by the kernels as
 * CUDA C++. Strides count elements; dims are in reverse, the innermost first, sizes of 1 gone and neighbours that lie
 * one after the other merged. */
#ifndef MR_CUDA_KERNELS_ARGS_H
#define MR_CUDA_KERNELS_ARGS_H

#include "ops/pool_window.h"

#include <stdint.h>

enum { MR_CUDA_DIMS = 8, MR_CUDA_INPUTS = 3 };

/* Threads a block of every kernel whose comment says nothing else. */
enum { MR_CUDA_THREADS = 256 };

/* Bytes of a dense result that a block computes, in the result's type or in the type of the computation: a vector of 16
 * a thread. */
enum { MR_CUDA_VECTORS = 16 * MR_CUDA_THREADS };

/* Elements that a block of the strided kernels makes, MR_CUDA_THREADS apart. */
enum { MR_CUDA_STRIDED = 4 * MR_CUDA_THREADS };

/* Threads a block of the kernels that make elements of positions, and elements that it makes. */
enum { MR_CUDA_GENERATORS = 128, MR_CUDA_GENERATED = 32 * MR_CUDA_GENERATORS };

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

/* Any strides, any dtypes; or in vectors of 16 bytes along the innermost dim, which then `count`, `shape` and `stride`
 * are of (mr_cuda_in_vectors). */
typedef struct {
    mr_cuda_dense d;
    uint32_t own; /* all tensors are of the kernel's own types */
    mr_cuda_shape shape;
    mr_cuda_strides stride[1 + MR_CUDA_INPUTS]; /* the output's first */
} mr_cuda_strided;

/* Transposes each of `batch` matrices. Element (i, j) of the output, at i * out_row + j, is at i + j * in_row of the
 * input. Both strides count elements. */
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

/* The inputs of Philox besides the number of the block. The key of each round is computed here once, and not by every
 * thread: the kernels take it from the arguments without an instruction. */
enum { MR_CUDA_ROUNDS = 10 };
typedef struct mr_cuda_philox mr_cuda_philox;
struct mr_cuda_philox {
    uint32_t key[MR_CUDA_ROUNDS][2];
    uint32_t offset[2];
    /* In a graph: a launch writes it before it runs. Its key counts, and both offsets are added. Otherwise NULL. */
    const mr_cuda_philox *launch;
};

/* Element i of the output is made of i. */
typedef struct {
    void *out;
    uint64_t count;
    mr_cuda_philox philox;
    double real[3];
    float single[2]; /* the first two, rounded: dear to do for each thread */
    int64_t integer[2];
    uint32_t dense; /* and aligned to 16 bytes: `shape` and `stride` do not count */
    mr_cuda_shape shape;
    mr_cuda_strides stride;
} mr_cuda_generate;

/* Steps of optimisers: lists of tensors that are dense and of the kernel's type. */
enum { MR_CUDA_STEP_TENSORS = 64, MR_CUDA_STEP_BLOCK = 8 * MR_CUDA_THREADS };
typedef struct {
    double number[8]; /* of an mr_step */
    uint32_t flags, count;
    uint64_t aligned; /* bit i: all tensors of parameter i begin at multiples of 16 bytes */
    void *p[MR_CUDA_STEP_TENSORS], *s0[MR_CUDA_STEP_TENSORS], *s1[MR_CUDA_STEP_TENSORS];
    const void *g[MR_CUDA_STEP_TENSORS];
    uint64_t numel[MR_CUDA_STEP_TENSORS];
    uint32_t end[MR_CUDA_STEP_TENSORS]; /* the number of blocks of the parameters up to this one */
} mr_cuda_step;

/* randperm: sorts `keys` (a power of two of them) by (key, position). */
typedef struct {
    uint64_t *keys;
    uint64_t *positions;
    uint64_t count, padded;
    uint64_t block, step; /* of the bitonic network */
    mr_cuda_philox philox;
    void *out;
    uint32_t dtype;
    mr_cuda_shape shape;
    mr_cuda_strides stride;
} mr_cuda_sort;

/* The state of the fold of one reduction: 24 bytes, as the fold sees fit. */
typedef struct {
    double f, g;
    int64_t i;
} mr_cuda_cell;

/* Blocks of a reduction's kernel that an SM has registers for: so many fill the device. */
enum { MR_CUDA_REDUCE_BLOCKS = 4 };

/* A reduction. The elements of an output are `outers` runs of `inner` elements. blockIdx.x counts groups of outputs,
 * blockIdx.y the `splits` parts that each output's elements are cut into: of `outer_part` runs, `part` units of each.
 * MR_CUDA_THREADS = width * lanes (powers of two), but for tiles: `lanes` threads share an output, or, in columns, a
 * unit of outputs.
 *
 *   rows     the elements of a run are neighbours, if a unit is more than 1
 *   tile     rows of one run each, and one after the other: a block takes `width` of them through shared memory
 *   columns  the elements of neighbouring outputs are neighbours */
typedef struct {
    const void *in;
    void *out;
    int64_t outputs, length;
    int64_t inner, inner_stride, outers;
    int64_t part, outer_part;
    uint32_t inner_parts; /* splits = inner_parts * the parts of `outers` */
    uint32_t splits;
    uint32_t lanes, width;
    /* elements that are loaded as one, aligned: 1, or 16 bytes of them (columns: at most 4) */
    uint32_t unit;
    uint32_t out_dtype;
    double correction;
    mr_cuda_shape kept, outer, row; /* `row`: of a tile's rows, for the division by their length */
    mr_cuda_strides kept_stride, out_stride; /* over `kept` */
    mr_cuda_strides outer_stride;
    mr_cuda_cell *partial; /* [group][split][width][unit], where splits > 1 */
    uint32_t *arrived;     /* [group], zero between launches */
} mr_cuda_reduce;

/* Bytes of a row that each of its threads can keep in registers. */
enum { MR_CUDA_HELD = 128 };

/* A block of MR_CUDA_THREADS threads handles `width` rows with `lanes` threads each (width * lanes = MR_CUDA_THREADS,
 * both powers of two). blockIdx.x counts groups of `width` rows. Rows are cut into `splits` parts of `part` elements,
 * and blockIdx.y counts these. */
typedef struct {
    const void *in;
    void *out;
    int64_t rows, length;
    int64_t part;
    int64_t in_step, out_step; /* from element to element of a row */
    uint32_t lanes, width, splits;
    uint32_t columns; /* neighbouring rows' elements are neighbours: threads go along them */
    uint32_t held;    /* a row is read once, of the kernel's type, and kept in registers */
    uint32_t writes;  /* splits > 1: `cells` are complete, and it is the results' turn */
    uint32_t in_dtype, out_dtype;
    uint32_t own; /* both are of the kernel's type */
    mr_cuda_shape kept;
    mr_cuda_strides in_kept, out_kept;
    mr_cuda_cell *cells; /* [row][split], where splits > 1: maximum, sum */
} mr_cuda_softmax;

/* Where the elements come from: ops/move.h. The dims are in reverse, and all there. */
typedef struct {
    const void *in;
    void *out;
    uint64_t count;
    uint32_t ndim;
    int32_t rolled, band;
    int64_t size[MR_CUDA_DIMS], stride[MR_CUDA_DIMS];
    int64_t offset, shift, diagonal;
    mr_cuda_shape out_shape;
    mr_cuda_strides out_stride;
} mr_cuda_move;

/* Rows and columns of the result that a block makes. */
enum { MR_CUDA_TILE = 64, MR_CUDA_SMALL_TILE = 16 };

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

/* n / value = (umulhi(n, multiplier) + n) >> shift, for n below 2^31. */
typedef struct {
    uint32_t value, multiplier, shift;
} mr_cuda_divisor;

/* Threads of a block of a convolution. Coordinates and sizes that near_taps (conv_taps.cuh) takes are less. */
enum { MR_CUDA_CONV_THREADS = 128, MR_CUDA_CONV_NEAR = 1 << 14 };

/* The kernels of conv2d and conv2d_input, then those of conv2d_weight, by the tile that a block makes. X(id, name,
 * taps, type, how, rows, columns, arguments of the template: how a tile is multiplied). family/conv.c chooses. */
#define MR_CUDA_CONV_LIST(X)                                                                       \
    X(ANY_F64, any_f64, any, double, plain, 32, 64, double, 32, 64, 4, 4)                          \
    X(ANY_F32, any_f32, any, float, plain, 64, 128, float, 64, 128, 8, 8)                          \
    X(LARGE, f32_64x128, near, float, plain, 64, 128, float, 64, 128, 8, 8, 16)                    \
    X(SMALL, f32_64x64, near, float, plain, 64, 64, float, 64, 64, 8, 4, 16)                       \
    X(LOW, f32_32x128, near, float, plain, 32, 128, float, 32, 128, 4, 8)                          \
    X(TF32_LARGE, tf32_64x128, near, float, tensor, 64, 128, 64, 128)                              \
    X(TF32_SMALL, tf32_64x64, near, float, tensor, 64, 64, 64, 64, 32)
#define MR_CUDA_CONV_WEIGHT_LIST(X)                                                                \
    X(WEIGHT_ANY_F64, weight_any_f64, any, double, plain, 32, 64, double, 32, 64, 4, 4)            \
    X(WEIGHT_ANY_F32, weight_any_f32, any, float, plain, 64, 128, float, 64, 128, 8, 8)            \
    X(WEIGHT_LARGE, weight_f32_128x64, near, float, plain, 128, 64, float, 128, 64, 8, 8)          \
    X(WEIGHT_SMALL, weight_f32_64x64, near, float, plain, 64, 64, float, 64, 64, 4, 8)             \
    X(WEIGHT_NARROW, weight_f32_64x32, near, float, plain, 64, 32, float, 64, 32, 4, 4)            \
    X(WEIGHT_TF32_LARGE, weight_tf32_128x64, near, float, tensor, 128, 64, 128, 64)                \
    X(WEIGHT_TF32_SMALL, weight_tf32_64x64, near, float, tensor, 64, 64, 64, 64)                   \
    X(WEIGHT_TF32_NARROW, weight_tf32_64x32, near, float, tensor, 64, 32, 64, 32)
/* Without a tile: at most so many outputs of a group, all made by one thread, and a block takes MR_CUDA_CONV_THREADS
 * positions. */
#define MR_CUDA_CONV_THIN_LIST(X)                                                                  \
    X(THIN_1, thin_1, 1)                                                                           \
    X(THIN_4, thin_4, 4)

/* mr_conv (ops/network.h). The blocks count tiles of columns, then tiles of rows, then groups (conv2d_weight: groups of
 * chunks); columns are positions, or, of conv2d_weight, the `depth` taps of an output. */
typedef struct {
    const void *source,
        *weights;     /* conv2d_weight: `weights` is the gradient, which lies as out_... says */
    const void *bias; /* NULL: none */
    void *out;
    uint32_t positions, depth, outputs, groups;
    uint32_t column_tiles, row_tiles;
    uint32_t chunk; /* conv2d_weight: positions of a chunk */
    mr_cuda_divisor rows, columns, taps, tap_columns;
    uint32_t source_size[2];
    int32_t step[2], tap_step[2], start[2];
    int64_t source_image, source_group, source_channel, source_stride[2];
    int64_t weight_offset, weight_group, weight_output, weight_channel, weight_tap[2];
    int64_t out_offset, out_image, out_group, out_output, out_stride[2];
    int64_t bias_stride;
    uint32_t vectors; /* lines of the result are whole vectors of 16 bytes */
} mr_cuda_conv;

/* A pool or its gradient. `other` is the input, or the gradient of the output; made densely: the
 * elements of `out`. For planes that are halved, `count`, `rows_made` and `columns_made` count
 * pairs of windows. */
typedef struct {
    void *out;
    const void *other;
    int64_t *positions; /* NULL: none */
    uint32_t count;
    mr_cuda_divisor channels, rows_made, columns_made;
    mr_pool_line rows, columns;
    mr_cuda_divisor row_stride, column_stride;
    int32_t include_padding;
    int64_t divisor; /* 0: the elements of a window */
    int64_t other_stride[4], positions_stride[4];
} mr_cuda_pool;

/* nll_loss: `count` targets of `shape`, over which the strides are. loss_backward makes `x`. */
typedef struct {
    void *x, *out, *total;
    const void *target, *weight, *gradient;
    uint64_t count;
    int64_t ignored, classes, class_step, weight_step;
    uint32_t wide; /* targets are i64, else i32 */
    uint32_t mean;
    uint32_t each; /* there is a loss for each target */
    mr_cuda_shape shape;
    mr_cuda_strides target_stride, x_stride, gradient_stride;
} mr_cuda_loss;

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
