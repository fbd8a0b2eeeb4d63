/* Steps of optimisers beside a naive reference in long double; in slices (the fake backend cuts anywhere) as at
 * once. */
#include "fake_backend.h"

#include "ops/ids.h"
#include "ops/optimise.h"

enum { PARAMETERS = 9, MOST_STATES = 2, TENSORS = PARAMETERS * (2 + MOST_STATES) };
static const int64_t sizes[PARAMETERS] = {1, 0, 3, 700, 2049, 64, 1, 5000, 31};

typedef struct {
    mr_tensor *host[TENSORS], *device[TENSORS];
} tensors;

static double noise(void) {
    return (double)random_below(2000001) / 1e6 - 1;
}

/* Tensor `squares` of each parameter is a state that is never negative. */
static void make_tensors(tensors *t, mr_dtype dtype, int each, int squares) {
    for (int i = 0; i < PARAMETERS * each; i++) {
        int64_t shape[] = {sizes[i / each]};
        t->host[i] = make(dtype, 1, shape);
        t->device[i] = make_on(MR_MEMORY_DEVICE, 0, dtype, 1, shape);
        for (int64_t k = 0; k < shape[0]; k++) {
            double value = i % each == squares ? noise() * noise() + 1 : noise();
            set(t->host[i], k, real(value));
            set(t->device[i], k, real(value));
        }
    }
}

static void drop_tensors(tensors *t, int each) {
    for (int i = 0; i < PARAMETERS * each; i++) drop(t->host[i]), drop(t->device[i]);
}

/* ------------------------------------------------------------------------- the reference */

static bool is_rmsprop(mr_op_id id) {
    return id == MR_OP_rmsprop_step || id == MR_OP_rmsprop_momentum_step;
}

/* x: parameter, gradient, states. */
static void step_by_hand(mr_op_id id, const mr_step *s, long double *x) {
    const double *n = s->number;
    long double g = x[1];
    if (id == MR_OP_gather_grads) {
        x[0] = g;
        return;
    }
    bool decays = s->flags & MR_STEP_DECAYS, decoupled = s->flags & MR_STEP_DECOUPLED;
    if (is_rmsprop(id)) {
        if (decays) g += n[1] * x[0];
        x[2] = n[2] * x[2] + n[3] * g * g;
        g /= sqrtl(x[2]) + n[4];
        if (id == MR_OP_rmsprop_momentum_step) g = x[3] = n[5] * x[3] + g;
        x[0] -= n[0] * g;
        return;
    }
    if (id != MR_OP_adam_step) {
        if (decays) g += n[1] * x[0];
        if (id == MR_OP_momentum_step) {
            x[2] = s->flags & MR_STEP_FIRST ? g : n[2] * x[2] + n[3] * g;
            g = s->flags & MR_STEP_NESTEROV ? g + n[2] * x[2] : x[2];
        }
        x[0] -= n[0] * g;
        return;
    }
    if (decays && decoupled) x[0] *= n[1];
    if (decays && !decoupled) g += n[1] * x[0];
    x[2] = n[2] * x[2] + n[3] * g;
    x[3] = n[4] * x[3] + n[5] * g * g;
    x[0] -= n[0] * x[2] / (sqrtl(x[3]) / n[6] + n[7]);
}

static void expect_step(mr_op_id id, mr_dtype dtype, uint32_t flags) {
    const mr_op *op = &mr_ops[id];
    int each = 2 + mr_step_states(op);
    mr_step step = {.number = {0.01, 0.9, 0.875, 0.125, 0.75, 0.25, 0.5, 1e-8},
                    .flags = flags,
                    .parameters = PARAMETERS};
    tensors t;
    make_tensors(&t, dtype, each, is_rmsprop(id) ? 2 : 3);
    static long double expected[TENSORS][5000];
    for (int i = 0; i < PARAMETERS * each; i += each)
        for (int64_t e = 0; e < sizes[i / each]; e++) {
            long double x[4];
            for (int k = 0; k < each; k++) x[k] = get(t.host[i + k], e).f;
            step_by_hand(id, &step, x);
            for (int k = 0; k < each; k++) expected[i + k][e] = x[k];
        }
    expect_ok(mr_optimise(&caller, op, &step, t.host));
    expect_ok(mr_optimise(&caller, op, &step, t.device));
    double bound = dtype == MR_F32 ? 1e-6 : 1e-15;
    for (int i = 0; i < PARAMETERS * each; i++)
        for (int64_t e = 0; e < sizes[i / each]; e++) {
            double host = get(t.host[i], e).f, device = get(t.device[i], e).f;
            if (host != device ||
                fabsl(host - expected[i][e]) > bound * (1 + fabsl(expected[i][e])))
                fail_msg(
                    "%s flags %u tensor %d element %d: %.17g, in slices %.17g, expected %.17Lg",
                    op->name, flags, i, (int)e, host, device, expected[i][e]);
        }
    drop_tensors(&t, each);
}

static void values(void **state) {
    (void)state;
    static const uint32_t flags[] = {0, MR_STEP_DECAYS, MR_STEP_DECAYS | MR_STEP_DECOUPLED,
                                     MR_STEP_NESTEROV | MR_STEP_DECAYS, MR_STEP_FIRST};
    for (mr_op_id id = MR_OP_sgd_step; id <= MR_OP_gather_grads; id++)
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
            expect_step(id, MR_F32, flags[i]);
            expect_step(id, MR_F64, flags[i]);
        }
}

static void refused(const char *piece, mr_tensor *a, mr_tensor *b) {
    mr_tensor *list[] = {a, b};
    mr_step step = {.number = {0.1}, .parameters = 1};
    mr_status status = mr_optimise(&caller, &mr_ops[MR_OP_sgd_step], &step, list);
    assert_non_null(status);
    assert_int_equal(status->code, MR_CODE_INVALID_ARGUMENT);
    if (!strstr(status->message, piece)) fail_msg("%s\nwithout: %s", status->message, piece);
    mr_error_destroy(status);
}

static void wrong_tensors(void **state) {
    (void)state;
    mr_tensor *p = make(MR_F32, SHAPE(2, 3)), *whole_numbers = make(MR_I32, SHAPE(2, 3)),
              *other = make(MR_F32, SHAPE(3, 2)), *wide = make(MR_F64, SHAPE(2, 3)),
              *half = make(MR_F16, SHAPE(2)), *half2 = make(MR_F16, SHAPE(2)),
              *far = make_on(MR_MEMORY_DEVICE, 0, MR_F32, SHAPE(2, 3)), *across;
    expect_ok(mr_tensor_transpose(&caller, other, 0, 1, &across));
    refused("is 3x2, but its parameter is 2x3", p, other);
    refused("is f64, but", p, wide);
    refused("move one of them", p, far);
    refused("is not contiguous", p, across);
    refused("f32 or f64, not i32", whole_numbers, whole_numbers);
    refused("f32 or f64, not f16", half, half2);
    drop(p), drop(whole_numbers), drop(other), drop(wide), drop(half), drop(half2), drop(far),
        drop(across);
}

static void no_parameters(void **state) {
    (void)state;
    mr_step step = {.parameters = 0};
    expect_ok(mr_optimise(&caller, &mr_ops[MR_OP_adam_step], &step, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(wrong_tensors),
        cmocka_unit_test(no_parameters),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
