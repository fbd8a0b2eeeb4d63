/* Runs nll_loss and its gradient. A position has all that belongs to one target. It is an item of nll_loss without a
 * reduction and of the gradient. A loss that is one number is one item, added up in double in the order of the
 * targets. */
#include "ops/body.h"
#include "ops/ids.h"
#include "ops/network.h"

#include <inttypes.h>

void mr_loss_classes(const mr_tensor *x, mr_tensor *out_rest, int64_t *out_classes,
                     int64_t *out_step) {
    int classes = x->ndim > 1 ? 1 : 0, n = 0;
    *out_rest = *x;
    for (int d = 0; d < x->ndim; d++) {
        if (d == classes) continue;
        out_rest->shape[n] = x->shape[d];
        out_rest->stride[n++] = x->stride[d];
    }
    out_rest->ndim = (uint8_t)n;
    *out_classes = x->shape[classes];
    *out_step = x->stride[classes];
}

typedef struct {
    const mr_command *command;
    const mr_tensor *target, *weight;
    int reduction;
    bool backward;
    int64_t ignored, classes, step; /* from class to class */
    /* over the targets; operand 0: the targets, 1: the input (its gradient), 2: the losses (their
     * gradient) */
    mr_walk walk;
} loss;

static loss loss_of(const mr_command *command) {
    mr_loss_params params = mr_params_of(command).loss;
    bool backward = command->u.op.row->id == MR_OP_nll_loss_backward;
    const mr_operand *o = command->operands;
    loss l = {.command = command,
              .target = o[2].tensor,
              .weight = params.weighted ? o[3].tensor : NULL,
              .reduction = params.reduction,
              .backward = backward,
              .ignored = params.ignored};
    mr_tensor rest, flat = {.ndim = 0};
    const mr_tensor *losses = o[backward ? 1 : 0].tensor;
    mr_loss_classes(o[backward ? 0 : 1].tensor, &rest, &l.classes, &l.step);
    mr_walk_init(
        &l.walk, l.target->ndim, l.target->shape, 3,
        (const mr_tensor *const[]){l.target, &rest, l.reduction == MR_LOSS_NONE ? losses : &flat});
    return l;
}

int64_t mr_loss_items(const mr_command *command) {
    bool backward = command->u.op.row->id == MR_OP_nll_loss_backward;
    bool one = mr_params_of(command).loss.reduction != MR_LOSS_NONE;
    return one && !backward ? 1 : command->operands[2].tensor->numel;
}

/* The class of a position, from 0; -1: it does not count. */
static mr_status class_of(const loss *l, int64_t position, int64_t *out_class) {
    int64_t at = mr_walk_offset(&l->walk, 0, position);
    const void *data = mr_tensor_data(l->target);
    int64_t value =
        l->target->dtype == MR_I64 ? ((const int64_t *)data)[at] : ((const int32_t *)data)[at];
    *out_class = -1;
    if (value == l->ignored) return MR_OK;
    if (value < 1 || value > l->classes) {
        char name[160];
        /* On the host the call fails; on a device no call is waiting, so the device is lost (R50). */
        return mr_fail(l->command->stream ? MR_CODE_ASSERT : MR_CODE_INVALID_ARGUMENT,
                       "%s: a target is out of range: %s has the value %" PRId64
                       " at element %" PRId64 ", expected 1 to %" PRId64,
                       l->command->name, mr_tensor_describe(l->target, name, sizeof name), value,
                       position + 1, l->classes);
    }
    *out_class = value - 1;
    return MR_OK;
}

#define LOSSES(tag, T)                                                                             \
    static double weight_##tag(const loss *l, int64_t class) {                                     \
        if (class < 0) return 0;                                                                   \
        if (!l->weight) return 1;                                                                  \
        return (double)((const T *)mr_tensor_data(l->weight))[class * l->weight->stride[0]];       \
    }                                                                                              \
    static mr_status add_##tag(const loss *l, int64_t position, double *loss_sum,                  \
                               double *weight_sum) {                                               \
        int64_t class;                                                                             \
        const T *x = (const T *)mr_tensor_data(l->command->operands[1].tensor);                    \
        MR_TRY(class_of(l, position, &class));                                                     \
        if (class < 0) return MR_OK;                                                               \
        double w = weight_##tag(l, class);                                                         \
        *loss_sum -= w * (double)x[mr_walk_offset(&l->walk, 1, position) + class * l->step];       \
        *weight_sum += w;                                                                          \
        return MR_OK;                                                                              \
    }                                                                                              \
    static mr_status reduce_##tag(const loss *l) {                                                 \
        double sum = 0, weights = 0;                                                               \
        const mr_operand *o = l->command->operands;                                                \
        for (int64_t i = 0; i < l->target->numel; i++) MR_TRY(add_##tag(l, i, &sum, &weights));    \
        if (l->reduction == MR_LOSS_MEAN) sum /= weights;                                          \
        *(T *)mr_tensor_data(o[0].tensor) = (T)sum;                                                \
        *(T *)mr_tensor_data(o[l->command->operand_count - 1].tensor) = (T)weights;                \
        return MR_OK;                                                                              \
    }                                                                                              \
    static mr_status give_##tag(const loss *l, int64_t position) {                                 \
        const mr_operand *o = l->command->operands;                                                \
        T *to = (T *)mr_tensor_data(o[0].tensor) + mr_walk_offset(&l->walk, 1, position);          \
        double g = (double)((const T *)mr_tensor_data(                                             \
            o[1].tensor))[mr_walk_offset(&l->walk, 2, position)];                                  \
        int64_t class;                                                                             \
        MR_TRY(class_of(l, position, &class));                                                     \
        for (int64_t c = 0; c < l->classes; c++) to[c * l->step] = 0;                              \
        if (class < 0) return MR_OK;                                                               \
        if (l->reduction == MR_LOSS_MEAN)                                                          \
            g /= (double)*(const T *)mr_tensor_data(o[l->command->operand_count - 1].tensor);      \
        to[class * l->step] = (T)(-weight_##tag(l, class) * g);                                    \
        return MR_OK;                                                                              \
    }                                                                                              \
    static mr_status run_##tag(const loss *l, int64_t first, int64_t end) {                        \
        if (l->reduction != MR_LOSS_NONE && !l->backward) return reduce_##tag(l);                  \
        for (int64_t i = first; i < end; i++) {                                                    \
            double sum = 0, weights = 0;                                                           \
            if (l->backward) {                                                                     \
                MR_TRY(give_##tag(l, i));                                                          \
                continue;                                                                          \
            }                                                                                      \
            MR_TRY(add_##tag(l, i, &sum, &weights));                                               \
            ((T *)mr_tensor_data(l->command->operands[0].tensor))[i] = (T)sum;                     \
        }                                                                                          \
        return MR_OK;                                                                              \
    }
LOSSES(f32, float)
LOSSES(f64, double)

mr_status mr_loss_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    if (first >= end) return MR_OK;
    loss l = loss_of(command);
    return command->operands[0].tensor->dtype == MR_F32 ? run_f32(&l, first, end)
                                                        : run_f64(&l, first, end);
}

/* One score of each line of the input is read, and all of the gradient's are written. */
void mr_loss_cost(const mr_command *command, mr_cost *out_cost) {
    enum { THREADS = 256, PER_THREAD = 4 };
    const mr_operand *o = command->operands;
    loss l = loss_of(command);
    double positions = (double)l.target->numel, size = (double)mr_dtype_size(o[0].tensor->dtype);
    double each = (double)mr_dtype_size(l.target->dtype) + size * (1 + (l.weight != NULL));
    double rest = l.reduction == MR_LOSS_NONE ? 0 : size; /* the total weight */
    double blocks = (double)mr_loss_items(command) / (THREADS * PER_THREAD) + 1;
    *out_cost = (mr_cost){.flops = positions * command->u.op.row->flops,
                          .bytes = positions * each + (double)o[0].tensor->numel * size + rest,
                          .blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX,
                          .threads = THREADS};
}
