/* The arguments of a launch to the kernels of the rows that put elements in order or choose some of them: scan.cu,
 * sort.cu, select.cu, compact.cu, index.cu. As args.h, included as C by the launcher and as CUDA C++ by the kernels. */
#ifndef MR_CUDA_KERNELS_ORDER_ARGS_H
#define MR_CUDA_KERNELS_ORDER_ARGS_H

#include "cuda/kernels/args.h"

/* The longest list of numbers, one for each tile, that every block adds up again to find the sum before its tile. For
 * longer lists, a kernel makes prefix sums first. */
enum { MR_CUDA_ADDED_UP = 4096 };

/* ------------------------------------------------------------------------- scans */

/* Elements of a line scanned by a block, or by a warp if each warp has a line of its own. */
enum { MR_CUDA_SCAN_TILE = 16 * MR_CUDA_THREADS, MR_CUDA_SCAN_WARP = MR_CUDA_SCAN_TILE / 8 };

/* cumsum, cumprod. `kept` has the dims that number the lines; strides are the input's and the output's. */
typedef struct {
    const void *in;
    void *out;
    uint64_t lines;
    int64_t length;
    uint32_t tiles; /* of a line */
    uint32_t in_dtype, out_dtype;
    uint32_t vectors;  /* four neighbours are aligned, in and out */
    uint32_t warps;    /* a warp has a line */
    uint32_t prefixes; /* `cells` have the sums before each tile */
    int64_t step[2];
    mr_cuda_shape kept;
    mr_cuda_strides stride[2];
    void *cells; /* [line][tile], where there are several tiles: their totals */
} mr_cuda_scan;

/* ------------------------------------------------------------------------- sorts */

enum { MR_CUDA_DIGIT_BITS = 8, MR_CUDA_DIGITS = 1 << MR_CUDA_DIGIT_BITS };

/* Elements whose digits a block counts and moves, and those that a block sorts by itself: whole lines. */
enum { MR_CUDA_SORT_TILE = 16 * MR_CUDA_THREADS, MR_CUDA_SORT_LINE = 8 * MR_CUDA_THREADS };

/* A pass of a sort of lines by 8 bits of the keys, from `shift` on. Each key carries a payload: its position in the
 * line, or an element. Tiles do not reach beyond the end of a line. */
typedef struct {
    const void *keys_in;
    void *keys_out;
    const void *payload_in; /* NULL: positions, which are in order */
    void *payload_out;
    uint64_t length, pitch; /* of a line; from line to line, of keys and payloads */
    uint32_t *counts;       /* [line][digit][tile] */
    uint32_t *totals;       /* [line][digit] */
    uint32_t tiles;         /* of a line */
    uint32_t shift;
} mr_cuda_radix;

/* sort, topk: lines of `length` elements; the first `taken` in order are the results. The strides are of the
 * input, of the values and of the positions: between lines, over `kept`, and in a line. */
typedef struct {
    const void *in;
    void *values; /* NULL: not wanted */
    int64_t *order;
    void *keys; /* [line][pitch] */
    /* [line][pitch]; of a block's own lines: where their elements are, or NULL: in order */
    uint32_t *positions;
    uint32_t *counts; /* as in mr_cuda_radix, of the lowest digits */
    uint64_t lines, length, pitch, taken;
    mr_cuda_shape kept;
    mr_cuda_strides stride[3];
    int64_t step[3];
    uint32_t descending;
    uint32_t bits;  /* of a key */
    uint32_t tiles; /* of a line, or of its results */
    uint32_t group; /* lines of a block that sorts them by itself */
} mr_cuda_order;

/* The known part of the last key that topk takes of a line. */
typedef struct {
    uint64_t key;  /* its digits from `shift` on, as far as they are known */
    uint32_t left; /* how many are taken of the elements that have these digits */
} mr_cuda_last;

/* topk of long lines: the digits of the last key that is taken, the highest first; then the positions of the taken
 * elements. */
typedef struct {
    mr_cuda_order order; /* `positions`: [line][taken] */
    mr_cuda_last *last;  /* [line] */
    uint32_t *digits;    /* [line][digit]: how many; zero between the passes */
    uint32_t *counts;    /* [line][2][tile]: keys below the last one, and keys like it */
    uint32_t *totals;    /* [line][2] */
    uint32_t shift;
} mr_cuda_select;

/* ------------------------------------------------------------------------- compaction */

/* Elements of which a block chooses. */
enum { MR_CUDA_COMPACT_TILE = 16 * MR_CUDA_THREADS };

/* Chooses elements by a condition, of `count`. Strides are the condition's and the input's. `size` are the dims, the
 * outermost first, for the positions. */
typedef struct {
    const void *in, *condition;
    void *out;
    uint64_t count, room; /* of the output: elements, or rows of positions */
    uint64_t *counts;     /* [tile], and one more for `prefixes` */
    uint64_t tiles;
    /* the bits of an element of the condition that make it true: all but the sign of a float */
    uint64_t mask;
    uint32_t prefixes; /* `counts` have the sums before each tile, and the total */
    uint32_t dense;    /* the condition's elements are neighbours and aligned */
    uint32_t ndim;
    int64_t size[MR_CUDA_DIMS];
    mr_cuda_shape shape;
    mr_cuda_strides stride[2];
} mr_cuda_compact;

/* ------------------------------------------------------------------------- indices */

/* A kernel's complaint about an index that is out of range, made before it fails. It is in pinned memory, which
 * outlives the device. */
typedef struct {
    uint32_t taken;    /* by the thread that writes the rest */
    uint32_t complete; /* it has */
    uint64_t seq;      /* of the command */
    int64_t value, size;
} mr_cuda_complaint;

/* Elements that an index chooses, by the sides of ops/index.h. `shape` and `stride` are over all positions where
 * elements are picked; otherwise over lines, which have `length` positions with the strides `along`. */
typedef struct {
    void *plain; /* NULL: `number` */
    const void *index;
    void *chosen;
    uint64_t count; /* the number of elements of `shape` */
    mr_cuda_shape shape;
    mr_cuda_strides stride[3];
    int64_t length;
    int64_t along[3];
    int64_t step, size; /* of the choices */
    uint32_t wide;      /* the index is i64, else i32 */
    uint32_t flat;      /* it is the same for all lines */
    uint64_t number;    /* the bits, as an element */
    mr_cuda_complaint *complaint;
    uint64_t seq;
} mr_cuda_index;

typedef struct {
    mr_cuda_index index;
    void *keys;
    uint32_t *positions;
} mr_cuda_index_keys;

/* Outputs that a block adds up at a time, in shared memory: so many bytes of them; and the additions that it takes at a
 * time. */
enum { MR_CUDA_BIN_BYTES = 16 << 10, MR_CUDA_BIN_TILE = 8 * MR_CUDA_THREADS };

/* Additions grouped by the high bits of their destination: a bin has the additions with the same high bits. A key
 * is line * size + choice. */
typedef struct {
    mr_cuda_index index;
    uint32_t *keys;
    /* the elements that are added, in 4 bytes or 8; NULL while keys are made: they lie so
     * already */
    void *payload;
    uint64_t count;   /* of additions */
    uint32_t *counts; /* as in mr_cuda_radix, of the lowest digits that are sorted by */
    uint32_t tiles;
    uint32_t shift; /* low bits of a key, that a bin has all of */
} mr_cuda_bins;

#endif
