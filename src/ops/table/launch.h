/* Inside src/ops only: the code that the entry points of all families share. A launch collects the
 * operands of one operation, checks that they can work together, and then runs it at once or submits a
 * command. */
#ifndef MR_OPS_TABLE_LAUNCH_H
#define MR_OPS_TABLE_LAUNCH_H

#include "ops/call.h"

enum { MR_LAUNCH_OPERANDS = MR_CALL_INPUTS + 2 };

typedef struct {
    const mr_caller *caller; /* borrowed */
    const mr_op *op;
    const char *name;                        /* for messages and the command: "add", "add_" */
    mr_tensor *first;                        /* the first operand seen: decides where it runs */
    mr_device *device;                       /* NULL: on the host */
    mr_stream *stream;                       /* NULL on the host */
    mr_tensor *operands[MR_LAUNCH_OPERANDS]; /* 0 is the output; borrowed */
    uint8_t access[MR_LAUNCH_OPERANDS];
    uint32_t operand_count;
    mr_params params;
} mr_launch;

void mr_launch_init(mr_launch *launch, const mr_caller *caller, const mr_op *op,
                    const mr_call *call);

/* Usable, of this machine, and in the same place as the operands before it. */
mr_status mr_launch_check(mr_launch *launch, mr_tensor *tensor);
/* After all tensors: finds the stream (`stream` NULL: the current one) and checks it. */
mr_status mr_launch_place(mr_launch *launch, mr_stream *stream);

/* Whether work on a device tensor can go to this stream now. */
mr_status mr_launch_check_stream(mr_machine *machine, const char *name, const mr_tensor *tensor,
                                 mr_stream *stream);

/* Whether an output can take these: shape, dtype, no element twice. */
mr_status mr_launch_check_out(const mr_launch *launch, const mr_tensor *out, mr_dtype dtype,
                              int ndim, const int64_t *shape);
/* Partial overlap of an input with the output. `exact`: being the same view is allowed. */
mr_status mr_launch_check_overlap(const mr_launch *launch, const mr_tensor *out,
                                  const mr_tensor *in, bool exact);
bool mr_same_view(const mr_tensor *a, const mr_tensor *b);

/* A new tensor where the launch runs. */
mr_status mr_launch_new(const mr_launch *launch, mr_dtype dtype, int ndim, const int64_t *shape,
                        mr_tensor **out_tensor);
/* Drops handle and reference of a tensor that mr_launch_new or the like made. */
void mr_drop_new(mr_tensor *tensor);

static inline void mr_launch_operand(mr_launch *launch, mr_tensor *tensor, uint8_t access) {
    launch->operands[launch->operand_count] = tensor;
    launch->access[launch->operand_count++] = access;
}

/* Runs or submits. Nothing is done for an output without elements. */
mr_status mr_launch_go(const mr_launch *launch);

/* The entry points of single families; arguments as in mr_call_run. */
mr_status mr_call_reduce(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor);
mr_status mr_call_along_dim(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor);
mr_status mr_call_move(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor);
mr_status mr_call_index(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor);
mr_status mr_call_matmul(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor);
mr_status mr_call_conv(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor);

mr_status mr_call_pool(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor);
mr_status mr_call_loss(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor);

/* The first `count` inputs are tensors of floats, of one dtype, in one place; and there is no out=. */
mr_status mr_check_floats(mr_launch *launch, const mr_call *call, int count);
/* `meaning`: the shape that is expected, in words. */
mr_status mr_check_rank(const mr_launch *launch, const mr_tensor *t, int ndim, const char *meaning);
/* A new tensor with t's values. */
mr_status mr_new_converted(const mr_launch *launch, mr_tensor *t, mr_dtype dtype,
                           mr_tensor **out_tensor);
/* After all checks and mr_launch_place: runs the row on call->in, for a new result of dtype `result`. f16 and bf16 go
 * through f32. `second`: another tensor that the row writes, its last operand; NULL: none. */
mr_status mr_run_network_row(mr_launch *launch, const mr_call *call, mr_tensor *second,
                             mr_dtype result, int ndim, const int64_t *shape,
                             mr_tensor **out_tensor);
/* Sizes, strides and dilations of at least 1, paddings of at least 0. */
mr_status mr_check_window(const char *name, const mr_window *w);
/* The error of one for which the input, of that shape, has no place. */
mr_status mr_window_misfit(const char *name, const mr_window *w, const int64_t *shape);

/* The row `copy` as an operation on operands in one place, which must have been checked. `stream` NULL:
 * on the host. */
mr_status mr_launch_copy(const mr_caller *caller, const char *name, mr_tensor *dst, mr_tensor *src,
                         mr_stream *stream);

#endif
