/* Overlap of views against a map of the bytes that each touches. */
#include "fake_backend.h"

enum { BYTES = 4096 };

static void mark(const mr_tensor *t, uint8_t *map) {
    size_t size = mr_dtype_size(t->dtype);
    for (int64_t i = 0; i < t->numel; i++) {
        size_t at = (size_t)((char *)element(t, i) - (char *)t->storage->host);
        for (size_t b = 0; b < size; b++) map[at + b]++;
    }
}

/* A random view with strides that slicing, stepping and transposing can give; or expanded. */
static mr_tensor *random_view(mr_tensor *base) {
    for (;;) {
        int ndim = (int)random_below(4);
        mr_dtype dtype = (mr_dtype)random_below(MR_DTYPE_COUNT);
        int64_t limit = BYTES / (int64_t)mr_dtype_size(dtype), step = 1 + random_below(3), shape[4],
                stride[4], span = 1;
        for (int d = 0; d < ndim; d++) {
            shape[d] = 1 + random_below(6);
            stride[d] = random_below(12) == 0 ? 0 : step;
            step *= shape[d] + random_below(3);
            span += (shape[d] - 1) * stride[d];
        }
        if (ndim > 1 && random_below(2)) {
            int64_t size = shape[0], s = stride[0];
            shape[0] = shape[ndim - 1], stride[0] = stride[ndim - 1];
            shape[ndim - 1] = size, stride[ndim - 1] = s;
        }
        if (span > limit) continue;
        int64_t room =
            limit - span < 40 ? limit - span : 40; /* near each other, so that many overlap */
        mr_tensor *view;
        expect_ok(mr_tensor_view(&caller, base, dtype, ndim, shape, stride, random_below(room + 1),
                                 &view));
        return view;
    }
}

static void random_views(void **state) {
    (void)state;
    mr_tensor *base = make(MR_U8, SHAPE(BYTES));
    int overlapping = 0, apart = 0, own = 0;
    for (int round = 0; round < 30000; round++) {
        mr_tensor *a = random_view(base), *b = random_view(base);
        uint8_t map_a[BYTES] = {0}, map_b[BYTES] = {0};
        mark(a, map_a);
        mark(b, map_b);
        bool shared = false, self = false;
        uint64_t first = BYTES, end = 0, extent_first, extent_end;
        for (int i = 0; i < BYTES; i++) {
            shared |= map_a[i] && map_b[i];
            self |= map_a[i] > 1;
            if (map_a[i] && first == BYTES) first = (uint64_t)i;
            if (map_a[i]) end = (uint64_t)i + 1;
        }
        assert_int_equal(mr_tensor_may_overlap(a, b), shared);
        assert_int_equal(mr_tensor_may_overlap(b, a), shared);
        assert_int_equal(mr_tensor_self_overlaps(a), self);
        mr_tensor_extent(a, &extent_first, &extent_end);
        assert_int_equal(extent_first, first);
        assert_int_equal(extent_end, end);
        if (shared) overlapping++;
        else if (!self) apart++;
        own += self;
        drop(a), drop(b);
    }
    assert_true(overlapping > 1000 && apart > 1000 && own > 1000);
    drop(base);
}

static void columns_of_a_matrix_are_apart(void **state) {
    (void)state;
    mr_tensor *t = make(MR_F32, SHAPE(1000, 8)), *a, *b, *empty;
    expect_ok(mr_tensor_select(&caller, t, 1, 3, &a));
    expect_ok(mr_tensor_select(&caller, t, 1, 4, &b));
    expect_ok(mr_tensor_narrow(&caller, t, 0, 0, 0, 1, &empty));
    assert_false(mr_tensor_may_overlap(a, b));
    assert_true(mr_tensor_may_overlap(a, t));
    assert_false(mr_tensor_may_overlap(empty, t));
    mr_tensor *other = make(MR_F32, SHAPE(1000, 8));
    assert_false(mr_tensor_may_overlap(t, other));
    drop(a), drop(b), drop(t), drop(other), drop(empty);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_views),
                                       cmocka_unit_test(columns_of_a_matrix_are_apart)};
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
