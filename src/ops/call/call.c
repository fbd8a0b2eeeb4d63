/* mr_call_run: the entry point for the rows of the table, and the families whose output has one element
 * for each position of the inputs. Reductions, softmax and products are in files of their own. */
#include "ops/ids.h"
#include "ops/table/launch.h"
#include "ops/body.h"

#include "model/capture.h"
#include "model/observer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------------- dtypes */

static mr_status check_taken(const mr_launch *launch, mr_dtype dtype) {
    static const uint8_t taken[] = {MR_TAKES_BOOL, MR_TAKES_INTEGER, MR_TAKES_FLOAT};
    if (launch->op->dtypes & taken[mr_dtype_category(dtype)]) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s tensors have no %s; convert with x:to(\"%s\")",
                   launch->name, mr_dtype_text(dtype), launch->op->name,
                   launch->op->dtypes & MR_TAKES_INTEGER ? "i32" : "f32");
}

/* Whether a number of the script, if it is an integer, is a value of the type. */
static bool represents(mr_dtype dtype, mr_scalar number) {
    return !number.is_integer || mr_dtype_holds(dtype, number.i);
}

/* The type that the inputs from `first` on have in common. Comparing a u8 with the number 300 is done in i64,
 * lest 300 become 44: the result is bool in any case. */
static mr_dtype common_dtype(const mr_op *op, const mr_call *call, int first) {
    mr_promotion promotion = {0};
    for (int k = first; k < call->in_count; k++) {
        const mr_tensor *t = call->in[k].tensor;
        if (t)
            mr_promotion_add(&promotion, t->ndim > 0 ? MR_RANK_DIMS : MR_RANK_NO_DIMS,
                             (mr_dtype)t->dtype);
        else mr_promotion_add(&promotion, MR_RANK_NUMBER, mr_dtype_of_number(call->in[k].scalar));
    }
    mr_dtype dtype = mr_promotion_result(&promotion);
    for (int k = first; op->family->widens && k < call->in_count; k++)
        if (!call->in[k].tensor && !represents(dtype, call->in[k].scalar)) dtype = MR_I64;
    if (op->result == MR_RESULT_FLOAT && mr_dtype_category(dtype) < 2) dtype = MR_F32;
    return dtype;
}

/* ------------------------------------------------------------------------- elementwise */

static mr_status broadcast_inputs(const mr_launch *launch, const mr_call *call, int *out_ndim,
                                  int64_t *out_shape) {
    bool any = false;
    for (int k = 0; k < call->in_count; k++) {
        const mr_tensor *t = call->in[k].tensor;
        if (!t) continue;
        if (any && mr_has_shape(t, *out_ndim, out_shape)) continue;
        if (any) {
            int64_t shape[MR_MAX_DIMS];
            MR_TRY(mr_shape_broadcast(launch->name, *out_ndim, out_shape, t->ndim, t->shape,
                                      out_ndim, shape));
            memcpy(out_shape, shape, (size_t)*out_ndim * sizeof *shape);
        } else {
            *out_ndim = t->ndim;
            memcpy(out_shape, t->shape, (size_t)t->ndim * sizeof *out_shape);
            any = true;
        }
    }
    return MR_OK;
}

/* `where`, `clamp` and their like return one of the inputs: refuse a number that the dtype cannot represent. */
static mr_status check_chosen(const mr_launch *launch, const mr_call *call, mr_dtype dtype) {
    for (int k = 0; k < call->in_count; k++) {
        mr_scalar s = call->in[k].scalar;
        if (call->in[k].tensor || represents(dtype, s)) continue;
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: the tensors are %s, which cannot represent %" PRId64
                       "; convert with x:to(\"%s\")",
                       launch->name, mr_dtype_text(dtype), s.i,
                       mr_dtype_text(represents(MR_I32, s) ? MR_I32 : MR_I64));
    }
    return MR_OK;
}

/* A number that is compared with a half is first rounded to one, so that a tensor filled with 0.1
 * equals 0.1. In other rows it is an f32 like all that they compute with. A number that would
 * become infinite stays as it is: no half equals it. */
static mr_scalar comparable(mr_dtype dtype, mr_scalar number) {
    uint16_t bits;
    if (!mr_dtype_is_half(dtype)) return number;
    mr_dtype_store(dtype, &bits, number);
    mr_scalar rounded = mr_dtype_load(dtype, &bits);
    return isinf(rounded.f) ? number : rounded;
}

/* The tensor keeps its dtype, so the value must be of it. */
static mr_status check_masked(const mr_launch *launch, const mr_call *call, mr_dtype dtype) {
    const mr_tensor *x = call->in[2].tensor;
    char text[160];
    if (!x) return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: expected a tensor to fill", launch->name);
    if (dtype != x->dtype)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: %s is %s, which cannot hold the value; convert with x:to(\"%s\")",
                       launch->name, mr_tensor_describe(x, text, sizeof text),
                       mr_dtype_text((mr_dtype)x->dtype), mr_dtype_text(dtype));
    return check_chosen(launch, call, dtype);
}

/* Checks that are about one operation. */
static mr_status check_special(mr_launch *launch, const mr_call *call, mr_dtype dtype) {
    const mr_value *power = &call->in[1];
    switch (launch->op->id) {
    case MR_OP_pow:
        if (power->tensor) return MR_OK;
        if (mr_dtype_category(dtype) == 1 && power->scalar.i < 0)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "%s: a negative power of integers would be truncated to 0; convert with "
                           "x:to(\"f32\")",
                           launch->name);
        /* The same value, much sooner. */
        if (power->scalar.f == 2) launch->op = &mr_ops[MR_OP_square];
        return MR_OK;
    /* ~1 is not 0, so of a bool there is another row. */
    case MR_OP_bitwise_not:
        if (dtype == MR_BOOL) launch->op = &mr_ops[MR_OP_logical_not];
        return MR_OK;
    case MR_OP_masked_fill: return check_masked(launch, call, dtype);
    case MR_OP_maximum:
    case MR_OP_minimum:
    case MR_OP_clamp:
    case MR_OP_where: return check_chosen(launch, call, dtype);
    default: return MR_OK;
    }
}

static mr_status call_elementwise(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    const mr_op *op = launch->op;
    if (call->in_count != op->inputs)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes %d inputs, not %d", launch->name,
                       op->inputs, call->in_count);
    for (int k = 0; k < call->in_count; k++)
        if (call->in[k].tensor) MR_TRY(mr_launch_check(launch, call->in[k].tensor));
    if (!launch->first)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: none of the inputs is a tensor",
                       launch->name);
    if (call->out) MR_TRY(mr_launch_check(launch, call->out));

    const mr_elementwise *loops = op->body;
    if (loops->first_is_bool && (!call->in[0].tensor || call->in[0].tensor->dtype != MR_BOOL))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: the condition must be a bool tensor, not %s; compare it, as in x:ne(0)",
                       launch->name,
                       call->in[0].tensor ? mr_dtype_text(call->in[0].tensor->dtype) : "a number");
    mr_dtype common = common_dtype(op, call, loops->first_is_bool);
    MR_TRY(check_taken(launch, common));
    MR_TRY(check_special(launch, call, common));
    mr_dtype result = op->result == MR_RESULT_BOOL ? MR_BOOL : common;

    int ndim = 0;
    int64_t shape[MR_MAX_DIMS];
    MR_TRY(broadcast_inputs(launch, call, &ndim, shape));
    mr_tensor *out = call->out;
    if (out) {
        MR_TRY(mr_launch_check_out(launch, out, result, ndim, shape));
        for (int k = 0; k < call->in_count; k++)
            if (call->in[k].tensor && call->in[k].tensor != out)
                MR_TRY(mr_launch_check_overlap(launch, out, call->in[k].tensor, true));
    }
    MR_TRY(mr_launch_place(launch, call->stream));
    if (!out) MR_TRY(mr_launch_new(launch, result, ndim, shape, &out));

    mr_launch_operand(launch, out, MR_WRITE);
    uint32_t where = 0;
    int numbers = 0;
    for (int k = 0; k < call->in_count; k++) {
        mr_tensor *t = call->in[k].tensor;
        int kind = MR_INPUT_OPERAND;
        if (!t) {
            kind = MR_INPUT_NUMBER;
            mr_scalar number = call->in[k].scalar;
            if (op->result == MR_RESULT_BOOL) number = comparable(common, number);
            if (numbers < 2) launch->params.elementwise.number[numbers++] = number;
        } else if (call->out && mr_same_view(t, out)) {
            kind = MR_INPUT_OUTPUT;
            launch->access[0] |= MR_READ;
        } else {
            mr_launch_operand(launch, t, MR_READ);
        }
        where |= (uint32_t)kind << (MR_INPUT_BITS * k);
    }
    launch->params.elementwise.inputs = where;
    launch->params.elementwise.dtype = mr_dtype_computed(common);
    mr_status status = mr_launch_go(launch);
    if (status) {
        if (!call->out) mr_drop_new(out);
        return status;
    }
    *out_tensor = out;
    return MR_OK;
}

/* ------------------------------------------------------------------------- fill, random */

static mr_status call_generator(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    mr_tensor *out = call->out;
    if (!out)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: the tensor to fill is missing", launch->name);
    MR_TRY(mr_launch_check(launch, out));
    MR_TRY(check_taken(launch, (mr_dtype)out->dtype));
    MR_TRY(mr_launch_check_out(launch, out, (mr_dtype)out->dtype, out->ndim, out->shape));
    MR_TRY(mr_launch_place(launch, call->stream));
    const mr_generator *generator = launch->op->body;
    const mr_scalar numbers[] = {call->in[0].scalar, call->in[1].scalar};
    if (generator && generator->prepare)
        MR_TRY(generator->prepare(launch->name, (mr_dtype)out->dtype, numbers, &launch->params));
    if (launch->op->family->draws) {
        mr_machine *machine = launch->caller->machine;
        const mr_stream *stream = launch->stream;
        bool captured = stream && stream->capture; /* each launch of the graph sets both */
        launch->params.random.offset =
            captured ? mr_capture_rules_of(machine)->draw(launch->stream) : machine->random.draws++;
        captured = stream && stream->capture; /* the draw may have ended it */
        launch->params.random.seed = captured ? 0 : machine->random.seed;
        if (machine->host_function.running) mr_observers_drew(machine);
    }
    mr_launch_operand(launch, out, MR_WRITE);
    MR_TRY(mr_launch_go(launch));
    *out_tensor = out;
    return MR_OK;
}

/* ------------------------------------------------------------------------- copy */

/* A clone, or copy_ where an output is given. */
static mr_status call_copy(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    mr_tensor *in = call->in_count == 1 ? call->in[0].tensor : NULL;
    if (!in) return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes one tensor", launch->name);
    MR_TRY(mr_launch_check(launch, in));
    if (call->out) {
        *out_tensor = call->out;
        return mr_copy(launch->caller, call->out, in, call->stream, false);
    }
    MR_TRY(mr_launch_place(launch, call->stream));
    mr_tensor *out;
    MR_TRY(mr_launch_new(launch, (mr_dtype)in->dtype, in->ndim, in->shape, &out));
    mr_status status = mr_copy(launch->caller, out, in, launch->stream, true);
    if (status) mr_drop_new(out);
    else *out_tensor = out;
    return status;
}

/* ------------------------------------------------------------------------- mr_call_run */

/* By family; NULL: its rows are called by another function. */
static mr_status (*const by_family[])(mr_launch *launch, const mr_call *call,
                                      mr_tensor **out_tensor) = {
    [MR_FAMILY_UNARY] = call_elementwise,
    [MR_FAMILY_BINARY] = call_elementwise,
    [MR_FAMILY_COMPARE] = call_elementwise,
    [MR_FAMILY_TERNARY] = call_elementwise,
    [MR_FAMILY_FILL] = call_generator,
    [MR_FAMILY_RANDOM] = call_generator,
    [MR_FAMILY_REDUCE] = mr_call_reduce,
    [MR_FAMILY_SOFTMAX] = mr_call_along_dim,
    [MR_FAMILY_MATMUL] = mr_call_matmul,
    [MR_FAMILY_COPY] = call_copy,
    [MR_FAMILY_BYTES] = NULL,
    [MR_FAMILY_ABSTRACT] = NULL,
    [MR_FAMILY_CONV] = mr_call_conv,
    [MR_FAMILY_POOL] = mr_call_pool,
    [MR_FAMILY_LOSS] = mr_call_loss,
    [MR_FAMILY_OPTIMISE] = NULL,
    [MR_FAMILY_INDEX] = mr_call_index,
    [MR_FAMILY_SCAN] = mr_call_along_dim,
    [MR_FAMILY_SORT] = NULL, /* mr_sort */
    [MR_FAMILY_MOVE] = mr_call_move,
    [MR_FAMILY_COMPACT] = NULL, /* mr_nonzero, mr_masked_select */
    [MR_FAMILY_KERNEL] = NULL,
    [MR_FAMILY_COLLECTIVE] = NULL, /* src/collective */
};
_Static_assert(sizeof by_family / sizeof *by_family == MR_FAMILY_COUNT,
               "a way to call each family");

/* A message about shapes or dtypes, with the script's names of the tensors after it. */
static mr_status name_operands(mr_status error, const mr_call *call) {
    mr_buffer text = {0};
    for (int i = 0; i <= call->in_count; i++) {
        const mr_tensor *t = i < call->in_count ? call->in[i].tensor : call->out;
        if (!t || !t->name || strstr(error->message, t->name->text)) continue;
        mr_buffer_printf(&text, "%s`%s`", text.size ? ", " : "", t->name->text);
    }
    if (text.size && !text.failed) {
        mr_status named = mr_fail(error->code, "%s (tensors: %s)", error->message, text.data);
        mr_error_destroy(error);
        error = named;
    }
    mr_buffer_free(&text);
    return error;
}

mr_status mr_call_run(const mr_caller *caller, const mr_op *op, const mr_call *call,
                      mr_tensor **out_tensor, bool *out_new) {
    *out_tensor = NULL;
    *out_new = !call->out;
    const mr_op_family *family = op->family;
    if (!by_family[family->id])
        return mr_fail(MR_CODE_NOT_SUPPORTED, "%s: rows of the family `%s` are not called this way",
                       op->name, family->name);
    mr_launch launch;
    mr_launch_init(&launch, caller, op, call);
    mr_status status = by_family[family->id](&launch, call, out_tensor);
    if (status)
        return status->code == MR_CODE_INVALID_ARGUMENT ? name_operands(status, call) : status;
    if (call->out) mr_tensor_retain(*out_tensor);
    return MR_OK;
}

mr_status mr_create_empty(const mr_caller *caller, const mr_placement *placement, mr_dtype dtype,
                          int ndim, const int64_t *shape, mr_tensor **out_tensor) {
    *out_tensor = NULL;
    mr_stream *stream = NULL;
    if (placement->kind == MR_MEMORY_DEVICE) {
        MR_TRY(mr_machine_ready(caller->machine));
        mr_device *device = placement->device ? placement->device : caller->machine->current_device;
        stream = placement->stream ? placement->stream : device->current;
        MR_TRY(mr_stream_usable(stream));
        if (stream->device != device) {
            char text[96];
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "%s belongs to device %d, but the tensor is made on device %d",
                           mr_stream_describe(stream, text, sizeof text), stream->device->index,
                           device->index);
        }
    }
    return mr_tensor_create(caller, placement->kind, stream, dtype, ndim, shape, out_tensor);
}
