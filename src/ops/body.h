/* Inside src/ops only: shared by the bodies of the families.
 *
 * f16 and bf16 are stored, not computed in. A row computes them in f32 and rounds each result once, to nearest, even at
 * the middle (`base/half.h`). Numbers and tensors of another dtype beside them become f32, too. But a comparison
 * first rounds a number to the half's format, so that a tensor that was filled with 0.1 equals 0.1. Sums are wider, as
 * for f32. CPU bodies get blocks that `mr_convert` made f32, so they have no loops for halves. CUDA kernels load
 * vectors of 8 halves and widen them in registers. Halves that do not lie in vectors go through the kernels of f32.
 * cuBLAS adds their products in f32.
 *
 * A body runs in slices and may fail. The work of an operation is a range of independent items, which the runner cuts
 * as it likes. Partial results are in a *state*: the row says how many bytes it needs, the runner allocates them, and
 * a copy of the bytes is as good as the original. So a simulated device can be copied in the middle of an operation,
 * and dropping an operation means freeing its state. A failure of a body on the virtual GPU names the operation, the
 * stream and the line. A sticky code loses the device (R50). With any other code only this command fails. Its last step
 * is not done, later work of its stream runs, and the error is raised like the error of a host function. */
#ifndef MR_OPS_BODY_H
#define MR_OPS_BODY_H

#include "ops/op.h"
#include "ops/params.h"

/* A loop for each of these instruction sets is compiled, and the fastest that the CPU has is picked
 * when the program starts: one binary runs anywhere. Results are the same for all: a multiply-add is
 * fused where the source says fma and nowhere else. Processors without an instruction for that get it
 * from the C library, slowly. The picking is done before a sanitizer's runtime is ready, so
 * instrumented builds have the plain loop only. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) &&             \
    !defined(__SANITIZE_THREAD__)
#define MR_HAVE_CLONES 1
#else
#define MR_HAVE_CLONES 0
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef MR_HAVE_CLONES
#define MR_HAVE_CLONES 0
#endif
#endif
/* clang 14 fails on some of these loops with AVX-512, and has no name for AVX2 with FMA */
#if MR_HAVE_CLONES && defined(__clang__)
#define MR_CLONES __attribute__((target_clones("fma", "default")))
#elif MR_HAVE_CLONES
#define MR_CLONES __attribute__((target_clones("avx512f", "arch=x86-64-v3", "default")))
#else
#define MR_CLONES
#endif

/* Before a loop in which element i depends on nothing but the inputs' elements i: an output that is
 * exactly one of the inputs is then no obstacle to vectors. */
#if defined(__clang__)
/* Where an expression cannot be made of vectors (pow), clang would warn that it did not obey. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define MR_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MR_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* ------------------------------------------------------------------------- walking over operands */

#define MR_WALK_OPERANDS (MR_MAX_INPUTS + 1)

/* A shape with the strides of several operands under it. Dims of size 1 are gone and neighbours that
 * lie one after the other for all operands are merged, so a contiguous problem has one dim. */
typedef struct {
    int ndim; /* at least 1 */
    int64_t shape[MR_MAX_DIMS];
    int64_t stride[MR_WALK_OPERANDS][MR_MAX_DIMS]; /* in elements; 0 where broadcast */
} mr_walk;

/* Operands are aligned at their last dims; a size of 1 (or no dim) repeats. */
void mr_walk_init(mr_walk *walk, int ndim, const int64_t *shape, int count,
                  const mr_tensor *const *operands);

/* Where the element at row-major position `position` is for one of the operands. */
int64_t mr_walk_offset(const mr_walk *walk, int operand, int64_t position);

/* `n` elements of `size` bytes, from the one at row-major position `first` on, between memory with
 * these strides and a dense block. */
void mr_gather(const void *base, size_t size, int ndim, const int64_t *shape, const int64_t *stride,
               int64_t first, int64_t n, void *block);
void mr_scatter(void *base, size_t size, int ndim, const int64_t *shape, const int64_t *stride,
                int64_t first, int64_t n, const void *block);

/* Element (r, c) from from[c * from_stride + r] to to[r * to_stride + c]; they do not overlap. */
void mr_transpose(void *to, int64_t to_stride, const void *from, int64_t from_stride, size_t size,
                  int64_t rows, int64_t columns);

/* A dense block from one dtype to another, by the rules of mr_dtype_store. `to` may not overlap
 * `from`, unless the dtypes are equal and the pointers too. */
void mr_convert(mr_dtype to_dtype, void *to, mr_dtype from_dtype, const void *from, int64_t n);

/* Elements that a body handles at a time when they do not lie densely: fits the first-level cache. */
enum { MR_BLOCK = 512 };
typedef union {
    char bytes[MR_BLOCK * 8];
    double aligned_;
} mr_block;

/* Hands a body's results to a strided, differently typed output a block at a time.
 *
 *     mr_output out = mr_output_of(tensor, computed_dtype);
 *     for each run of at most MR_BLOCK items from i on:
 *         T *block = mr_output_begin(&out, i);   // where to put them
 *         ...
 *         mr_output_end(&out, i, n);
 */
typedef struct {
    const mr_tensor *tensor;
    mr_dtype dtype;
    bool direct; /* the block is the tensor's own memory */
    mr_walk walk;
    mr_block block, converted;
} mr_output;
void mr_output_init(mr_output *out, const mr_tensor *tensor, mr_dtype dtype);
void *mr_output_begin(mr_output *out, int64_t first);
void mr_output_end(mr_output *out, int64_t first, int64_t n);

/* ------------------------------------------------------------------------- families */

/* out[i] = f(in[0][i], ...) for dense blocks; bit k of `fixed`: all elements of in[k] are the same, and in[k] is not
 * `out`. `out` may be one of the inputs, else overlaps none. */
typedef void (*mr_kernel)(void *out, const void *const *in, unsigned fixed, int64_t n);

typedef struct {
    mr_kernel kernel[MR_DTYPE_COUNT]; /* by the dtype computed in; NULL: does not take it */
    bool first_is_bool;               /* `where`: input 0 is a condition, whatever the dtype */
    bool bool_result;
} mr_elementwise;

typedef struct {
    mr_scalar scalar;
    const mr_tensor *tensor; /* NULL: the number */
} mr_input;
/* The inputs of an elementwise command, by the convention of params.h. */
int mr_command_inputs(const mr_command *command, mr_input *out_inputs);

int64_t mr_elementwise_items(const mr_command *command);
mr_status mr_elementwise_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_elementwise_cost(const mr_command *command, mr_cost *out_cost);

mr_status mr_copy_run(const mr_command *command, void *state, int64_t first, int64_t end);
int64_t mr_bytes_items(const mr_command *command);
mr_status mr_bytes_run(const mr_command *command, void *state, int64_t first, int64_t end);

/* Facts that all positions of a generated tensor share. */
typedef struct {
    double real[3];
    int64_t integer[2];
} mr_constants;

/* FILL, RANDOM: `body` points to one of these; the block is of the dtype computed in. */
typedef struct {
    mr_dtype (*computed)(mr_dtype out); /* the type in which it is computed for such an output */
    void (*fill)(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n, void *block);
    /* Optional: checks the numbers of one call for such an output, and computes the parameters of `fill` and
     * `constants`. Without it, the row has no numbers. */
    mr_status (*prepare)(const char *name, mr_dtype out, const mr_scalar numbers[2],
                         mr_params *out_params);
    /* Optional: values that all positions share, for `fill` and the CUDA kernel; without it, zeros. */
    void (*constants)(const mr_params *params, const mr_tensor *out, mr_constants *out_constants);
    bool is_uniform; /* every element is fill.value */
} mr_generator;
void mr_generator_constants(const mr_command *command, mr_constants *out_constants);
extern const mr_generator mr_gen_fill, mr_gen_zero, mr_gen_arange, mr_gen_linspace, mr_gen_eye;
extern const mr_generator mr_gen_uniform, mr_gen_normal, mr_gen_bernoulli, mr_gen_randint;
mr_status mr_generator_run(const mr_command *command, void *state, int64_t first, int64_t end);
int64_t mr_randperm_items(const mr_command *command);
int64_t mr_randperm_state_bytes(const mr_command *command);
mr_status mr_randperm_run(const mr_command *command, void *state, int64_t first, int64_t end);

int64_t mr_reduce_items(const mr_command *command);
int64_t mr_reduce_state_bytes(const mr_command *command);
mr_status mr_reduce_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_reduce_finish(const mr_command *command, void *state);
void mr_reduce_cost(const mr_command *command, mr_cost *out_cost);

int64_t mr_softmax_items(const mr_command *command);
int64_t mr_softmax_state_bytes(const mr_command *command);
mr_status mr_softmax_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_softmax_finish(const mr_command *command, void *state);

mr_status mr_pick_run(const mr_command *command, void *state, int64_t first, int64_t end);
int64_t mr_scan_items(const mr_command *command);
mr_status mr_scan_run(const mr_command *command, void *state, int64_t first, int64_t end);

int64_t mr_sort_items(const mr_command *command);
mr_status mr_sort_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_sort_cost(const mr_command *command, mr_cost *out_cost);

mr_status mr_move_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_move_cost(const mr_command *command, mr_cost *out_cost);

int64_t mr_compact_items(const mr_command *command);
mr_status mr_nonzero_run(const mr_command *command, void *state, int64_t first, int64_t end);
mr_status mr_masked_select_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_compact_cost(const mr_command *command, mr_cost *out_cost);

int64_t mr_place_items(const mr_command *command);
int64_t mr_place_state_bytes(const mr_command *command);
mr_status mr_place_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_index_cost(const mr_command *command, mr_cost *out_cost);

int64_t mr_matmul_items(const mr_command *command);
mr_status mr_matmul_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_matmul_cost(const mr_command *command, mr_cost *out_cost);
bool mr_matmul_brings_threads(const mr_command *command);
bool mr_matmul_by_library(const mr_command *command);

int64_t mr_conv_items(const mr_command *command);
mr_status mr_conv_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_conv_cost(const mr_command *command, mr_cost *out_cost);
int64_t mr_conv_weight_items(const mr_command *command);
mr_status mr_conv_weight_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_conv_weight_cost(const mr_command *command, mr_cost *out_cost);
int64_t mr_optimise_items(const mr_command *command);
mr_status mr_optimise_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_optimise_cost(const mr_command *command, mr_cost *out_cost);

int64_t mr_pool_items(const mr_command *command);
mr_status mr_pool_run(const mr_command *command, void *state, int64_t first, int64_t end);
int64_t mr_loss_items(const mr_command *command);
mr_status mr_loss_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_loss_cost(const mr_command *command, mr_cost *out_cost);

int64_t mr_abstract_items(const mr_command *command);
mr_status mr_abstract_run(const mr_command *command, void *state, int64_t first, int64_t end);
void mr_abstract_cost(const mr_command *command, mr_cost *out_cost);
int64_t mr_spin_items(const mr_command *command);
mr_status mr_spin_run(const mr_command *command, void *state, int64_t first, int64_t end);

#endif
