/* The entry point of the operation table. It checks the arguments of one call, broadcasts and promotes them,
 * allocates the result, makes the command and submits it (device tensors) or runs it at once (host
 * tensors). All checks come before the first allocation: a call that fails has done nothing. */
#ifndef MR_OPS_CALL_H
#define MR_OPS_CALL_H

#include "ops/op.h"
#include "ops/params.h"

typedef struct {
    mr_tensor *tensor; /* borrowed; NULL: a plain number */
    mr_scalar scalar;
} mr_value;

enum { MR_CALL_INPUTS = 6 };

typedef struct {
    mr_value in[MR_CALL_INPUTS]; /* FILL, RANDOM: the row's numbers */
    int in_count;
    mr_tensor *out;    /* in-place forms and out=; borrowed; NULL: a new tensor */
    mr_stream *stream; /* borrowed; NULL: the current stream of the operands' device */
    bool in_place;     /* out is in[0]: shape and dtype must stay */
    mr_params params;  /* the row's parameters by value that are not inputs */
    bool allow_tf32;   /* for sums of products of f32 */
    bool dims_given;   /* reductions: else over everything; softmax: one dim */
    /* rows that make gradients: the shape of the result */
    int dims[MR_MAX_DIMS];
    int dim_count;
    bool keepdim; /* pools: PyTorch's ceil_mode */
    /* rows with a second result: receives it, like *out_tensor; NULL: it is not wanted */
    mr_tensor **out_second;
} mr_call;

/* *out_tensor: the result with one reference and, when it was newly allocated, one handle for the
 * caller (call->out itself, retained, otherwise: *out_new tells which). */
mr_status mr_call_run(const mr_caller *caller, const mr_op *op, const mr_call *call,
                      mr_tensor **out_tensor, bool *out_new);

/* Where a new tensor is to live. */
typedef struct {
    mr_memory_kind kind;
    mr_device *device; /* for device memory */
    mr_stream *stream; /* NULL: the device's current stream */
} mr_placement;

/* mr.empty and the bodies of all creation functions. */
mr_status mr_create_empty(const mr_caller *caller, const mr_placement *placement, mr_dtype dtype,
                          int ndim, const int64_t *shape, mr_tensor **out_tensor);

/* dst.copy_(src): any two memories, dtypes and strides; src is broadcast to dst. On the current stream of the device
 * side (`stream` NULL). Waits for that stream if one side is the host, unless non_blocking is set. A copy that one
 * command of a copy engine cannot do (strides, another dtype) goes through a temporary on the side where it is
 * converted. */
mr_status mr_copy(const mr_caller *caller, mr_tensor *dst, mr_tensor *src, mr_stream *stream,
                  bool non_blocking);

/* CUDA's own forms, with CUDA's own synchrony (R20-R24). Both sides contiguous, of equal bytes. */
mr_status mr_memcpy(const mr_caller *caller, mr_tensor *dst, mr_tensor *src, mr_stream *stream,
                    bool synchronous);
mr_status mr_memset(const mr_caller *caller, mr_tensor *t, uint8_t byte, mr_stream *stream,
                    bool synchronous);

/* For a call that submits work and then reads the result, in the memory of `t`: a capture may refuse that. */
mr_status mr_may_read(const mr_caller *caller, const mr_tensor *t);
/* The element as a number: copies it to the host in the current stream and waits. */
mr_status mr_item(const mr_caller *caller, mr_tensor *t, mr_scalar *out_value);
/* A host tensor with t's values now. It is t itself (retained, plus a handle) if t is on the host. Otherwise it is a
 * contiguous pageable copy made in the current stream, and the host waits for it. */
mr_status mr_to_host(const mr_caller *caller, mr_tensor *t, mr_tensor **out_tensor);

/* mr.op: an abstract operation. Reads and writes exactly these views; each written element becomes a fixed mix of the
 * elements read and the name. `writes` may also be read. */
typedef struct {
    const char *name; /* copied; NULL: "op" */
    mr_tensor **reads, **writes;
    int read_count, write_count;
    uint64_t duration_ns;
    uint32_t blocks;
    mr_stream *stream; /* NULL: the current stream */
} mr_abstract;
mr_status mr_abstract_op(const mr_caller *caller, const mr_abstract *op);
mr_status mr_spin(const mr_caller *caller, mr_stream *stream, uint64_t duration_ns);

/* sort, argsort, topk: the elements of each line along a dim in order, and their positions from 1. */
typedef struct {
    mr_tensor *in;
    int dim;         /* from 0, or negative */
    int64_t taken;   /* topk: how many; -1: all */
    bool descending; /* the greatest first */
} mr_sort_call;
/* Both results are new, as from mr_call_run; `out_values` NULL: only the positions are wanted. */
mr_status mr_sort(const mr_caller *caller, const mr_op *row, const mr_sort_call *call,
                  mr_tensor **out_values, mr_tensor **out_order);

/* The positions (from 1) of non-zero elements, a row each; and the elements where a bool tensor is true, both
 * broadcast. The host waits in the current stream, since it needs their number. */
mr_status mr_nonzero(const mr_caller *caller, mr_tensor *in, mr_tensor **out_positions);
mr_status mr_masked_select(const mr_caller *caller, mr_tensor *in, mr_tensor *mask,
                           mr_tensor **out_values);

#endif
