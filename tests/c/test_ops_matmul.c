/* Products: every rank that PyTorch takes, batches that broadcast, and strides with and without CBLAS, against naive
 * loops. */
#include "fake_backend.h"

static void fill_small(mr_tensor *t) {
    for (int64_t i = 0; i < t->numel; i++)
        set(t, i,
            mr_dtype_category(t->dtype) == 2 ? real((double)random_below(200) / 100 - 1)
                                             : whole(random_below(2000) - 1000));
}

/* Element (i, j) of matrix `batch` of t, where a vector is a row (left) or a column. */
static double matrix_at(const mr_tensor *t, const mr_tensor *out, int matrix_dims, int64_t batch,
                        int64_t i, int64_t j, bool left) {
    int64_t position[MR_MAX_DIMS] = {0};
    int own = t->ndim > 2 ? t->ndim - 2 : 0, dims = out->ndim - matrix_dims;
    for (int d = dims; d-- > 0;) {
        int64_t index = batch % out->shape[d];
        batch /= out->shape[d];
        int k = d - (dims - own);
        if (k >= 0) position[k] = t->shape[k] == 1 ? 0 : index;
    }
    if (t->ndim == 1) {
        position[0] = left ? j : i;
    } else {
        position[own] = i;
        position[own + 1] = j;
    }
    int64_t linear = 0;
    for (int d = 0; d < t->ndim; d++) linear = linear * t->shape[d] + position[d];
    mr_scalar v = get(t, linear);
    return mr_dtype_category(t->dtype) == 2 ? v.f : (double)v.i;
}

static void check_product(mr_tensor *a, mr_tensor *b) {
    mr_call call = {.in = {{.tensor = a}, {.tensor = b}}, .in_count = 2};
    mr_tensor *out = run_call("matmul", &call);
    int64_t m = a->ndim > 1 ? a->shape[a->ndim - 2] : 1, k = a->shape[a->ndim - 1],
            n = b->ndim > 1 ? b->shape[b->ndim - 1] : 1;
    int matrix_dims = (a->ndim > 1) + (b->ndim > 1);
    double tolerance = a->dtype == MR_F64 ? 1e-13 : 1e-5;
    for (int64_t at = 0; at < out->numel; at++) {
        int64_t batch = at / (m * n), i = at / n % m, j = at % n;
        double sum = 0, size = 0;
        for (int64_t l = 0; l < k; l++) {
            double term = matrix_at(a, out, matrix_dims, batch, i, l, true) *
                          matrix_at(b, out, matrix_dims, batch, l, j, false);
            sum += term;
            size += fabs(term);
        }
        mr_scalar got = get(out, at);
        if (mr_dtype_category(a->dtype) == 2) {
            double slack = tolerance * (size + 1e-3);
            bool is_half = mr_dtype_is_half((mr_dtype)a->dtype); /* summed in f32, rounded once */
            if (is_half ? !is_rounded((mr_dtype)a->dtype, sum, slack, got.f)
                        : fabs(got.f - sum) > slack)
                fail_msg("element %lld is %g, not %g", (long long)at, got.f, sum);
        } else {
            uint8_t bytes[8];
            mr_dtype_store(out->dtype, bytes, whole((int64_t)sum));
            assert_int_equal(got.i, mr_dtype_load(out->dtype, bytes).i);
        }
    }
    mr_tensor *da = copy_in(a, MR_MEMORY_DEVICE), *db = copy_in(b, MR_MEMORY_DEVICE);
    call.in[0].tensor = da, call.in[1].tensor = db;
    mr_tensor *device = run_call("matmul", &call);
    for (int64_t i = 0; i < out->numel; i++) {
        double x = get(out, i).f, y = get(device, i).f;
        /* CBLAS may sum a row differently when it is given fewer rows; halves may then be neighbours. */
        double neighbour = mr_dtype_is_half((mr_dtype)a->dtype) ? fabs(x) * 0x1p-7 : 0;
        assert_true(fabs(x - y) <= tolerance * (fabs(x) + (double)k) + neighbour);
    }
    drop(device), drop(da), drop(db), drop(out);
}

static const struct {
    int na, nb;
    int64_t a[4], b[4];
} cases[] = {
    {1, 1, {7}, {7}},
    {1, 1, {0}, {0}},
    {2, 1, {5, 7}, {7}},
    {1, 2, {7}, {7, 3}},
    {2, 2, {5, 7}, {7, 3}},
    {2, 2, {1, 1}, {1, 1}},
    {2, 2, {0, 4}, {4, 2}},
    {2, 2, {3, 0}, {0, 4}},
    {2, 2, {40, 50}, {50, 60}},
    {2, 2, {65, 300}, {300, 33}},
    {3, 3, {4, 5, 6}, {4, 6, 7}},
    {3, 2, {4, 5, 6}, {6, 7}},
    {2, 3, {5, 6}, {4, 6, 7}},
    {4, 3, {2, 3, 20, 30}, {3, 30, 10}},
    {4, 4, {2, 1, 5, 6}, {1, 3, 6, 4}},
    {3, 1, {2, 3, 4}, {4}},
    {1, 3, {4}, {2, 4, 3}},
    {2, 1, {300, 200}, {200}},
    {1, 2, {200}, {200, 300}},
    {3, 3, {0, 5, 6}, {0, 6, 7}},
};

static void products_agree_with_naive_ones(void **state) {
    (void)state;
    static const mr_dtype dtypes[] = {MR_F32, MR_F64, MR_I32, MR_I64, MR_U8, MR_F16, MR_BF16};
    enum { DTYPES = sizeof dtypes / sizeof *dtypes };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (size_t d = 0; d < DTYPES; d++) {
            for (int ha = 0; ha < LAYOUTS; ha++) {
                int hb = (int)random_below(LAYOUTS);
                mr_tensor *a = make_laid_out(MR_MEMORY_PAGEABLE, dtypes[d], cases[c].na, cases[c].a,
                                             (layout)ha);
                mr_tensor *b = make_laid_out(MR_MEMORY_PAGEABLE, dtypes[d], cases[c].nb, cases[c].b,
                                             (layout)hb);
                fill_small(a);
                fill_small(b);
                check_product(a, b);
                drop(a), drop(b);
            }
        }
    }
}

/* Without CBLAS (integers never use it) an element's value does not depend on the rows around it. */
static void own_loop_is_the_same_in_slices(void **state) {
    (void)state;
    mr_tensor *a = make(MR_F32, SHAPE(9, 15)), *b = make(MR_F32, SHAPE(15, 19));
    fill_small(a);
    fill_small(b);
    mr_call call = {.in = {{.tensor = a}, {.tensor = b}}, .in_count = 2};
    mr_tensor *host = run_call("mm", &call);
    for (int i = 0; i < 20; i++) {
        mr_tensor *da = copy_in(a, MR_MEMORY_DEVICE), *db = copy_in(b, MR_MEMORY_DEVICE);
        mr_call again = {.in = {{.tensor = da}, {.tensor = db}}, .in_count = 2};
        mr_tensor *device = run_call("mm", &again);
        assert_true(same_bits(host, device));
        drop(device), drop(da), drop(db);
    }
    drop(host), drop(a), drop(b);
}

static void wrong_products_say_why(void **state) {
    (void)state;
    mr_tensor *a = make(MR_F32, SHAPE(3, 2)), *v = make(MR_F32, SHAPE(2)),
              *i = make(MR_I32, SHAPE(2, 2)), *s = make(MR_F32, 0, NULL),
              *bits = make(MR_BOOL, SHAPE(2, 2)), *x = make(MR_F32, SHAPE(2, 3, 4)),
              *y = make(MR_F32, SHAPE(5, 4, 3));
    mr_call call = {.in = {{.tensor = a}, {.tensor = a}}, .in_count = 2};
    expect_error(try_call("matmul", &call), MR_CODE_INVALID_ARGUMENT,
                 "matmul: shapes 3x2 and 3x2 do not match: 2 columns against 3 rows");
    call.in[1].tensor = v;
    expect_error(try_call("mm", &call), MR_CODE_INVALID_ARGUMENT,
                 "mm: expected a matrix and a matrix, got 3x2 and 2");
    call.in[1].tensor = i;
    expect_error(try_call("matmul", &call), MR_CODE_INVALID_ARGUMENT, "to(\"f32\")");
    call.in[1].tensor = s;
    expect_error(try_call("matmul", &call), MR_CODE_INVALID_ARGUMENT, "no dimensions");
    call.in[0].tensor = call.in[1].tensor = bits;
    expect_error(try_call("matmul", &call), MR_CODE_INVALID_ARGUMENT,
                 "bool tensors cannot be multiplied");
    call.in[0].tensor = x, call.in[1].tensor = y;
    expect_error(try_call("matmul", &call), MR_CODE_INVALID_ARGUMENT, "cannot broadcast");
    expect_error(try_call("bmm", &call), MR_CODE_INVALID_ARGUMENT, "2 matrices against 5");
    call = (mr_call){.in = {{.tensor = a}, {.scalar = {0}}}, .in_count = 2};
    expect_error(try_call("matmul", &call), MR_CODE_INVALID_ARGUMENT, "two tensors");
    drop(a), drop(v), drop(i), drop(s), drop(bits), drop(x), drop(y);
}

static void out_may_lie_anyhow(void **state) {
    (void)state;
    mr_tensor *a = make_device(MR_F32, SHAPE(6, 5)), *b = make_device(MR_F32, SHAPE(5, 8));
    fill_small(a);
    fill_small(b);
    mr_call call = {.in = {{.tensor = a}, {.tensor = b}}, .in_count = 2};
    mr_tensor *plain = run_call("mm", &call);
    mr_tensor *out = make_laid_out(MR_MEMORY_DEVICE, MR_F64, SHAPE(6, 8), TRANSPOSED);
    call.out = out;
    run_call("mm", &call);
    for (int64_t i = 0; i < 48; i++) assert_true(f64_at(out, i) == f64_at(plain, i));
    drop(out), drop(plain);
    mr_tensor *square = make_device(MR_F32, SHAPE(5, 5));
    call = (mr_call){.in = {{.tensor = square}, {.tensor = square}}, .in_count = 2, .out = square};
    expect_error(try_call("mm", &call), MR_CODE_INVALID_ARGUMENT, "share memory");
    drop(square), drop(a), drop(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_agree_with_naive_ones),
        cmocka_unit_test(own_loop_is_the_same_in_slices),
        cmocka_unit_test(wrong_products_say_why),
        cmocka_unit_test(out_may_lie_anyhow),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
