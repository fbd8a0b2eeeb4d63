/* Element types: names, promotion, and conversions at the edges, one by one and in blocks. */
#include "fake_backend.h"

static mr_scalar stored(mr_dtype dtype, mr_scalar value) {
    uint64_t bytes = 0;
    mr_dtype_store(dtype, &bytes, value);
    return mr_dtype_load(dtype, &bytes);
}

static void names(void **state) {
    (void)state;
    mr_dtype d;
    assert_true(mr_dtype_find("f32", &d) && d == MR_F32);
    assert_true(mr_dtype_find("int64", &d) && d == MR_I64);
    assert_true(mr_dtype_find("bool", &d) && d == MR_BOOL);
    assert_false(mr_dtype_find("f8", &d));
    assert_false(mr_dtype_find("", &d));
    assert_string_equal(mr_dtype_text(MR_U8), "u8");
    assert_int_equal(mr_dtype_size(MR_I64), 8);
}

static void promotion(void **state) {
    (void)state;
    assert_int_equal(mr_dtype_promote(MR_U8, MR_I32), MR_I32);
    assert_int_equal(mr_dtype_promote(MR_I64, MR_F32), MR_F32);
    assert_int_equal(mr_dtype_promote(MR_F32, MR_F64), MR_F64);
    assert_int_equal(mr_dtype_promote(MR_BOOL, MR_U8), MR_U8);
}

/* PyTorch's rule as its documentation words it ("type promotion"): a category higher than that of all tensors with
 * dimensions is needed for what has none to count, and likewise for plain numbers. */
static void inputs_without_dimensions_count_less(void **state) {
    (void)state;
#define A MR_RANK_DIMS
#define Z MR_RANK_NO_DIMS
#define N MR_RANK_NUMBER
    static const struct {
        struct {
            mr_rank rank;
            mr_dtype dtype;
        } in[3];
        int count;
        mr_dtype result;
    } cases[] = {
        {{{A, MR_F32}, {Z, MR_F64}}, 2, MR_F32},
        {{{Z, MR_F64}, {A, MR_F32}}, 2, MR_F32},
        {{{A, MR_U8}, {Z, MR_I32}}, 2, MR_U8},
        {{{A, MR_I32}, {Z, MR_F64}}, 2, MR_F64},
        {{{A, MR_BOOL}, {Z, MR_U8}}, 2, MR_U8},
        {{{Z, MR_F32}, {Z, MR_F64}}, 2, MR_F64},
        {{{Z, MR_U8}, {Z, MR_I32}}, 2, MR_I32},
        {{{A, MR_U8}, {N, MR_I64}}, 2, MR_U8},
        {{{Z, MR_U8}, {N, MR_I64}}, 2, MR_U8},
        {{{A, MR_BOOL}, {N, MR_BOOL}}, 2, MR_BOOL},
        {{{A, MR_BOOL}, {N, MR_I64}}, 2, MR_I64},
        {{{A, MR_I64}, {N, MR_F32}}, 2, MR_F32},
        {{{A, MR_F64}, {N, MR_F32}}, 2, MR_F64},
        {{{A, MR_U8}, {Z, MR_F64}, {A, MR_I32}}, 3, MR_F64},
        {{{A, MR_BOOL}, {Z, MR_I32}, {N, MR_I64}}, 3, MR_I32},
        {{{A, MR_BOOL}, {Z, MR_U8}, {N, MR_F32}}, 3, MR_F32},
        {{{N, MR_BOOL}, {N, MR_F32}}, 2, MR_F32},
    };
#undef A
#undef Z
#undef N
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_promotion promotion = {0};
        for (int k = 0; k < cases[i].count; k++)
            mr_promotion_add(&promotion, cases[i].in[k].rank, cases[i].in[k].dtype);
        assert_int_equal(mr_promotion_result(&promotion), cases[i].result);
    }
    assert_int_equal(mr_dtype_of_number((mr_scalar){true, true, 1, 1}), MR_BOOL);
    assert_int_equal(mr_dtype_of_number(whole(1)), MR_I64);
    assert_int_equal(mr_dtype_of_number(real(1)), MR_F32);
}

static void numbers_beyond_the_range(void **state) {
    (void)state;
    static const double out_of_range[] = {INFINITY, 1e300, 0x1p63, 1e19};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(stored(MR_I32, real(out_of_range[i])).i, INT32_MAX);
        assert_int_equal(stored(MR_I64, real(out_of_range[i])).i, INT64_MAX);
        assert_int_equal(stored(MR_U8, real(out_of_range[i])).i, 255);
        assert_int_equal(stored(MR_I32, real(-out_of_range[i])).i, INT32_MIN);
        assert_int_equal(stored(MR_I64, real(-out_of_range[i])).i, INT64_MIN);
        assert_int_equal(stored(MR_U8, real(-out_of_range[i])).i, 0);
    }
    assert_int_equal(stored(MR_I32, real(NAN)).i, 0);
    assert_int_equal(stored(MR_BOOL, real(NAN)).i, 1);
    assert_int_equal(stored(MR_BOOL, real(-0.0)).i, 0);
    assert_int_equal(stored(MR_I32, real(-1.9)).i, -1);
    assert_int_equal(stored(MR_U8, whole(-1)).i, 255);
    assert_int_equal(stored(MR_I32, whole(INT64_MIN + 5)).i, 5);
    assert_true(isinf(stored(MR_F32, real(1e300)).f));
}

/* The block conversions of the copy operation are those of single elements. */
static void blocks_convert_as_elements_do(void **state) {
    (void)state;
    for (int from = 0; from < MR_DTYPE_COUNT; from++) {
        for (int to = 0; to < MR_DTYPE_COUNT; to++) {
            for (int how = DENSE; how < LAYOUTS; how++) {
                mr_tensor *a = make_laid_out(MR_MEMORY_PAGEABLE, (mr_dtype)from, SHAPE(9, 77),
                                             (layout)how),
                          *b = make((mr_dtype)to, SHAPE(9, 77));
                for (int64_t i = 0; i < a->numel; i++) {
                    mr_scalar v = random_value((mr_dtype)from);
                    if (mr_dtype_category((mr_dtype)from) == 2 && random_below(3) == 0)
                        v = real(ldexp((double)random_below(5) - 2, (int)random_below(70)) +
                                 (double)random_below(3) - 1);
                    set(a, i, v);
                }
                expect_ok(mr_copy(&caller, b, a, NULL, false));
                for (int64_t i = 0; i < a->numel; i++) {
                    mr_scalar want = stored((mr_dtype)to, get(a, i)), got = get(b, i);
                    if (isnan(want.f) ? !isnan(got.f) : want.f != got.f || want.i != got.i)
                        fail_msg("%s %.17g becomes %s %.17g, not %.17g",
                                 mr_dtype_text((mr_dtype)from), get(a, i).f,
                                 mr_dtype_text((mr_dtype)to), got.f, want.f);
                }
                drop(a), drop(b);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(promotion),
        cmocka_unit_test(inputs_without_dimensions_count_less),
        cmocka_unit_test(numbers_beyond_the_range),
        cmocka_unit_test(blocks_convert_as_elements_do),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
