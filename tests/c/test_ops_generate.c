/* Fills and random numbers: values by position, the same for every layout and slicing, and random ones
 * with the moments that they should have. */
#include "base/philox.h"
#include "fake_backend.h"

typedef struct {
    mr_scalar first, second;
} numbers;

static mr_call call_with(mr_tensor *t, numbers n) {
    return (mr_call){.out = t, .in_place = true, .in = {{.scalar = n.first}, {.scalar = n.second}}};
}

static mr_tensor *generate(const char *op, mr_tensor *t, numbers n) {
    mr_call call = call_with(t, n);
    return run_call(op, &call);
}

static void sequences(void **state) {
    (void)state;
    for (int how = DENSE; how < EXPANDED; how++) {
        for (int d = 1; d < MR_DTYPE_COUNT; d++) {
            mr_tensor *t = make_laid_out(MR_MEMORY_DEVICE, (mr_dtype)d, SHAPE(700), (layout)how);
            generate("arange", t, (numbers){whole(3), whole(2)});
            for (int64_t i = 0; i < 700; i++) {
                mr_scalar v = get(t, i);
                int64_t want = 3 + 2 * i;
                if (d == MR_U8) want &= 255;
                assert_true(v.f == naive_rounded((mr_dtype)d, (double)want));
            }
            drop(t);
        }
    }
    mr_tensor *t = make(MR_F64, SHAPE(11));
    generate("linspace", t, (numbers){real(-1), real(1)});
    for (int64_t i = 0; i < 11; i++) {
        assert_true(fabs(f64_at(t, i) - (-1 + 0.2 * (double)i)) < 1e-15);
        assert_true(f64_at(t, i) == -f64_at(t, 10 - i));
    }
    assert_true(f64_at(t, 0) == -1 && f64_at(t, 10) == 1);
    drop(t);
    t = make(MR_F32, SHAPE(1));
    generate("linspace", t, (numbers){real(5), real(9)});
    assert_true(f64_at(t, 0) == 5);
    drop(t);
}

static void constants(void **state) {
    (void)state;
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        for (int how = DENSE; how < EXPANDED; how++) {
            mr_tensor *t = make_laid_out(MR_MEMORY_DEVICE, (mr_dtype)d, SHAPE(13, 57), (layout)how);
            generate("fill", t, (numbers){.first = real(2.75)});
            for (int64_t i = 0; i < t->numel; i++)
                assert_true(get(t, i).f == (d == MR_BOOL                          ? 1
                                            : mr_dtype_category((mr_dtype)d) == 1 ? 2
                                                                                  : 2.75));
            generate("zero", t, (numbers){{0}, {0}});
            for (int64_t i = 0; i < t->numel; i++) assert_true(get(t, i).f == 0);
            drop(t);
        }
    }
    static const int64_t sizes[][2] = {{5, 5}, {3, 7}, {7, 3}, {1, 1}, {1, 4}, {0, 3}, {40, 41}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        mr_tensor *t = make_device(MR_I32, 2, sizes[k]);
        generate("eye", t, (numbers){{0}, {0}});
        for (int64_t i = 0; i < t->numel; i++)
            assert_int_equal(get(t, i).i, i / sizes[k][1] == i % sizes[k][1]);
        drop(t);
    }
    mr_tensor *wide = make_laid_out(MR_MEMORY_PAGEABLE, MR_F32, SHAPE(4, 5), EXPANDED);
    mr_call call = {.out = wide, .in_place = true};
    expect_error(try_call("fill", &call), MR_CODE_INVALID_ARGUMENT, "share one memory location");
    drop(wide);
}

static void expect_moments(const mr_tensor *t, double mean, double variance) {
    double sum = 0, squares = 0, n = (double)t->numel;
    for (int64_t i = 0; i < t->numel; i++) sum += get(t, i).f;
    for (int64_t i = 0; i < t->numel; i++) squares += (get(t, i).f - mean) * (get(t, i).f - mean);
    /* Five standard errors; the seed is fixed, so this either holds always or never. */
    if (fabs(sum / n - mean) > 5 * sqrt(variance / n)) fail_msg("mean %g, not %g", sum / n, mean);
    if (fabs(squares / n - variance) > 15 * variance / sqrt(n))
        fail_msg("variance %g, not %g", squares / n, variance);
}

/* The greatest number of the type that is less: all are asked. */
static double number_below(mr_dtype dtype, double x) {
    double best = -INFINITY;
    for (uint32_t i = 0; i < 1 << 16; i++) {
        uint16_t bits = (uint16_t)i;
        double v = mr_dtype_load(dtype, &bits).f;
        if (v < x && v > best) best = v;
    }
    return best;
}

/* How often each pattern of a half occurs. */
static int *count_patterns(const mr_tensor *t) {
    int *count = calloc(1 << 16, sizeof *count);
    for (int64_t i = 0; i < t->numel; i++) count[((const uint16_t *)mr_tensor_data(t))[i]]++;
    return count;
}

/* The numbers are those of f32, rounded; but what is rounded up to the bound becomes the number below it. So each
 * occurs in proportion to what is rounded to it. */
static void halves_are_rounded_random_numbers(void **state) {
    (void)state;
    static const struct {
        mr_dtype dtype;
        double low, high;
    } cases[] = {{MR_F16, 0, 1},  {MR_F16, -1, 0},   {MR_F16, 3, 3.5},
                 {MR_BF16, 0, 1}, {MR_BF16, -2, -1}, {MR_BF16, 100, 260}};
    enum { COUNT = 400000 };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        mr_dtype dtype = cases[c].dtype;
        double low = cases[c].low, high = cases[c].high, below = number_below(dtype, high);
        mr_tensor *t = make_laid_out(MR_MEMORY_PAGEABLE, dtype, SHAPE(COUNT), DENSE),
                  *single = make(MR_F32, SHAPE(COUNT));
        numbers params = {real(low), real(high)};
        uint64_t draws = machine->random.draws;
        generate("uniform", t, params);
        machine->random.draws = draws; /* the same numbers again */
        generate("uniform", single, params);
        for (int64_t i = 0; i < COUNT; i++) {
            double rounded = naive_rounded(dtype, get(single, i).f), got = get(t, i).f;
            assert_true(got == (rounded < high ? rounded : below));
            assert_true(got >= low && got < high);
        }
        /* Rounding moves the mean by less than what the sample does. */
        expect_moments(t, (low + high) / 2, (high - low) * (high - low) / 12);
        int *count = count_patterns(t), most = 0;
        for (int i = 0; i < 1 << 16; i++) most = count[i] > most ? count[i] : most;
        double unit = ldexp(1, dtype == MR_F16 ? -11 : -8);
        double share = fmax(fabs(low), fabs(high)) * 2 * unit / (high - low);
        assert_true(most < 1.5 * share * COUNT + 5 * sqrt(share * COUNT));
        free(count);
        draws = machine->random.draws;
        params = (numbers){real(1), real(0.5)};
        generate("normal", t, params);
        machine->random.draws = draws;
        generate("normal", single, params);
        for (int64_t i = 0; i < COUNT; i++)
            assert_true(get(t, i).f == naive_rounded(dtype, get(single, i).f));
        drop(t), drop(single);
    }
    mr_tensor *t = make(MR_F16, SHAPE(10));
    mr_call call = call_with(t, (numbers){real(0), real(70000)});
    expect_error(try_call("uniform", &call), MR_CODE_INVALID_ARGUMENT,
                 "too large for f16, whose largest number is 65504");
    call = call_with(t, (numbers){real(1.0001), real(1.0002)});
    expect_error(try_call("uniform", &call), MR_CODE_INVALID_ARGUMENT, "there is no f16 number");
    call = call_with(t, (numbers){whole(0), whole(65506)});
    expect_error(try_call("randint", &call), MR_CODE_INVALID_ARGUMENT,
                 "f16 cannot hold the integers from 0 to 65505");
    drop(t);
}

static void random_numbers_have_their_moments(void **state) {
    (void)state;
    static const mr_dtype floats[] = {MR_F32, MR_F64};
    mr_machine_seed(machine, 42);
    for (int k = 0; k < 2; k++) {
        mr_tensor *t = make_device(floats[k], SHAPE(200000));
        generate("uniform", t, (numbers){real(0), real(1)});
        expect_moments(t, 0.5, 1.0 / 12);
        for (int64_t i = 0; i < t->numel; i++) assert_true(get(t, i).f >= 0 && get(t, i).f < 1);
        generate("uniform", t, (numbers){real(-3), real(5)});
        expect_moments(t, 1, 64.0 / 12);
        generate("normal", t, (numbers){real(2), real(3)});
        expect_moments(t, 2, 9);
        double correlation = 0;
        for (int64_t i = 1; i < t->numel; i++)
            correlation += (get(t, i).f - 2) * (get(t, i - 1).f - 2) / 9;
        assert_true(fabs(correlation / 200000) < 0.012);
        drop(t);
    }
    mr_tensor *t = make_device(MR_I32, SHAPE(200000));
    generate("bernoulli", t, (numbers){.first = real(0.3)});
    expect_moments(t, 0.3, 0.21);
    generate("bernoulli", t, (numbers){.first = real(1)});
    for (int64_t i = 0; i < t->numel; i++) assert_int_equal(get(t, i).i, 1);
    generate("randint", t, (numbers){whole(-3), whole(4)});
    int64_t counts[7] = {0};
    for (int64_t i = 0; i < t->numel; i++) counts[get(t, i).i + 3]++;
    for (int i = 0; i < 7; i++) assert_true(llabs(counts[i] - 200000 / 7) < 900);
    drop(t);
    t = make(MR_I64, SHAPE(100));
    generate("randint", t, (numbers){whole(INT64_MIN), whole(INT64_MAX)});
    drop(t);
}

/* What another backend must give too: the recipe in terms of Philox blocks. */
static void the_recipe(void **state) {
    (void)state;
    mr_machine_seed(machine, 7);
    mr_tensor *t = make(MR_F32, SHAPE(11)), *d = make(MR_F64, SHAPE(5));
    generate("uniform", t, (numbers){real(0), real(1)});
    for (int64_t i = 0; i < 11; i++)
        assert_true(f64_at(t, i) == (mr_philox(7, 0, (uint64_t)i / 4).v[i % 4] >> 8) * 0x1p-24);
    generate("uniform", d, (numbers){real(0), real(1)});
    for (int64_t i = 0; i < 5; i++) {
        mr_philox_block r = mr_philox(7, 1, (uint64_t)i / 2);
        uint64_t bits = (uint64_t)r.v[2 * (i % 2) + 1] << 32 | r.v[2 * (i % 2)];
        assert_true(f64_at(d, i) == (double)(bits >> 11) * 0x1p-53);
    }
    drop(t), drop(d);
}

static void the_same_numbers_for_the_same_seed(void **state) {
    (void)state;
    static const struct {
        const char *op;
        mr_dtype dtype;
    } cases[] = {{"uniform", MR_F16}, {"normal", MR_BF16},    {"randint", MR_F16},
                 {"uniform", MR_F32}, {"uniform", MR_F64},    {"normal", MR_F32},
                 {"normal", MR_F64},  {"bernoulli", MR_BOOL}, {"randint", MR_I64},
                 {"randperm", MR_I32}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bool integers = strcmp(cases[k].op, "randint") == 0;
        numbers params = {integers ? whole(-100) : real(0.25), integers ? whole(100) : real(0.75)};
        mr_tensor *a = make(cases[k].dtype, SHAPE(9999)), *b = make(cases[k].dtype, SHAPE(9999));
        mr_machine_seed(machine, 99);
        generate(cases[k].op, a, params);
        generate(cases[k].op, b, params);
        assert_false(same_bits(a, b)); /* the next draw is another */
        for (int how = DENSE; how < EXPANDED; how++) {
            mr_tensor *c =
                make_laid_out(MR_MEMORY_DEVICE, cases[k].dtype, SHAPE(9999), (layout)how);
            mr_machine_seed(machine, 99);
            generate(cases[k].op, c, params);
            assert_true(same_bits(a, c));
            mr_machine_seed(machine, 100);
            generate(cases[k].op, c, params);
            assert_false(same_bits(a, c));
            drop(c);
        }
        drop(a), drop(b);
    }
}

static void permutations_have_each_number_once(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 1000};
    for (int k = 0; k < 4; k++) {
        mr_tensor *t = make_device(MR_I64, SHAPE(sizes[k]));
        bool seen[1001] = {false};
        generate("randperm", t, (numbers){{0}, {0}});
        int64_t fixed = 0;
        for (int64_t i = 0; i < sizes[k]; i++) {
            int64_t v = get(t, i).i;
            assert_true(v >= 1 && v <= sizes[k] && !seen[v]);
            seen[v] = true;
            fixed += v == i + 1;
        }
        assert_true(sizes[k] < 1000 || fixed < 10);
        drop(t);
    }
}

static void wrong_dtypes(void **state) {
    (void)state;
    mr_tensor *t = make(MR_I32, SHAPE(3));
    mr_call call = {.out = t, .in_place = true};
    expect_error(try_call("normal", &call), MR_CODE_INVALID_ARGUMENT,
                 "normal_: i32 tensors have no normal; convert with x:to(\"f32\")");
    call.out = NULL;
    expect_error(try_call("normal", &call), MR_CODE_INVALID_ARGUMENT,
                 "the tensor to fill is missing");
    drop(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences),
        cmocka_unit_test(constants),
        cmocka_unit_test(random_numbers_have_their_moments),
        cmocka_unit_test(halves_are_rounded_random_numbers),
        cmocka_unit_test(the_recipe),
        cmocka_unit_test(the_same_numbers_for_the_same_seed),
        cmocka_unit_test(permutations_have_each_number_once),
        cmocka_unit_test(wrong_dtypes),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
