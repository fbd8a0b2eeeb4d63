/* The entry point of the INDEX family: checks the shapes, and the values of an index in host memory. An index in device
 * memory is checked when it is used, since the host does not wait for its values. */
#include "ops/ids.h"
#include "ops/index.h"
#include "ops/table/launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    mr_tensor *chosen, *index, *plain; /* NULL: a number, or the result */
    int dim;
} operands;

/* The word by which messages and scripts call the plain side. */
static const char *const source = "the source";

static mr_status check_index(mr_launch *launch, const mr_tensor *index) {
    char text[160];
    if (index->dtype == MR_I64 || index->dtype == MR_I32) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: the index %s is %s, expected i64 or i32; convert with x:to(\"i64\")",
                   launch->name, mr_tensor_describe(index, text, sizeof text),
                   mr_dtype_text((mr_dtype)index->dtype));
}

static mr_status wrong_shape(const mr_launch *launch, const char *what, const mr_tensor *t,
                             const char *expected) {
    char shape[192], name[160];
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s %s is %s, expected %s", launch->name, what,
                   mr_tensor_describe(t, name, sizeof name),
                   mr_shape_text(t->ndim, t->shape, shape, sizeof shape), expected);
}

/* The index is no larger than `t` in any dim but `free_dim` (-1: none). */
static mr_status check_inside(const mr_launch *launch, const mr_tensor *index, const mr_tensor *t,
                              int free_dim) {
    char shape[192], text[256];
    bool fits = index->ndim == t->ndim;
    for (int d = 0; d < index->ndim && fits; d++)
        fits = d == free_dim || index->shape[d] <= t->shape[d];
    if (fits) return MR_OK;
    if (free_dim < 0)
        snprintf(text, sizeof text, "at most %s",
                 mr_shape_text(t->ndim, t->shape, shape, sizeof shape));
    else
        snprintf(text, sizeof text, "at most %s outside of dim %d",
                 mr_shape_text(t->ndim, t->shape, shape, sizeof shape), free_dim + 1);
    return wrong_shape(launch, "the index", index, text);
}

/* index_add_: the source is like the tensor, but for the dim, in which it is like the index. */
static mr_status check_rows(const mr_launch *launch, const operands *o) {
    int64_t shape[MR_MAX_DIMS];
    char text[192];
    memcpy(shape, o->chosen->shape, sizeof shape);
    shape[o->dim] = o->index->numel;
    if (mr_has_shape(o->plain, o->chosen->ndim, shape)) return MR_OK;
    return wrong_shape(launch, source, o->plain,
                       mr_shape_text(o->chosen->ndim, shape, text, sizeof text));
}

static mr_status check_flat(const mr_launch *launch, const operands *o, int most) {
    if (o->chosen->ndim == 0)
        return wrong_shape(launch, "the tensor", o->chosen, "one dim or more");
    if (o->index->ndim > most) return wrong_shape(launch, "the index", o->index, "one dim");
    return MR_OK;
}

static mr_status check_same_dtype(const mr_launch *launch, const char *what, const mr_tensor *t,
                                  const mr_tensor *chosen) {
    char a[160], b[160];
    if (t->dtype == chosen->dtype) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: %s %s is %s, but %s is %s: both must be of one dtype", launch->name, what,
                   mr_tensor_describe(t, a, sizeof a), mr_dtype_text((mr_dtype)t->dtype),
                   mr_tensor_describe(chosen, b, sizeof b), mr_dtype_text((mr_dtype)chosen->dtype));
}

/* On the host the values are there, so a wrong one is an error of the call. */
static mr_status check_values(const mr_launch *launch, const operands *o) {
    int64_t at, value, size = o->chosen->ndim > 0 ? o->chosen->shape[o->dim] : 1;
    if (!mr_tensor_on_host(o->index)) return MR_OK;
    if (!mr_index_find_bad(o->index, size, &at, &value)) return MR_OK;
    return mr_index_fail(MR_CODE_INVALID_ARGUMENT, launch->name, o->index, at, value, o->chosen,
                         size);
}

/* ------------------------------------------------------------------------- picking */

/* The shape of the result. */
static mr_status picked_shape(const mr_launch *launch, const operands *o, int *out_ndim,
                              int64_t *out_shape) {
    const mr_tensor *index = o->index, *chosen = o->chosen;
    const mr_index_body *body = launch->op->body;
    if (!body->flat) {
        *out_ndim = index->ndim;
        memcpy(out_shape, index->shape, sizeof index->shape);
        return check_inside(launch, index, chosen, o->dim);
    }
    bool rows = launch->op->id == MR_OP_embedding;
    MR_TRY(check_flat(launch, o, rows ? MR_MAX_DIMS - 1 : 1));
    if (rows && chosen->ndim != 2) return wrong_shape(launch, "the table", chosen, "two dims");
    int n = 0;
    for (int d = 0; d < chosen->ndim; d++) {
        if (d != o->dim) {
            out_shape[n++] = chosen->shape[d];
        } else if (rows) {
            for (int k = 0; k < index->ndim; k++) out_shape[n++] = index->shape[k];
        } else {
            out_shape[n++] = index->numel;
        }
    }
    *out_ndim = n;
    return MR_OK;
}

static mr_status pick(mr_launch *launch, const mr_call *call, const operands *o,
                      mr_tensor **out_tensor) {
    int ndim = 0;
    int64_t shape[MR_MAX_DIMS];
    MR_TRY(picked_shape(launch, o, &ndim, shape));
    mr_tensor *out = call->out;
    if (out) {
        MR_TRY(mr_launch_check(launch, out));
        MR_TRY(mr_launch_check_out(launch, out, (mr_dtype)o->chosen->dtype, ndim, shape));
        MR_TRY(check_same_dtype(launch, "the output", out, o->chosen));
        MR_TRY(mr_launch_check_overlap(launch, out, o->chosen, false));
        MR_TRY(mr_launch_check_overlap(launch, out, o->index, false));
    }
    MR_TRY(mr_launch_place(launch, call->stream));
    MR_TRY(check_values(launch, o));
    if (!out) MR_TRY(mr_launch_new(launch, (mr_dtype)o->chosen->dtype, ndim, shape, &out));
    mr_launch_operand(launch, out, MR_WRITE);
    mr_launch_operand(launch, o->chosen, MR_READ);
    mr_launch_operand(launch, o->index, MR_READ);
    mr_status status = mr_launch_go(launch);
    if (!status) *out_tensor = out;
    else if (!call->out) mr_drop_new(out);
    return status;
}

/* ------------------------------------------------------------------------- setting, adding */

static mr_status check_placed(const mr_launch *launch, const operands *o) {
    const mr_index_body *body = launch->op->body;
    if (body->flat) {
        MR_TRY(check_flat(launch, o, 1));
        MR_TRY(check_rows(launch, o));
    } else {
        MR_TRY(check_inside(launch, o->index, o->chosen, o->dim));
        if (o->plain) MR_TRY(check_inside(launch, o->index, o->plain, -1));
    }
    return o->plain ? check_same_dtype(launch, source, o->plain, o->chosen) : MR_OK;
}

static mr_status check_number(const mr_launch *launch, const mr_tensor *t, mr_scalar number) {
    mr_dtype dtype = (mr_dtype)t->dtype;
    bool fraction = !number.is_integer && mr_dtype_category(dtype) < 2;
    char text[160];
    if (!fraction && (!number.is_integer || mr_dtype_holds(dtype, number.i))) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s is %s, which cannot hold %g", launch->name,
                   mr_tensor_describe(t, text, sizeof text), mr_dtype_text(dtype), number.f);
}

static mr_status check_changed(const mr_launch *launch, const operands *o) {
    const mr_tensor *t = o->chosen;
    MR_TRY(mr_launch_check_out(launch, t, (mr_dtype)t->dtype, t->ndim, t->shape));
    MR_TRY(mr_launch_check_overlap(launch, t, o->index, false));
    return o->plain ? mr_launch_check_overlap(launch, t, o->plain, false) : MR_OK;
}

static mr_status write_to(mr_launch *launch, const mr_call *call, const operands *o, mr_tensor *t) {
    if (o->index->numel == 0) return MR_OK;
    mr_launch_operand(launch, t, MR_READ | MR_WRITE); /* most elements stay as they are */
    mr_launch_operand(launch, o->index, MR_READ);
    if (o->plain) mr_launch_operand(launch, o->plain, MR_READ);
    else launch->params.index.number = call->in[2].scalar;
    return mr_launch_go(launch);
}

static mr_status copy_of(const mr_launch *launch, const mr_call *call, mr_tensor *t,
                         mr_tensor **out_copy) {
    mr_launch copy;
    mr_launch_init(&copy, launch->caller, &mr_ops[MR_OP_copy], call);
    copy.params = (mr_params){0};
    copy.params.elementwise.dtype = t->dtype; /* the input is an operand */
    MR_TRY(mr_launch_check(&copy, t));
    MR_TRY(mr_launch_place(&copy, call->stream));
    MR_TRY(mr_launch_new(&copy, (mr_dtype)t->dtype, t->ndim, t->shape, out_copy));
    mr_launch_operand(&copy, *out_copy, MR_WRITE);
    mr_launch_operand(&copy, t, MR_READ);
    mr_status status = mr_launch_go(&copy);
    if (status) mr_drop_new(*out_copy);
    return status;
}

/* Not in place, the result is a copy that is written to. All checks have been made when the copy is submitted. */
static mr_status place(mr_launch *launch, const mr_call *call, const operands *o,
                       mr_tensor **out_tensor) {
    mr_tensor *t = o->chosen;
    MR_TRY(check_placed(launch, o));
    if (call->in_place) MR_TRY(check_changed(launch, o));
    if (!o->plain) MR_TRY(check_number(launch, t, call->in[2].scalar));
    MR_TRY(mr_launch_place(launch, call->stream));
    MR_TRY(check_values(launch, o));
    if (!call->in_place) MR_TRY(copy_of(launch, call, o->chosen, &t));
    mr_status status = write_to(launch, call, o, t);
    if (!status) *out_tensor = t;
    else if (!call->in_place) mr_drop_new(t);
    return status;
}

/* Inputs: the tensor that is chosen from or written to, the index, and the source, if there is one. */
mr_status mr_call_index(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    const mr_index_body *body = launch->op->body;
    operands o = {call->in[0].tensor, call->in[1].tensor, call->in[2].tensor, 0};
    if (call->in_count != launch->op->inputs || !o.chosen || !o.index)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes a tensor and an index", launch->name);
    MR_TRY(mr_launch_check(launch, o.chosen));
    MR_TRY(mr_launch_check(launch, o.index));
    if (o.plain) MR_TRY(mr_launch_check(launch, o.plain));
    MR_TRY(check_index(launch, o.index));
    if (call->dim_count != 1)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes one dimension, not %d", launch->name,
                       call->dim_count);
    MR_TRY(mr_dim_resolve(o.chosen->ndim, call->dims[0], launch->name, &o.dim));
    launch->params.index.dim = o.dim;
    return body->action == MR_INDEX_PICK ? pick(launch, call, &o, out_tensor)
                                         : place(launch, call, &o, out_tensor);
}
