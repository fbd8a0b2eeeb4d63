/* The CPU body of the steps of optimisers: the elements of all parameters, one after the other. */
#include "ops/optimise.h"

#include "ops/body.h"
#include "ops/body/optimisers.h"
#include "ops/step.h"

/* ------------------------------------------------------------------------- loops */

/* A run of neighbouring elements of one parameter: its values, its gradient, its states (NULL: none). */
typedef void (*step_loop)(const mr_step *step, void *p, const void *g, void *s0, void *s1,
                          int64_t n);

/* `state` reads element i of a state, or something that is not used. */
#define LOOP(name, tag, T, state0, state1)                                                         \
    MR_CLONES static void name##_##tag(const mr_step *step, void *p_, const void *g_, void *s0_,   \
                                       void *s1_, int64_t n) {                                     \
        T number[MR_STEP_NUMBERS], none = 0, *p = p_, *s0 = s0_, *s1 = s1_;                        \
        const T *g = g_;                                                                           \
        uint32_t flags = step->flags;                                                              \
        for (int i = 0; i < MR_STEP_NUMBERS; i++) number[i] = (T)step->number[i];                  \
        (void)none, (void)s0, (void)s1;                                                            \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++)                                                            \
            mr_##name##_##tag(number, flags, &p[i], g[i], state0, state1);                         \
    }
#define STATES_0(name, tag, T) LOOP(name, tag, T, &none, &none)
#define STATES_1(name, tag, T) LOOP(name, tag, T, &s0[i], &none)
#define STATES_2(name, tag, T) LOOP(name, tag, T, &s0[i], &s1[i])

struct mr_optimiser {
    int states;
    step_loop loop[MR_DTYPE_COUNT];
};

#define X(name, states_, ...)                                                                      \
    STATES_##states_(name, f32, float) STATES_##states_(name, f64, double)                         \
        const mr_optimiser mr_optimiser_##name = {                                                 \
            .states = states_, .loop = {[MR_F32] = name##_f32, [MR_F64] = name##_f64}};
MR_OPTIMISE_TABLE(X)
#undef X

int mr_step_states(const mr_op *op) {
    return ((const mr_optimiser *)op->body)->states;
}

/* ------------------------------------------------------------------------- items */

static uint32_t each(const mr_command *command) {
    return 2 + (uint32_t)mr_step_states(command->u.op.row);
}

int64_t mr_optimise_items(const mr_command *command) {
    int64_t items = 0;
    for (uint32_t i = 0; i < command->operand_count; i += each(command))
        items += command->operands[i].tensor->numel;
    return items;
}

/* `n` elements from `first` on of the parameter whose operands begin at `o`. */
static void run_parameter(const mr_command *command, const mr_operand *o, int64_t first,
                          int64_t n) {
    const mr_optimiser *optimiser = command->u.op.row->body;
    mr_dtype dtype = (mr_dtype)o->tensor->dtype;
    char *at[2 + MR_STEP_STATES] = {0};
    for (int k = 0; k < 2 + optimiser->states; k++)
        at[k] = (char *)mr_tensor_data(o[k].tensor) + (size_t)first * mr_dtype_size(dtype);
    optimiser->loop[dtype](command->u.op.arguments, at[0], at[1], at[2], at[3], n);
}

mr_status mr_optimise_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    int64_t begin = 0; /* of the parameter, among the items */
    for (uint32_t i = 0; i < command->operand_count && begin < end; i += each(command)) {
        int64_t numel = command->operands[i].tensor->numel;
        int64_t from = first > begin ? first : begin,
                to = end < begin + numel ? end : begin + numel;
        if (from < to) run_parameter(command, &command->operands[i], from - begin, to - from);
        begin += numel;
    }
    return MR_OK;
}

void mr_optimise_cost(const mr_command *command, mr_cost *out_cost) {
    mr_elementwise_cost(command, out_cost);
    double items = (double)mr_optimise_items(command);
    out_cost->flops = items * command->u.op.row->flops;
    double blocks = items / 1024 + 1;
    out_cost->blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX;
}
