/* Whether tensors agree, against the definition element by element: all pairs of dtypes, layouts, tolerances, sizes
 * around a block and around what goes to several threads. The comparison goes by an order of its own, so what it says
 * of parts is asked of parts that together are everything. */
#include "fake_backend.h"

#include "ops/agree.h"

static bool scalars_agree(const mr_tolerance *t, bool floats, mr_scalar a, mr_scalar b) {
    if (t->exact) return floats ? a.f == b.f : a.i == b.i;
    if (isnan(a.f) || isnan(b.f)) return t->equal_nan && isnan(a.f) && isnan(b.f);
    if (isinf(a.f) || isinf(b.f)) return a.f == b.f;
    return a.f == b.f || fabs(a.f - b.f) <= t->absolute + t->relative * fabs(b.f);
}

static int64_t count_differences(const mr_tolerance *t, const mr_tensor *a, const mr_tensor *b) {
    bool floats = mr_dtype_category(a->dtype) == 2 || mr_dtype_category(b->dtype) == 2;
    int64_t differences = 0;
    for (int64_t i = 0; i < a->numel; i++)
        differences += !scalars_agree(t, floats, get(a, i), get(b, i));
    return differences;
}

/* Cut at a random place: both parts agree if and only if all elements do. */
static void check(const mr_tolerance *t, const mr_tensor *a, const mr_tensor *b) {
    int64_t cut = a->numel ? random_below(a->numel + 1) : 0;
    bool agree = count_differences(t, a, b) == 0;
    bool parts = mr_tensors_agree(t, a, b, 0, cut) && mr_tensors_agree(t, a, b, cut, a->numel);
    if (mr_tensors_agree(t, a, b, 0, a->numel) != agree || parts != agree)
        fail_msg("%s and %s, %lld elements: they %s", mr_dtype_text(a->dtype),
                 mr_dtype_text(b->dtype), (long long)a->numel, agree ? "agree" : "differ");
}

static mr_tolerance random_tolerance(void) {
    static const double bounds[] = {0, 1e-8, 1e-3, 0.5, INFINITY, NAN};
    return (mr_tolerance){.exact = random_below(3) == 0,
                          .relative = bounds[random_below(6)],
                          .absolute = bounds[random_below(6)],
                          .equal_nan = random_below(2)};
}

static mr_tensor *make_any(mr_dtype dtype, int ndim, const int64_t *shape) {
    return make_laid_out(MR_MEMORY_PAGEABLE, dtype, ndim, shape, (layout)random_below(LAYOUTS));
}

/* b: the values of a, as its dtype holds them; some of them changed by a little, or by much. */
static void change_some(mr_tensor *b, const mr_tensor *a, int64_t changes) {
    for (int64_t i = 0; i < a->numel; i++) set(b, i, get(a, i));
    for (; changes > 0 && a->numel > 0; changes--) {
        int64_t at = random_below(a->numel);
        mr_scalar v = get(b, at);
        if (random_below(2)) v = v.is_integer ? whole(v.i ^ 1) : real(v.f * (1 + 1e-6));
        else v = random_value(b->dtype);
        set(b, at, v);
    }
}

static void all_pairs_of_dtypes(void **state) {
    (void)state;
    int agreed = 0;
    for (int round = 0; round < 40; round++)
        for (int d = 0; d < MR_DTYPE_COUNT * MR_DTYPE_COUNT; d++) {
            int64_t shape[3] = {random_below(4), 1 + random_below(30), 1 + random_below(30)};
            int ndim = (int)random_below(4);
            mr_tensor *a = make_any((mr_dtype)(d % MR_DTYPE_COUNT), ndim, shape),
                      *b = make_any((mr_dtype)(d / MR_DTYPE_COUNT), ndim, shape);
            mr_tolerance t = random_tolerance();
            fill_random(a);
            change_some(b, a, random_below(3));
            check(&t, a, b);
            agreed += count_differences(&t, a, b) == 0;
            drop(a), drop(b);
        }
    assert_true(agreed > 200); /* the others differ: most dtypes do not hold each other's values */
}

/* One difference in many elements, anywhere, is found by whichever thread. */
static void one_difference_is_found(void **state) {
    (void)state;
    mr_tolerance exact = {.exact = true}, close = {.relative = 1e-5, .absolute = 1e-8};
    for (int round = 0; round < 30; round++) {
        int64_t shape[2] = {600 + random_below(100), 700};
        mr_dtype dtype = (mr_dtype)random_below(MR_DTYPE_COUNT);
        mr_tensor *a = make_any(dtype, 2, shape), *b = make_any(dtype, 2, shape);
        for (int64_t i = 0; i < a->numel; i++) set(a, i, whole(i % 7 != 0));
        for (int64_t i = 0; i < a->numel; i++) set(b, i, get(a, i));
        assert_true(mr_tensors_agree(&exact, a, b, 0, a->numel) &&
                    mr_tensors_agree(&close, a, b, 0, a->numel));
        int64_t at = random_below(a->numel);
        set(b, at, whole(!get(b, at).f));
        assert_false(mr_tensors_agree(&exact, a, b, 0, a->numel) ||
                     mr_tensors_agree(&close, a, b, 0, a->numel));
        drop(a), drop(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_pairs_of_dtypes),
        cmocka_unit_test(one_difference_is_found),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
