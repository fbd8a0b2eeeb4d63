/* Views: each shows the elements that a naive index computation says, or explains in the script's terms
 * why it cannot be. */
#include "fake_backend.h"

#include <limits.h>

/* 0, 1, 2, ... in row-major order. */
static mr_tensor *counted(int ndim, const int64_t *shape) {
    mr_tensor *t = make(MR_I32, ndim, shape);
    for (int64_t i = 0; i < t->numel; i++) set(t, i, whole(i));
    return t;
}

static void expect_values(mr_tensor *t, int ndim, const int64_t *shape, const int64_t *values) {
    assert_int_equal(t->ndim, ndim);
    for (int d = 0; d < ndim; d++) assert_int_equal(t->shape[d], shape[d]);
    for (int64_t i = 0; i < t->numel; i++) assert_int_equal(get(t, i).i, values[i]);
    drop(t);
}
#define VALUES(...) ((int64_t[]){__VA_ARGS__})

static void views_show_the_right_elements(void **state) {
    (void)state;
    mr_tensor *t = counted(SHAPE(2, 3)), *v, *w;
    expect_ok(mr_tensor_transpose(&caller, t, 0, -1, &v));
    assert_false(v->contiguous);
    expect_values(v, SHAPE(3, 2), VALUES(0, 3, 1, 4, 2, 5));
    expect_ok(mr_tensor_permute(&caller, t, (int[]){1, 0}, &v));
    expect_values(v, SHAPE(3, 2), VALUES(0, 3, 1, 4, 2, 5));
    expect_ok(mr_tensor_narrow(&caller, t, 1, 1, 2, 1, &v));
    expect_values(v, SHAPE(2, 2), VALUES(1, 2, 4, 5));
    expect_ok(mr_tensor_narrow(&caller, t, 1, 0, 2, 2, &v));
    expect_values(v, SHAPE(2, 2), VALUES(0, 2, 3, 5));
    expect_ok(mr_tensor_narrow(&caller, t, 0, 2, 0, 1, &v));
    assert_int_equal(v->numel, 0);
    drop(v);
    expect_ok(mr_tensor_select(&caller, t, 0, -1, &v));
    expect_values(v, SHAPE(3), VALUES(3, 4, 5));
    expect_ok(mr_tensor_select(&caller, t, 1, 1, &v));
    expect_ok(mr_tensor_select(&caller, v, 0, 1, &w));
    drop(v);
    assert_int_equal(w->ndim, 0);
    assert_int_equal(get(w, 0).i, 4);
    drop(w);
    expect_ok(mr_tensor_unsqueeze(&caller, t, 1, &v));
    expect_ok(mr_tensor_squeeze(&caller, v, 1, &w));
    drop(v);
    expect_values(w, SHAPE(2, 3), VALUES(0, 1, 2, 3, 4, 5));
    expect_ok(mr_tensor_unsqueeze(&caller, t, -1, &v));
    expect_ok(mr_tensor_squeeze(&caller, v, INT_MIN, &w));
    drop(v);
    expect_values(w, SHAPE(2, 3), VALUES(0, 1, 2, 3, 4, 5));
    expect_ok(mr_tensor_expand(&caller, t, SHAPE(2, 2, 3), &v));
    expect_values(v, SHAPE(2, 2, 3), VALUES(0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5));
    expect_ok(mr_tensor_expand(&caller, t, SHAPE(-1, 3), &v));
    expect_values(v, SHAPE(2, 3), VALUES(0, 1, 2, 3, 4, 5));
    expect_ok(mr_tensor_flatten(&caller, t, 0, -1, &v));
    expect_values(v, SHAPE(6), VALUES(0, 1, 2, 3, 4, 5));
    drop(t);
}

/* Every reshape of every permutation either shows the same row-major sequence or is refused, and is
 * refused only if no strides could do it: then some pair of neighbours must not be equally spaced. */
static void reshapes_are_views_where_strides_can_do_it(void **state) {
    (void)state;
    static const int permutations[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const struct {
        int ndim;
        int64_t shape[4];
    } targets[] = {{1, {24}},     {2, {6, 4}},    {2, {4, 6}}, {3, {2, 3, 4}},    {4, {2, 1, 3, 4}},
                   {2, {-1, 12}}, {3, {4, 3, 2}}, {2, {8, 3}}, {4, {2, 2, 3, 2}}, {2, {2, 12}}};
    int views = 0, refusals = 0;
    for (int p = 0; p < 6; p++) {
        mr_tensor *t = counted(SHAPE(2, 3, 4)), *v, *w;
        expect_ok(mr_tensor_permute(&caller, t, permutations[p], &v));
        for (size_t k = 0; k < sizeof targets / sizeof *targets; k++) {
            mr_status status = mr_tensor_reshape(&caller, v, targets[k].ndim, targets[k].shape, &w);
            if (status) {
                assert_int_equal(status->code, MR_CODE_NOT_SUPPORTED);
                mr_error_destroy(status);
                refusals++;
                assert_false(v->contiguous);
                continue;
            }
            views++;
            for (int64_t i = 0; i < 24; i++) assert_int_equal(get(w, i).i, get(v, i).i);
            assert_ptr_equal(w->storage, t->storage);
            drop(w);
        }
        drop(v), drop(t);
    }
    /* By hand: all 10 of the identity; of the others those that only split or join neighbours. */
    assert_true(views >= 10 + 5 && refusals >= 20);
}

static void misuse_is_explained(void **state) {
    (void)state;
    mr_tensor *t = counted(SHAPE(5, 2)), *v;
    expect_error(mr_tensor_narrow(&caller, t, 0, 2, 5, 1, &v), MR_CODE_INVALID_ARGUMENT,
                 "narrow: rows 3 to 7 do not fit in dimension 1 of size 5");
    expect_error(mr_tensor_narrow(&caller, t, 0, INT64_MAX, INT64_MAX, INT64_MAX, &v),
                 MR_CODE_INVALID_ARGUMENT, "do not fit");
    expect_error(mr_tensor_narrow(&caller, t, 0, -1, 1, 1, &v), MR_CODE_INVALID_ARGUMENT,
                 "do not fit");
    expect_error(mr_tensor_narrow(&caller, t, 0, 0, -1, 1, &v), MR_CODE_INVALID_ARGUMENT,
                 "negative");
    expect_error(mr_tensor_narrow(&caller, t, 0, 0, 1, 0, &v), MR_CODE_INVALID_ARGUMENT,
                 "step must be at least 1");
    expect_error(mr_tensor_narrow(&caller, t, 7, 0, 1, 1, &v), MR_CODE_INVALID_ARGUMENT,
                 "narrow: dimension 8 of a tensor with 2 dimensions");
    expect_error(mr_tensor_select(&caller, t, 1, 2, &v), MR_CODE_INVALID_ARGUMENT,
                 "select: index 3 is outside dimension 2 of size 2");
    expect_error(mr_tensor_select(&caller, t, 1, INT64_MIN, &v), MR_CODE_INVALID_ARGUMENT,
                 "is outside");
    expect_error(mr_tensor_permute(&caller, t, (int[]){1, 1}, &v), MR_CODE_INVALID_ARGUMENT,
                 "dimension 2 is given twice");
    expect_error(mr_tensor_reshape(&caller, t, SHAPE(3, 3), &v), MR_CODE_INVALID_ARGUMENT,
                 "the tensor has 10 elements (shape 5x2), and the shape 3x3 needs 9");
    expect_error(mr_tensor_reshape(&caller, t, SHAPE(-1, -1), &v), MR_CODE_INVALID_ARGUMENT,
                 "dimensions 1 and 2");
    expect_error(mr_tensor_reshape(&caller, t, SHAPE(-1, 3), &v), MR_CODE_INVALID_ARGUMENT,
                 "3 does not divide 10");
    expect_error(mr_tensor_reshape(&caller, t, SHAPE(-1, 0), &v), MR_CODE_INVALID_ARGUMENT,
                 "cannot be computed");
    expect_error(mr_tensor_reshape(&caller, t, SHAPE(-2, 5), &v), MR_CODE_INVALID_ARGUMENT,
                 "negative size -2");
    expect_error(mr_tensor_reshape(&caller, t, SHAPE(1, 1, 1, 1, 1, 1, 1, 5, 2), &v),
                 MR_CODE_INVALID_ARGUMENT, "at most 8");
    expect_error(mr_tensor_expand(&caller, t, SHAPE(5, 3), &v), MR_CODE_INVALID_ARGUMENT,
                 "dimension 2 is 2");
    expect_error(mr_tensor_expand(&caller, t, SHAPE(2), &v), MR_CODE_INVALID_ARGUMENT,
                 "fewer dimensions");
    expect_error(mr_tensor_expand(&caller, t, SHAPE(-1, 5, 2), &v), MR_CODE_INVALID_ARGUMENT,
                 "cannot have size -1");
    expect_error(mr_tensor_flatten(&caller, t, 1, 0, &v), MR_CODE_INVALID_ARGUMENT, "comes after");
    mr_tensor *one = make(MR_F32, SHAPE(1));
    expect_error(mr_tensor_expand(&caller, one, SHAPE((int64_t)1 << 40, (int64_t)1 << 40), &v),
                 MR_CODE_OUT_OF_MEMORY, "more elements");
    expect_error(mr_tensor_view(&caller, t, MR_I32, SHAPE(11), (int64_t[]){1}, 0, &v),
                 MR_CODE_INVALID_ARGUMENT, "is not inside");
    expect_error(mr_tensor_view(&caller, t, MR_I64, SHAPE(10), (int64_t[]){1}, 0, &v),
                 MR_CODE_INVALID_ARGUMENT, "is not inside");
    expect_error(mr_tensor_view(&caller, t, MR_I32, SHAPE(2), (int64_t[]){INT64_MAX}, 0, &v),
                 MR_CODE_INVALID_ARGUMENT, "is not inside");
    expect_error(mr_tensor_view(&caller, t, MR_I32, SHAPE(2), (int64_t[]){-1}, 0, &v),
                 MR_CODE_INVALID_ARGUMENT, "is not inside");
    assert_int_equal(t->storage->handles, 1);
    drop(one), drop(t);
}

static void zero_dims_and_no_elements(void **state) {
    (void)state;
    mr_tensor *s = make(MR_F32, 0, NULL), *v,
              *e = make(MR_F32, SHAPE(0, (int64_t)1 << 40, (int64_t)1 << 40));
    assert_int_equal(s->numel, 1);
    expect_error(mr_tensor_select(&caller, s, 0, 0, &v), MR_CODE_INVALID_ARGUMENT, "no dimensions");
    expect_error(mr_tensor_narrow(&caller, s, 0, 0, 1, 1, &v), MR_CODE_INVALID_ARGUMENT,
                 "no dimensions");
    expect_ok(mr_tensor_flatten(&caller, s, 0, -1, &v));
    assert_int_equal(v->ndim, 1);
    drop(v);
    expect_ok(mr_tensor_transpose(&caller, s, 0, -1, &v));
    drop(v);
    expect_ok(mr_tensor_expand(&caller, s, SHAPE(3, 0), &v));
    assert_int_equal(v->numel, 0);
    drop(v);
    assert_int_equal(e->numel, 0);
    expect_ok(mr_tensor_flatten(&caller, e, 0, -1, &v));
    assert_int_equal(v->shape[0], 0);
    drop(v);
    expect_ok(mr_tensor_permute(&caller, e, (int[]){2, 1, 0}, &v));
    drop(v);
    expect_ok(mr_tensor_reshape(&caller, e, SHAPE(4, 0), &v));
    drop(v);
    drop(s), drop(e);
}

static void sizes_that_cannot_be(void **state) {
    (void)state;
    mr_tensor *t;
    expect_error(mr_tensor_create(&caller, MR_MEMORY_PAGEABLE, NULL, MR_F32, SHAPE(-1), &t),
                 MR_CODE_INVALID_ARGUMENT, "dimension 1 has negative size -1");
    expect_error(
        mr_tensor_create(&caller, MR_MEMORY_PAGEABLE, NULL, MR_F64, SHAPE((int64_t)1 << 49), &t),
        MR_CODE_OUT_OF_MEMORY, "more elements");
    expect_error(
        mr_tensor_create(&caller, MR_MEMORY_PAGEABLE, NULL, MR_F64, SHAPE((int64_t)1 << 48), &t),
        MR_CODE_OUT_OF_MEMORY, "out of memory");
    expect_error(
        mr_tensor_create(&caller, MR_MEMORY_PAGEABLE, NULL, MR_U8, SHAPE(INT64_MAX, 2), &t),
        MR_CODE_OUT_OF_MEMORY, "more elements");
    expect_error(mr_tensor_create(&caller, MR_MEMORY_PAGEABLE, NULL, MR_U8, SHAPE(INT64_MIN), &t),
                 MR_CODE_INVALID_ARGUMENT, "negative");
    assert_null(t);
    assert_int_equal(fake.live, 0);
}

static void handles_and_references(void **state) {
    (void)state;
    mr_tensor *t = make_device(MR_F32, SHAPE(4)), *v, *alias;
    int frees = fake.frees;
    expect_ok(mr_tensor_select(&caller, t, 0, 1, &v));
    assert_int_equal(t->storage->handles, 2);
    expect_ok(mr_tensor_alias(&caller, t, MR_F32, SHAPE(2), (int64_t[]){1}, 1, &alias));
    assert_int_equal(t->storage->handles, 2);
    drop(t);
    assert_int_equal(fake.frees, frees);
    mr_storage_drop_handle(v->storage);
    assert_int_equal(fake.frees, frees + 1); /* the alias does not keep the memory */
    expect_error(mr_tensor_usable(alias), MR_CODE_INVALID_HANDLE, "freed");
    mr_tensor_release(v);
    mr_tensor_release(alias);
}

static void descriptions(void **state) {
    (void)state;
    char text[200];
    caller.where = (mr_site){"a.lua", 3};
    mr_tensor *t = make(MR_F32, SHAPE(100, 100));
    caller.where = (mr_site){0};
    assert_string_equal(mr_tensor_signature(t, text, sizeof text), "f32[100,100]");
    mr_tensor_describe(t, text, sizeof text);
    assert_non_null(strstr(text, "f32[100,100] made at line 3"));
    assert_true(strncmp(text, "tensor #", 8) == 0);
    assert_null(mr_tensor_set_name(t, "x"));
    assert_string_equal(mr_tensor_describe(t, text, sizeof text), "`x`");
    assert_string_equal(mr_shape_text(2, t->shape, text, sizeof text), "100x100");
    assert_string_equal(mr_shape_text(0, NULL, text, sizeof text), "scalar");
    char tiny[6];
    mr_tensor_signature(t, tiny, sizeof tiny);
    assert_string_equal(tiny, "f32[1");
    drop(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_show_the_right_elements),
        cmocka_unit_test(reshapes_are_views_where_strides_can_do_it),
        cmocka_unit_test(misuse_is_explained),
        cmocka_unit_test(zero_dims_and_no_elements),
        cmocka_unit_test(sizes_that_cannot_be),
        cmocka_unit_test(handles_and_references),
        cmocka_unit_test(descriptions),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
