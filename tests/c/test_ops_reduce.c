/* Reductions of every dtype and layout, over every choice of dims, against naive loops in long double;
 * and that how the work is sliced cannot be seen. */
#include "fake_backend.h"
#include "ops/ids.h"

static bool is_float(mr_dtype dtype) {
    return mr_dtype_category(dtype) == 2;
}

/* The elements that go into one output, in row-major order of the reduced dims. */
static int64_t members(const mr_tensor *t, unsigned reduced, int64_t output, mr_scalar *out) {
    int64_t index[MR_MAX_DIMS] = {0}, n = 1;
    for (int d = t->ndim; d-- > 0;) {
        if (reduced & (1u << d)) {
            n *= t->shape[d];
        } else {
            index[d] = output % t->shape[d];
            output /= t->shape[d];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, position = 0;
        for (int d = t->ndim; d-- > 0;) {
            if (!(reduced & (1u << d))) continue;
            index[d] = rest % t->shape[d];
            rest /= t->shape[d];
        }
        for (int d = 0; d < t->ndim; d++) position = position * t->shape[d] + index[d];
        out[i] = get(t, position);
    }
    return n;
}

static mr_scalar reference(const char *name, mr_dtype dtype, const mr_scalar *x, int64_t n,
                           double correction) {
    bool real_in = is_float(dtype);
    long double sum = 0, squares = 0, product = 1;
    uint64_t wrapped = 0, wrapped_product = 1;
    bool any = false, all = true;
    int64_t best = 0;
    bool least = strcmp(name, "min") == 0 || strcmp(name, "argmin") == 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i].f;
        squares += (long double)x[i].f * x[i].f;
        product *= x[i].f;
        wrapped += (uint64_t)x[i].i;
        wrapped_product *= (uint64_t)x[i].i;
        bool nonzero = real_in ? x[i].f != 0 : x[i].i != 0;
        any |= nonzero;
        all &= nonzero;
        bool better = real_in ? (least ? x[i].f < x[best].f : x[i].f > x[best].f)
                              : (least ? x[i].i < x[best].i : x[i].i > x[best].i);
        if (real_in && isnan(x[i].f)) better = true;
        if (real_in && isnan(x[best].f)) better = false;
        if (better) best = i;
    }
    if (strcmp(name, "sum") == 0) return real_in ? real((double)sum) : whole((int64_t)wrapped);
    if (strcmp(name, "prod") == 0)
        return real_in ? real((double)product) : whole((int64_t)wrapped_product);
    if (strcmp(name, "mean") == 0) return real((double)(sum / n));
    if (strcmp(name, "norm") == 0) return real((double)sqrtl(squares));
    if (strcmp(name, "any") == 0) return whole(any);
    if (strcmp(name, "all") == 0) return whole(all);
    if (strncmp(name, "arg", 3) == 0) return whole(best + 1);
    if (strcmp(name, "max") == 0 || strcmp(name, "min") == 0) return x[best];
    long double m2 = 0, mean = sum / n;
    for (int64_t i = 0; i < n; i++) m2 += (x[i].f - mean) * (x[i].f - mean);
    double var = (double)(m2 / fmax((double)n - correction, 0));
    return real(strcmp(name, "std") == 0 ? sqrt(var) : var);
}

static void check_reduction(const mr_op *op, mr_tensor *in, unsigned reduced, bool keepdim,
                            double tolerance) {
    mr_call call = {.in[0].tensor = in, .in_count = 1, .keepdim = keepdim, .dims_given = true};
    call.params.reduce.correction = 1;
    int64_t length = 1, outputs = 1;
    for (int d = 0; d < in->ndim; d++) {
        if (reduced & (1u << d)) {
            call.dims[call.dim_count++] = random_below(2) ? d : d - in->ndim;
            length *= in->shape[d];
        } else {
            outputs *= in->shape[d];
        }
    }
    if (reduced == (1u << in->ndim) - 1u && random_below(2)) call.dims_given = false;
    if ((op->rules & MR_RULE_ONE_DIM) && call.dims_given && call.dim_count != 1) return;
    if ((op->rules & MR_RULE_NEEDS_ELEMENT) && length == 0) {
        expect_error(try_call(op->name, &call), MR_CODE_INVALID_ARGUMENT, "no elements");
        return;
    }
    mr_tensor *host = run_call(op->name, &call);
    assert_int_equal(host->numel, outputs);
    assert_int_equal(host->ndim, keepdim ? in->ndim : in->ndim - __builtin_popcount(reduced));
    mr_scalar *x = malloc((size_t)(length ? length : 1) * sizeof *x);
    for (int64_t o = 0; o < outputs; o++) {
        int64_t n = members(in, reduced, o, x);
        mr_scalar want = reference(op->name, (mr_dtype)in->dtype, x, n, 1), got = get(host, o);
        bool ok;
        if (is_float((mr_dtype)host->dtype)) {
            double w = naive_rounded((mr_dtype)host->dtype, want.f);
            long double size = 0;
            for (int64_t i = 0; i < n; i++) size += fabs(x[i].f);
            ok = w == got.f || (isnan(w) && isnan(got.f)) ||
                 fabs(w - got.f) <= tolerance * fmax((double)size, fabs(w)) ||
                 (isinf(got.f) && fabs(w) > 1e300);
            ok = ok || (host->dtype == MR_F32 && fabs(w - got.f) <= fabs(w) * 1.2e-7);
            if (mr_dtype_is_half(
                    (mr_dtype)host->dtype)) /* rounded once from what is nearly exact */
                ok = w == got.f ||
                     is_rounded((mr_dtype)host->dtype, want.f, 1e-14 * (double)size, got.f);
        } else {
            ok = want.i == got.i;
        }
        if (!ok)
            fail_msg("%s of %lld %s, output %lld, is %.17g (%lld), not %.17g (%lld)", op->name,
                     (long long)n, mr_dtype_text((mr_dtype)in->dtype), (long long)o, got.f,
                     (long long)got.i, want.f, (long long)want.i);
    }
    free(x);
    mr_tensor *device_in = copy_in(in, MR_MEMORY_DEVICE);
    for (int i = 0; i < 3; i++) {
        call.in[0].tensor = device_in;
        mr_tensor *device = run_call(op->name, &call);
        if (!same_bits(host, device))
            fail_msg("%s of %s: slices change the result", op->name,
                     mr_dtype_text((mr_dtype)in->dtype));
        drop(device);
    }
    drop(device_in);
    drop(host);
}

static const struct {
    int ndim;
    int64_t shape[4];
} shapes[] = {{0, {0}},      {1, {0}},      {1, {1}},    {1, {17}},        {1, {3000}},
              {2, {33, 70}}, {2, {200, 9}}, {2, {0, 4}}, {3, {7, 11, 13}}, {4, {3, 4, 5, 6}}};

static void reductions_agree_with_naive_ones(void **state) {
    (void)state;
    for (int i = MR_OP_FIRST; i < MR_OP_COUNT; i++) {
        const mr_op *op = &mr_ops[i];
        if (op->family->id != MR_FAMILY_REDUCE) continue;
        for (int d = 0; d < MR_DTYPE_COUNT; d++) {
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                for (int how = 0; how < LAYOUTS; how++) {
                    for (unsigned reduced = 0; reduced < 1u << shapes[s].ndim; reduced++) {
                        mr_tensor *in = make_laid_out(MR_MEMORY_PAGEABLE, (mr_dtype)d,
                                                      shapes[s].ndim, shapes[s].shape, (layout)how);
                        /* Hostile values where the answer does not hang on the order of operations. */
                        bool exact = op->result == MR_RESULT_SAME || op->result == MR_RESULT_BOOL ||
                                     op->result == MR_RESULT_INDEX;
                        for (int64_t j = 0; j < in->numel; j++)
                            set(in, j,
                                exact || !is_float((mr_dtype)d)
                                    ? random_value((mr_dtype)d)
                                    : real((double)random_below(2001) / 1000 - 1));
                        if (strcmp(op->name, "var") == 0 || strcmp(op->name, "std") == 0 ||
                            strcmp(op->name, "norm") == 0 || strcmp(op->name, "mean") == 0)
                            for (int64_t j = 0; j < in->numel; j++)
                                set(in, j,
                                    is_float((mr_dtype)d)
                                        ? real((double)random_below(2001) / 1000 + 5)
                                        : whole(random_below(100)));
                        check_reduction(op, in, reduced, random_below(2),
                                        d == MR_F32 ? 1e-7 : 1e-14);
                        drop(in);
                    }
                }
            }
        }
    }
}

/* Long enough for chunks: items are parts of outputs, and `finish` joins them. */
static void long_reductions_are_sliced_within_an_output(void **state) {
    (void)state;
    static const char *const names[] = {"sum", "max", "argmin", "std", "any"};
    const int64_t n = 300001;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        for (int how = 0; how < 3; how++) {
            mr_tensor *in =
                how == 0   ? make(MR_F32, SHAPE(n))
                : how == 1 ? make_laid_out(MR_MEMORY_PAGEABLE, MR_F64, SHAPE(3, n / 3), TRANSPOSED)
                           : make_laid_out(MR_MEMORY_PAGEABLE, MR_I32, SHAPE(n / 5, 5), DENSE);
            for (int64_t i = 0; i < in->numel; i++)
                set(in, i,
                    is_float((mr_dtype)in->dtype) ? real((double)random_below(1000000) / 1e6)
                                                  : whole(random_below(1000) - 500));
            const mr_op *op = mr_op_find(names[k]);
            for (unsigned reduced = 1; reduced < 1u << in->ndim; reduced++)
                check_reduction(op, in, reduced, false, 1e-7);
            drop(in);
        }
    }
}

/* A sum of floats must be better than a running f32 sum by orders of magnitude: NumPy's pairwise sum of
 * these is off by about 1e-7 of the value. */
static void sums_do_not_drift(void **state) {
    (void)state;
    const int64_t n = 1 << 22;
    mr_tensor *t = make(MR_F32, SHAPE(n));
    float *x = mr_tensor_data(t);
    long double exact = 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] = 0.1f + (float)random_below(1000) * 1e-3f;
        exact += x[i];
    }
    mr_call call = {.in[0].tensor = t, .in_count = 1};
    mr_tensor *sum = run_call("sum", &call);
    assert_true(get(sum, 0).f == (double)(float)exact);
    drop(sum);
    drop(t);
}

static void out_and_wrong_dims(void **state) {
    (void)state;
    mr_tensor *t = make(MR_F32, SHAPE(4, 6)),
              *out = make_laid_out(MR_MEMORY_PAGEABLE, MR_F64, SHAPE(4), STEPPED),
              *ints = make(MR_I32, SHAPE(4));
    for (int64_t i = 0; i < 24; i++) set(t, i, real((double)i));
    mr_call call = {.in[0].tensor = t,
                    .in_count = 1,
                    .dims_given = true,
                    .dims = {1},
                    .dim_count = 1,
                    .out = out};
    run_call("sum", &call);
    for (int r = 0; r < 4; r++) assert_true(f64_at(out, r) == 36 * r + 15);
    call.out = ints;
    expect_error(try_call("mean", &call), MR_CODE_INVALID_ARGUMENT, "cannot be written to");
    run_call("argmax", &call);
    assert_int_equal(get(ints, 2).i, 6);
    call.out = NULL;
    call.dims[0] = 2;
    expect_error(try_call("sum", &call), MR_CODE_INVALID_ARGUMENT,
                 "sum: dimension 3 of a tensor with 2 dimensions");
    call.dims[0] = -3;
    expect_error(try_call("sum", &call), MR_CODE_INVALID_ARGUMENT, "dimension -3");
    call.dims[0] = call.dims[1] = 1;
    call.dim_count = 2;
    expect_error(try_call("sum", &call), MR_CODE_INVALID_ARGUMENT, "dimension 2 is given twice");
    call.dims[1] = 0;
    expect_error(try_call("argmax", &call), MR_CODE_INVALID_ARGUMENT, "one dimension or none");
    mr_call overlap = {
        .in[0].tensor = t, .in_count = 1, .dims_given = true, .dims = {1}, .dim_count = 1};
    expect_ok(mr_tensor_select(&caller, t, 1, 0, &overlap.out));
    expect_error(try_call("sum", &overlap), MR_CODE_INVALID_ARGUMENT, "share memory");
    drop(overlap.out);
    drop(t), drop(out), drop(ints);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_agree_with_naive_ones),
        cmocka_unit_test(long_reductions_are_sliced_within_an_output),
        cmocka_unit_test(sums_do_not_drift),
        cmocka_unit_test(out_and_wrong_dims),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
