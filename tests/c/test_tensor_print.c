/* Printing against the texts that PyTorch gives for the same values. */
#include "fake_backend.h"

static void expect_print(mr_tensor *t, const char *expected) {
    mr_buffer out = {0};
    mr_tensor_print(t, t, MR_TENSOR_WIDTH, &out);
    if (strcmp(out.data, expected) != 0)
        fail_msg("printed:\n%s\nexpected:\n%s", out.data, expected);
    mr_buffer_free(&out);
    drop(t);
}

static mr_tensor *of(mr_dtype dtype, int ndim, const int64_t *shape, const double *values) {
    mr_tensor *t = make(dtype, ndim, shape);
    for (int64_t i = 0; i < t->numel; i++) set(t, i, real(values[i]));
    return t;
}
#define REALS(...) ((double[]){__VA_ARGS__})

static void small_tensors(void **state) {
    (void)state;
    expect_print(of(MR_F32, SHAPE(2, 2), REALS(1, 2, 3, 4.5)),
                 "[[1.0000, 2.0000],\n [3.0000, 4.5000]]\nf32[2,2] on cpu");
    expect_print(of(MR_F32, SHAPE(3), REALS(1, -20, 3)), "[  1., -20.,   3.]\nf32[3] on cpu");
    expect_print(of(MR_I64, SHAPE(3), REALS(1, -20, 300)), "[  1, -20, 300]\ni64[3] on cpu");
    expect_print(of(MR_BOOL, SHAPE(2), REALS(1, 0)), "[ true, false]\nbool[2] on cpu");
    expect_print(of(MR_F64, 0, NULL, REALS(2.5)), "2.5000\nf64[] on cpu");
    expect_print(of(MR_F32, SHAPE(0, 3), REALS(0)), "[]\nf32[0,3] on cpu");
    expect_print(of(MR_F32, SHAPE(3), REALS(NAN, INFINITY, -INFINITY)),
                 "[nan, inf, -inf]\nf32[3] on cpu");
    expect_print(of(MR_F32, SHAPE(2), REALS(NAN, 0.5)), "[   nan, 0.5000]\nf32[2] on cpu");
    expect_print(of(MR_F32, SHAPE(2), REALS(0.00001, 1)),
                 "[1.0000e-05, 1.0000e+00]\nf32[2] on cpu");
    expect_print(of(MR_F64, SHAPE(2), REALS(1e10, 2e10)),
                 "[1.0000e+10, 2.0000e+10]\nf64[2] on cpu");
    expect_print(of(MR_I32, SHAPE(2, 1, 2), REALS(1, 2, 3, 4)),
                 "[[[1, 2]],\n\n [[3, 4]]]\ni32[2,1,2] on cpu");
}

static void long_rows_are_broken(void **state) {
    (void)state;
    mr_tensor *t = make(MR_I32, SHAPE(40));
    for (int64_t i = 0; i < 40; i++) set(t, i, whole(i));
    expect_print(
        t, "[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,\n"
           " 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, "
           "39]\ni32[40] on cpu");
}

static void large_tensors_show_their_ends(void **state) {
    (void)state;
    mr_tensor *t = make(MR_I32, SHAPE(2000));
    for (int64_t i = 0; i < 2000; i++) set(t, i, whole(i));
    expect_print(t, "[   0,    1,    2,  ..., 1997, 1998, 1999]\ni32[2000] on cpu");
    t = make(MR_I32, SHAPE(100, 20));
    for (int64_t i = 0; i < 2000; i++) set(t, i, whole(i));
    expect_print(t, "[[   0,    1,    2,  ...,   17,   18,   19],\n"
                    " [  20,   21,   22,  ...,   37,   38,   39],\n"
                    " [  40,   41,   42,  ...,   57,   58,   59],\n"
                    " ...,\n"
                    " [1940, 1941, 1942,  ..., 1957, 1958, 1959],\n"
                    " [1960, 1961, 1962,  ..., 1977, 1978, 1979],\n"
                    " [1980, 1981, 1982,  ..., 1997, 1998, 1999]]\ni32[100,20] on cpu");
}

static void strides_and_places(void **state) {
    (void)state;
    mr_tensor *t = of(MR_I32, SHAPE(2, 3), REALS(1, 2, 3, 4, 5, 6)), *v;
    expect_ok(mr_tensor_transpose(&caller, t, 0, 1, &v));
    drop(t);
    expect_print(v, "[[1, 4],\n [2, 5],\n [3, 6]]\ni32[3,2] on cpu");
    expect_print(make_on(MR_MEMORY_PINNED, 0, MR_F32, SHAPE(0)), "[]\nf32[0] on cpu, pinned");
    mr_tensor *device = make_on(MR_MEMORY_DEVICE, 1, MR_I32, SHAPE(1));
    set(device, 0, whole(7));
    mr_tensor *host = of(MR_I32, SHAPE(1), REALS(7));
    mr_buffer out = {0};
    mr_tensor_print(host, device, MR_TENSOR_WIDTH, &out);
    assert_string_equal(out.data, "[7]\ni32[1] on device 1");
    mr_buffer_free(&out);
    drop(device), drop(host);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_tensors),
        cmocka_unit_test(long_rows_are_broken),
        cmocka_unit_test(large_tensors_show_their_ends),
        cmocka_unit_test(strides_and_places),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
