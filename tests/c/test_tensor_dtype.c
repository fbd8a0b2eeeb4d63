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
    assert_true(mr_dtype_find("half", &d) && d == MR_F16);
    assert_true(mr_dtype_find("bfloat16", &d) && d == MR_BF16);
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
    assert_int_equal(mr_dtype_promote(MR_F16, MR_BF16), MR_F32);
    assert_int_equal(mr_dtype_promote(MR_I64, MR_F16), MR_F16);
}

/* PyTorch's rule, after its documentation ("type promotion"). A tensor without dimensions counts only if its category
 * is higher than that of all tensors with dimensions; the same holds for plain numbers. */
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
        assert_int_equal(stored(MR_U8, real(out_of_range[i])).i, 0);
        assert_int_equal(stored(MR_I32, real(-out_of_range[i])).i, INT32_MIN);
        assert_int_equal(stored(MR_I64, real(-out_of_range[i])).i, INT64_MIN);
        assert_int_equal(stored(MR_U8, real(-out_of_range[i])).i, 0);
    }
    assert_int_equal(stored(MR_U8, real(300.7)).i, 44);
    assert_int_equal(stored(MR_U8, real(-1.5)).i, 255);
    assert_int_equal(stored(MR_U8, real(NAN)).i, 0);
    assert_int_equal(stored(MR_I32, real(NAN)).i, 0);
    assert_int_equal(stored(MR_BOOL, real(NAN)).i, 1);
    assert_int_equal(stored(MR_BOOL, real(-0.0)).i, 0);
    assert_int_equal(stored(MR_I32, real(-1.9)).i, -1);
    assert_int_equal(stored(MR_U8, whole(-1)).i, 255);
    assert_int_equal(stored(MR_I32, whole(INT64_MIN + 5)).i, 5);
    assert_true(isinf(stored(MR_F32, real(1e300)).f));
}

/* ------------------------------------------------------------------------- halves */

static const mr_dtype halves[] = {MR_F16, MR_BF16};
enum { PATTERNS = 1 << 16 };

/* What a pattern means, by the definition of the formats. */
static double meaning_of(mr_dtype dtype, uint16_t bits) {
    int digits = dtype == MR_F16 ? 10 : 7, bias = dtype == MR_F16 ? 15 : 127;
    int exponent = (bits & 0x7fff) >> digits, fraction = bits & ((1 << digits) - 1);
    double size = exponent == 2 * bias + 1 ? (fraction ? (double)NAN : (double)INFINITY)
                  : exponent == 0          ? ldexp(fraction, 1 - bias - digits)
                                  : ldexp((1 << digits) + fraction, exponent - bias - digits);
    return bits & 0x8000 ? -size : size;
}

/* One element, and blocks of any length and alignment, between this pattern and an f32. */
static void every_pattern_is_the_number_that_it_means(void **state) {
    (void)state;
    for (int h = 0; h < 2; h++) {
        mr_tensor *half = make(halves[h], SHAPE(PATTERNS)), *single = make(MR_F32, SHAPE(PATTERNS)),
                  *back = make(halves[h], SHAPE(PATTERNS)), *wide = make(MR_F64, SHAPE(PATTERNS));
        uint16_t *bits = mr_tensor_data(half);
        for (int i = 0; i < PATTERNS; i++) bits[i] = (uint16_t)i;
        expect_ok(mr_copy(&caller, single, half, NULL, false));
        expect_ok(mr_copy(&caller, wide, half, NULL, false));
        expect_ok(mr_copy(&caller, back, single, NULL, false));
        for (int i = 0; i < PATTERNS; i++) {
            double want = meaning_of(halves[h], bits[i]);
            uint16_t stored_again, returned = ((uint16_t *)mr_tensor_data(back))[i];
            mr_dtype_store(halves[h], &stored_again, mr_dtype_load(halves[h], &bits[i]));
            if (isnan(want)) {
                assert_true(isnan(get(single, i).f) && isnan(get(wide, i).f));
                /* Its sign and payload stay; it becomes quiet. */
                assert_int_equal(returned, i | (halves[h] == MR_F16 ? 0x200 : 0x40));
            } else {
                assert_true(get(half, i).f == want && signbit(get(half, i).f) == signbit(want));
                assert_true(get(single, i).f == want && get(wide, i).f == want);
                assert_int_equal(returned, i);
            }
            assert_int_equal(stored_again, returned);
        }
        drop(half), drop(single), drop(back), drop(wide);
    }
}

/* Copies x to a block of halves at every place of a vector, and to single elements: all must be `want`. */
static void expect_half(mr_dtype dtype, mr_tensor *from, mr_tensor *to, double want) {
    expect_ok(mr_copy(&caller, to, from, NULL, false));
    for (int64_t i = 0; i < to->numel; i++) {
        mr_scalar x = get(from, i), one = stored(dtype, x), got = get(to, i);
        if (got.f != want || one.f != want || signbit(got.f) != signbit(want))
            fail_msg("%s %.17g becomes %.17g in a block and %.17g alone, not %.17g in %s",
                     mr_dtype_text((mr_dtype)from->dtype), x.f, got.f, one.f, want,
                     mr_dtype_text(dtype));
    }
}

static void fill_all(mr_tensor *t, double x) {
    for (int64_t i = 0; i < t->numel; i++) set(t, i, real(x));
}

/* Between each number and the next one: the middle goes to the even one, what is beside it to the nearer one. Beside it
 * in f64 may be so near that f32 does not know it from the middle. */
static void what_lies_between_two_halves_goes_to_the_nearest(void **state) {
    (void)state;
    for (int h = 0; h < 2; h++) {
        mr_dtype dtype = halves[h];
        uint16_t infinity = dtype == MR_F16 ? 0x7c00 : 0x7f80;
        mr_tensor *single = make(MR_F32, SHAPE(11)), *wide = make(MR_F64, SHAPE(11)),
                  *to = make(dtype, SHAPE(11));
        for (int sign = 1; sign >= -1; sign -= 2) {
            for (uint16_t i = 0; i < infinity; i++) {
                double low = meaning_of(dtype, i), beyond = ldexp(1, dtype == MR_F16 ? 16 : 128);
                double high = i + 1 == infinity ? beyond : meaning_of(dtype, (uint16_t)(i + 1));
                double middle = (low + high) / 2,
                       upper = i + 1 == infinity ? (double)INFINITY : high;
                double even = i % 2 ? upper : low;
                fill_all(wide, sign * middle);
                expect_half(dtype, wide, to, sign * even);
                fill_all(wide, sign * nextafter(middle, 0));
                expect_half(dtype, wide, to, sign * low);
                fill_all(wide, sign * nextafter(middle, INFINITY));
                expect_half(dtype, wide, to, sign * upper);
                fill_all(single, sign * middle);
                expect_half(dtype, single, to, sign * even);
                fill_all(single, sign * (double)nextafterf((float)middle, 0));
                expect_half(dtype, single, to, sign * low);
                fill_all(single, sign * (double)nextafterf((float)middle, INFINITY));
                expect_half(dtype, single, to, sign * upper);
            }
        }
        drop(single), drop(wide), drop(to);
    }
}

/* Any bits of an f32, and any integers: blocks and single elements against the definition. */
static void random_numbers_are_rounded_to_halves(void **state) {
    (void)state;
    enum { COUNT = 1 << 18 };
    for (int h = 0; h < 2; h++) {
        mr_tensor *single = make(MR_F32, SHAPE(COUNT)), *whole_numbers = make(MR_I64, SHAPE(COUNT)),
                  *to = make(halves[h], SHAPE(COUNT));
        uint32_t *bits = mr_tensor_data(single);
        int64_t *integer = mr_tensor_data(whole_numbers);
        for (int i = 0; i < COUNT; i++) {
            bits[i] = (uint32_t)random_below(1 << 16) << 16 | (uint32_t)random_below(1 << 16);
            integer[i] = (int64_t)((uint64_t)random_below(1 << 30) << 34 |
                                   (uint64_t)random_below(1 << 30) << 8) >>
                         random_below(60);
            if (i % 4 == 0) /* a middle of two, and beside it */
                integer[i] = ((int64_t)(random_below(128) + 128) * 2 + 1) << random_below(50);
            if (i % 12 == 0) integer[i] += random_below(3) - 1;
        }
        expect_ok(mr_copy(&caller, to, single, NULL, false));
        for (int64_t i = 0; i < COUNT; i++) {
            mr_scalar x = get(single, i);
            uint16_t alone, got = ((uint16_t *)mr_tensor_data(to))[i];
            mr_dtype_store(halves[h], &alone, x);
            assert_int_equal(got, alone); /* also of a NaN */
            double want = naive_rounded(halves[h], x.f);
            assert_true(isnan(want) ? isnan(get(to, i).f) : get(to, i).f == want);
        }
        expect_ok(mr_copy(&caller, to, whole_numbers, NULL, false));
        for (int64_t i = 0; i < COUNT; i++) {
            /* 128-bit integers hold what f64 would round. */
            int64_t n = integer[i];
            double got = get(to, i).f, alone = stored(halves[h], whole(n)).f;
            int digits = halves[h] == MR_F16 ? 11 : 8, shift = 0;
            unsigned __int128 size = n < 0 ? -(__int128)n : n;
            while (size >> shift >> digits) shift++;
            unsigned __int128 kept = size >> shift, rest = size - (kept << shift),
                              middle = shift ? (unsigned __int128)1 << (shift - 1) : 1;
            if (shift && (rest > middle || (rest == middle && kept % 2))) kept++;
            double want = copysign(ldexp((double)kept, shift), n < 0 ? -1 : 1);
            if (halves[h] == MR_F16 && fabs(want) > 65504) want = copysign(INFINITY, want);
            if (got != want || alone != want)
                fail_msg("%lld becomes %.17g in a block and %.17g alone, not %.17g", (long long)n,
                         got, alone, want);
        }
        drop(single), drop(whole_numbers), drop(to);
    }
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
                    if (from == MR_I64 && random_below(2) == 0)
                        v = whole((int64_t)((uint64_t)random_below(1 << 30) << 34 |
                                            (uint64_t)random_below(1 << 30) << 4) >>
                                  random_below(60));
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
        cmocka_unit_test(every_pattern_is_the_number_that_it_means),
        cmocka_unit_test(what_lies_between_two_halves_goes_to_the_nearest),
        cmocka_unit_test(random_numbers_are_rounded_to_halves),
        cmocka_unit_test(blocks_convert_as_elements_do),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
