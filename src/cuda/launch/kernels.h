/* Shared by the parts of the launcher: the modules of kernels in the binary, the handles that have been asked for, and
 * what each stream has of its own. Private to this folder, to family and to graph. */
#ifndef MR_CUDA_KERNELS_H
#define MR_CUDA_KERNELS_H

#include "cuda/kernels/args.h"
#include "cuda/launch/launch.h"
#include "cuda/launch/layout.h"
#include "ops/ids.h"
#include "ops/kernel.h"

/* One fat binary for each file src/cuda/kernels/NAME.cu. A module is loaded when its first kernel is asked for,
 * so that a program loads only the modules that it uses. */
#define MR_CUDA_MODULE_LIST(X)                                                                     \
    X(UNARY, unary)                                                                                \
    X(BINARY, binary)                                                                              \
    X(COMPARE, compare)                                                                            \
    X(TERNARY, ternary)                                                                            \
    X(COPY, copy)                                                                                  \
    X(RANDOM, random)                                                                              \
    X(REDUCE, reduce)                                                                              \
    X(SOFTMAX, softmax)                                                                            \
    X(CONV, conv)                                                                                  \
    X(POOL, pool)                                                                                  \
    X(LOSS, loss)                                                                                  \
    X(PRODUCT, product)                                                                            \
    X(ABSTRACT, abstract)                                                                          \
    X(OPTIMISE, optimise)                                                                          \
    X(INDEX, index)                                                                                \
    X(BINS, bins)                                                                                  \
    X(SORT, sort)                                                                                  \
    X(SELECT, select)                                                                              \
    X(SCAN, scan)                                                                                  \
    X(MOVE, move)                                                                                  \
    X(COMPACT, compact)

typedef enum {
#define X(id, name) MODULE_##id,
    MR_CUDA_MODULE_LIST(X)
#undef X
        MODULE_COUNT
} cuda_module;

/* Resources that each stream has of its own, so that calls on several streams overlap. Made when first needed. */
typedef struct cuda_lane cuda_lane;
struct cuda_lane {
    cuda_lane *next;
    CUstream stream;
    CUevent left;          /* in the free list: after the last stream's work; else NULL */
    cublasHandle_t blas;   /* NULL: none yet */
    bool attached;         /* it has this stream and the workspace */
    bool tf32;             /* its math mode */
    CUdeviceptr workspace; /* cuBLAS's */
    CUdeviceptr scratch;   /* partial cells, then the counters of reductions; 0: none yet */
};

enum { LANE_CELLS = 8 << 20, LANE_COUNTERS = 64 << 10 }; /* bytes of `scratch` */

/* Working memory of a graph (graph/memory.c). Its launches use it again and again, so it is not borrowed for the length
 * of a command. It belongs to the graph, and commands of one lane of the capture follow each other in it. */
typedef struct {
    CUdeviceptr address;
    uint64_t bytes;
    CUstream lane; /* whose commands use it */
    bool in_use;   /* by a command that is being captured; for good, if launches only read it */
} cuda_graph_block;
typedef struct cuda_graph_memory cuda_graph_memory;
struct cuda_graph_memory {
    cuda_device *device;
    CUstream stream; /* does not capture: memory is allocated and prepared on it; NULL: none yet */
    CUevent ready;   /* after that; NULL: a launch has waited for it, or there was nothing */
    MR_VEC(cuda_graph_block) blocks;
    CUdeviceptr draws; /* an mr_cuda_philox that each launch writes; 0: the graph draws nothing */
    /* `lane` NULL: no other command writes to it. */
    mr_status (*borrow)(cuda_graph_memory *memory, CUstream lane, uint64_t bytes,
                        CUdeviceptr *out_address);
    void (*give_back)(cuda_graph_memory *memory, CUdeviceptr address);
};

typedef struct {
    CUfunction function;   /* NULL: the driver did not find it */
    uint32_t shared_limit; /* dynamic shared memory that the driver has been told of; 0: none */
} cuda_user_kernel;

/* A code of the user's kernels, loaded for the device. */
typedef struct {
    mr_kernel_code *code; /* one reference */
    CUmodule module;
    cuda_user_kernel *kernels; /* as mr_ptx_kernel_at counts */
    bool prints;               /* calls printf somewhere */
} cuda_code;

/* Forms of a kernel that is found by row, dtype and form. */
enum { FORM_DENSE, FORM_ROWS, FORM_STRIDED, FORM_COUNT };

/* Kernels of convolutions. */
typedef enum {
#define X(id, ...) CONV_##id,
    MR_CUDA_CONV_LIST(X) MR_CUDA_CONV_WEIGHT_LIST(X) MR_CUDA_CONV_THIN_LIST(X)
#undef X
        CONV_FORM_COUNT
} conv_form;

typedef struct {
    CUmodule modules[MODULE_COUNT];
    CUfunction cast[MR_DTYPE_COUNT][MR_DTYPE_COUNT], copy[MR_DTYPE_COUNT][FORM_COUNT];
    CUfunction transpose[4], fill, sort_begin, sort_step, sort_near, sort_end;
    CUfunction conv[CONV_FORM_COUNT];
    CUfunction product[MR_DTYPE_COUNT], small_product[MR_DTYPE_COUNT], op, spin;
    CUfunction move[4], compact[4], compact_count[4], compact_scan, compact_positions[4];
    CUfunction scan_totals[2][2]; /* of cumsum and cumprod, of integers and floats */
    CUfunction scan_total[2][MR_DTYPE_COUNT][2];
    CUfunction pick[5], place[2][MR_DTYPE_COUNT][3], index_keys[2];
    CUfunction bins_keys[4], add_bins[MR_DTYPE_COUNT];
    CUfunction radix_count[2], radix_scan, radix_scan_short, radix_move[3];
    CUfunction sort_keys[MR_DTYPE_COUNT], sort_results[MR_DTYPE_COUNT], sort_lines[MR_DTYPE_COUNT];
    CUfunction select_count[MR_DTYPE_COUNT], select_tally[MR_DTYPE_COUNT],
        select_write[MR_DTYPE_COUNT], select_digit;
    /* bytes of dynamic shared memory that fill an SM; 0: `op` has not been told yet */
    int whole_sm;
    cuda_lane *lanes, *free_lanes;
    cuda_graph_memory *captured;       /* of the graph that is being captured; NULL: none is */
    MR_VEC(cublasHandle_t) spare_blas; /* with room for all handles that there are */
    size_t blas_count;
    MR_VEC(cuda_code) codes;            /* the user's, by id */
    void (*close_codes)(void *kernels); /* gives them back, if there ever was one */
    bool no_blas;                       /* the library could not be opened */
    CUfunction rows[MR_OP_COUNT][MR_DTYPE_COUNT][FORM_COUNT]; /* by mr_op_id */
} cuda_kernels;

static inline cuda_device *mr_cuda_device_of(const mr_command *command) {
    return ((const cuda_stream *)command->stream->impl)->device;
}
static inline cuda_kernels *mr_cuda_kernels_of(const mr_command *command) {
    return mr_cuda_device_of(command)->kernels;
}

/* Loads the kernel `millrace_` + format, with its module, into *slot. */
mr_status mr_cuda_find(const mr_command *command, CUfunction *slot, cuda_module module,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Sets `out_function` from a slot, finding the kernel first if need be. */
#define MR_CUDA_FIND(out_function, command, slot, ...)                                             \
    do {                                                                                           \
        if (__builtin_expect(!*(slot), 0)) MR_TRY(mr_cuda_find(command, slot, __VA_ARGS__));       \
        (out_function) = *(slot);                                                                  \
    } while (0)

/* Enqueues a kernel whose only argument is the struct `args`. */
mr_status mr_cuda_enqueue_blocks(const mr_command *command, CUstream stream, CUfunction function,
                                 uint64_t blocks, unsigned threads, void *args);
static inline mr_status mr_cuda_enqueue(const mr_command *command, CUstream stream,
                                        CUfunction function, uint64_t blocks, void *args) {
    return mr_cuda_enqueue_blocks(command, stream, function, blocks, MR_CUDA_THREADS, args);
}

/* "f32"; bool is "b8", as in the table's tags. */
const char *mr_cuda_tag(int dtype);

/* ---- lanes.c */

/* The lane of a stream, which is made or taken from the free ones when it has none. */
mr_status mr_cuda_lane(const mr_command *command, CUstream stream, cuda_lane **out_lane);
mr_status mr_cuda_lane_scratch(const mr_command *command, cuda_lane *lane);

/* Memory for the length of one command, in the order of its stream. */
mr_status mr_cuda_borrow(const mr_command *command, CUstream stream, uint64_t bytes,
                         CUdeviceptr *out_address);
void mr_cuda_return(const mr_command *command, CUstream stream, CUdeviceptr address);
/* The same with values of the host in it, which the driver has taken when the call returns: a few KiB at most. */
mr_status mr_cuda_upload(const mr_command *command, CUstream stream, const void *values,
                         uint64_t bytes, CUdeviceptr *out_address);

/* A stream that captured is about to be destroyed; its lane's memory is the graph's. */
void mr_cuda_lane_drop_captured(cuda_device *device, CUstream stream);

void mr_cuda_lanes_close(cuda_kernels *kernels); /* all of them; the device is idle or lost */

#endif
