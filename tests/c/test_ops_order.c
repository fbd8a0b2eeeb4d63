/* The families SCAN, SORT, MOVE and COMPACT against loops over coordinates: each row, dtype and layout; on the device
 * in random slices, which must give the host's bits. */
#include "fake_backend.h"

enum { ROUNDS = 25 };

typedef struct {
    int64_t at[MR_MAX_DIMS];
} coordinates;

static coordinates coordinates_of(const mr_tensor *t, int64_t position) {
    coordinates c = {{0}};
    for (int d = t->ndim; d-- > 0;) {
        c.at[d] = position % t->shape[d];
        position /= t->shape[d];
    }
    return c;
}

static mr_scalar at(const mr_tensor *t, coordinates c) {
    int64_t position = 0;
    for (int d = 0; d < t->ndim; d++) position = position * t->shape[d] + c.at[d];
    return get(t, position);
}

static bool same_value(mr_scalar a, mr_scalar b) {
    if (a.is_integer) return a.i == b.i;
    return (a.f == b.f && signbit(a.f) == signbit(b.f)) || (isnan(a.f) && isnan(b.f));
}

/* Any shape; now and then one with a long dim, or with none. */
static mr_tensor *random_tensor(mr_dtype dtype, int least_dims) {
    int ndim = least_dims + (int)random_below(5 - least_dims);
    int64_t shape[MR_MAX_DIMS];
    for (int d = 0; d < ndim; d++) shape[d] = random_below(6) + (random_below(8) > 0);
    if (ndim > 0 && random_below(4) == 0) shape[random_below(ndim)] = 1 + random_below(1500);
    mr_tensor *t =
        make_laid_out(MR_MEMORY_PAGEABLE, dtype, ndim, shape, (layout)random_below(LAYOUTS));
    fill_random(t);
    return t;
}

/* Also into a tensor that lies otherwise, and on the device. `call` has in[0] only. */
static mr_tensor *run_everywhere(const char *name, mr_call *call) {
    mr_tensor *x = call->in[0].tensor, *host = run_call(name, call);
    mr_tensor *device_x = copy_in(x, MR_MEMORY_DEVICE);
    call->in[0].tensor = device_x;
    mr_tensor *device = run_call(name, call);
    if (!same_bits(host, device)) fail_msg("%s: slices change the result", name);
    call->out = make_laid_out(MR_MEMORY_DEVICE, host->dtype, host->ndim, host->shape,
                              random_below(2) ? STEPPED : TRANSPOSED);
    run_call(name, call);
    if (!same_bits(host, call->out)) fail_msg("%s: out= changes the result", name);
    drop(call->out), drop(device), drop(device_x);
    call->in[0].tensor = x;
    call->out = NULL;
    return host;
}

/* ------------------------------------------------------------------------- cumsum, cumprod */

static void scans_go_along_lines(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS * MR_DTYPE_COUNT; round++) {
        mr_dtype dtype = (mr_dtype)(round % MR_DTYPE_COUNT);
        bool sums = random_below(2), is_float = mr_dtype_category(dtype) == 2;
        mr_tensor *x = random_tensor(dtype, 0);
        int dim = x->ndim > 0 ? (int)random_below(x->ndim) : 0;
        mr_call call = {.in[0].tensor = x, .in_count = 1, .dim_count = 1, .dims = {dim}};
        mr_tensor *out = run_everywhere(sums ? "cumsum" : "cumprod", &call);
        assert_int_equal(out->dtype, is_float ? dtype : MR_I64);
        for (int64_t i = 0; i < out->numel; i++) {
            coordinates c = coordinates_of(out, i);
            int64_t last = c.at[dim];
            long double f = sums ? 0 : 1;
            unsigned __int128 n = sums ? 0 : 1;
            double sizes = 0; /* of what may cancel out */
            for (c.at[dim] = 0; c.at[dim] <= last; c.at[dim]++) {
                mr_scalar v = x->ndim > 0 ? at(x, c) : get(x, 0);
                f = sums ? f + (long double)v.f : f * (long double)v.f;
                n = sums ? n + (unsigned __int128)v.i : n * (unsigned __int128)v.i;
                sizes += fabs((double)f);
            }
            mr_scalar got = get(out, i);
            double expected = (double)f, slack = isfinite(sizes) ? sizes * 1e-15 : 0;
            if (!is_float && got.i != (int64_t)(uint64_t)n)
                fail_msg("%s of %s is wrong", out->name ? "" : "scan", mr_dtype_text(dtype));
            /* A double may have underflowed or overflowed where a long double has not. */
            if (is_float && !sums && (fabsl(f) > 1e300L || fabsl(f) < 1e-290L || isnan(expected)))
                continue;
            if (is_float && !is_rounded(dtype, expected, slack, got.f) && got.f != expected)
                fail_msg("a scan of %s is %g, not %g", mr_dtype_text(dtype), got.f, expected);
        }
        drop(out), drop(x);
    }
}

/* inf * 0 and inf - inf are NaN with a sign, which is combined with the NaN that follows it. Each line has the same
 * bits, whatever lines go through a block beside it. */
static void scans_of_nan_have_the_same_bits(void **state) {
    (void)state;
    static const mr_dtype dtypes[] = {MR_F64, MR_F32, MR_F16, MR_BF16};
    static const double values[] = {2, INFINITY, 0, -INFINITY, NAN, 1, -NAN, 3};
    enum { LENGTH = sizeof values / sizeof *values, LINES = 37 };
    for (int round = 0; round < 64; round++) {
        mr_dtype dtype = dtypes[round % 4];
        mr_tensor *x = make_laid_out(MR_MEMORY_PAGEABLE, dtype, 2, (int64_t[]){LINES, LENGTH},
                                     (layout)(round / 4 % LAYOUTS));
        for (int64_t i = 0; i < x->numel; i++)
            set(x, i, (mr_scalar){.f = values[(i % LENGTH + i / LENGTH) % LENGTH]});
        mr_call call = {.in[0].tensor = x, .in_count = 1, .dim_count = 1, .dims = {1}};
        mr_tensor *sums = run_everywhere("cumsum", &call);
        mr_tensor *products = run_everywhere("cumprod", &call);
        for (int64_t i = LENGTH * LENGTH; i < x->numel; i++) {
            int64_t same = i - LENGTH * LENGTH; /* LENGTH lines before */
            size_t size = mr_dtype_size(dtype);
            assert_memory_equal(element(sums, i), element(sums, same), size);
            assert_memory_equal(element(products, i), element(products, same), size);
        }
        drop(sums), drop(products), drop(x);
    }
}

/* ------------------------------------------------------------------------- sort */

/* Whether a comes before b: NaN is the greatest. */
static bool before(mr_scalar a, mr_scalar b, bool descending) {
    if (descending) {
        mr_scalar other = a;
        a = b, b = other;
    }
    if (a.is_integer) return a.i < b.i;
    return isnan(b.f) ? !isnan(a.f) : a.f < b.f;
}

static void check_order(const mr_tensor *x, int dim, bool descending, int64_t taken,
                        const mr_tensor *values, const mr_tensor *order) {
    int64_t length = x->ndim > 0 ? x->shape[dim] : 1;
    int64_t *expected = malloc((size_t)(length + 1) * sizeof *expected);
    for (int64_t i = 0; i < x->numel; i++) {
        coordinates c = coordinates_of(x, i);
        if (x->ndim > 0 && c.at[dim] != 0) continue; /* i begins a line */
        int64_t count = 0;
        for (int64_t j = 0; j < length; j++) {
            c.at[dim] = j;
            mr_scalar v = at(x, c);
            int64_t k = count++;
            for (; k > 0; k--) {
                coordinates other = c;
                other.at[dim] = expected[k - 1];
                if (!before(v, at(x, other), descending)) break;
                expected[k] = expected[k - 1];
            }
            expected[k] = j;
        }
        for (int64_t j = 0; j < taken; j++) {
            coordinates from = c, to = c;
            from.at[dim] = expected[j];
            to.at[dim] = j;
            if (at(order, to).i != expected[j] + 1)
                fail_msg("%s: position %d is wrong", mr_dtype_text(x->dtype), (int)j);
            if (values && !same_value(at(values, to), at(x, from)))
                fail_msg("%s: value %d is wrong", mr_dtype_text(x->dtype), (int)j);
        }
    }
    free(expected);
}

static void lines_are_sorted(void **state) {
    (void)state;
    static const char *const names[] = {"sort", "argsort", "topk"};
    for (int round = 0; round < 2 * ROUNDS * MR_DTYPE_COUNT; round++) {
        mr_tensor *x = random_tensor((mr_dtype)(round % MR_DTYPE_COUNT), 0);
        int dim = x->ndim > 0 ? (int)random_below(x->ndim) : 0, kind = (int)random_below(3);
        int64_t length = x->ndim > 0 ? x->shape[dim] : 1;
        mr_sort_call call = {.in = x, .dim = dim, .taken = -1, .descending = random_below(2)};
        if (kind == 2) call.taken = x->ndim > 0 ? random_below(length + 1) : 1;
        mr_tensor *values[2] = {NULL}, *order[2], *device = copy_in(x, MR_MEMORY_DEVICE);
        for (int side = 0; side < 2; side++) {
            call.in = side ? device : x;
            expect_ok(mr_sort(&caller, mr_op_find(names[kind]), &call,
                              kind == 1 ? NULL : &values[side], &order[side]));
        }
        check_order(x, dim, call.descending, kind == 2 ? call.taken : length, values[0], order[0]);
        if (!same_bits(order[0], order[1]) || (values[0] && !same_bits(values[0], values[1])))
            fail_msg("%s: slices change the result", names[kind]);
        for (int side = 0; side < 2; side++) drop(values[side]), drop(order[side]);
        drop(x), drop(device);
    }
    mr_tensor *x = make(MR_F32, SHAPE(3)), *values, *order;
    fill_random(x);
    const mr_sort_call call = {.in = x, .dim = 0, .taken = 4};
    expect_error(mr_sort(&caller, mr_op_find("topk"), &call, &values, &order),
                 MR_CODE_INVALID_ARGUMENT, "4 elements are wanted, but dim 1 has 3");
    drop(x);
}

/* ------------------------------------------------------------------------- flip, roll, tril, triu */

static int64_t wrapped(int64_t i, int64_t n) {
    while (i < 0) i += n;
    while (i >= n) i -= n;
    return i;
}

static void elements_move(void **state) {
    (void)state;
    static const char *const names[] = {"flip", "roll", "tril", "triu"};
    for (int round = 0; round < 2 * ROUNDS * MR_DTYPE_COUNT; round++) {
        int kind = (int)random_below(4);
        mr_tensor *x = random_tensor((mr_dtype)(round % MR_DTYPE_COUNT), kind < 2 ? 0 : 2);
        mr_call call = {.in[0].tensor = x, .in_count = 1};
        bool flips[MR_MAX_DIMS] = {false};
        int64_t shift = random_below(41) - 20, diagonal = random_below(9) - 4;
        int dim = x->ndim > 0 ? (int)random_below(x->ndim) : 0;
        if (random_below(20) == 0) diagonal = random_below(2) ? INT64_MAX : INT64_MIN;
        for (int d = 0; d < x->ndim && kind == 0; d++)
            if ((flips[d] = random_below(2))) call.dims[call.dim_count++] = d;
        if (kind == 1) call.dims[call.dim_count++] = dim, call.params.move.shift = shift;
        if (kind > 1) call.params.move.diagonal = diagonal;
        mr_tensor *out = run_everywhere(names[kind], &call);
        for (int64_t i = 0; i < out->numel; i++) {
            coordinates c = coordinates_of(out, i), from = c;
            for (int d = 0; d < x->ndim; d++)
                if (flips[d]) from.at[d] = x->shape[d] - 1 - c.at[d];
            if (kind == 1 && x->ndim > 0) from.at[dim] = wrapped(c.at[dim] - shift, x->shape[dim]);
            mr_scalar expected = x->ndim > 0 ? at(x, from) : get(x, 0);
            __int128 over =
                kind > 1 ? (__int128)c.at[x->ndim - 1] - c.at[x->ndim - 2] - diagonal : 0;
            if ((kind == 2 && over > 0) || (kind == 3 && over < 0))
                expected = expected.is_integer ? whole(0) : real(0);
            if (!same_value(get(out, i), expected))
                fail_msg("%s of %s: element %d is wrong", names[kind], mr_dtype_text(x->dtype),
                         (int)i);
        }
        drop(out), drop(x);
    }
}

/* ------------------------------------------------------------------------- nonzero, masked_select */

static void what_is_chosen_keeps_its_order(void **state) {
    (void)state;
    for (int round = 0; round < 2 * ROUNDS * MR_DTYPE_COUNT; round++) {
        mr_tensor *x = random_tensor((mr_dtype)(round % MR_DTYPE_COUNT), 0), *out[2], *mask;
        mask = make_laid_out(MR_MEMORY_PAGEABLE, MR_BOOL, x->ndim, x->shape,
                             (layout)random_below(LAYOUTS));
        fill_random(mask);
        bool select = random_below(2);
        for (int side = 0; side < 2; side++) {
            mr_memory_kind kind = side ? MR_MEMORY_DEVICE : MR_MEMORY_PAGEABLE;
            mr_tensor *own = copy_in(x, kind), *own_mask = copy_in(mask, kind);
            expect_ok(select ? mr_masked_select(&caller, own, own_mask, &out[side])
                             : mr_nonzero(&caller, own, &out[side]));
            drop(own), drop(own_mask);
        }
        if (!same_bits(out[0], out[1])) fail_msg("the device chooses others");
        int64_t found = 0;
        for (int64_t i = 0; i < x->numel; i++) {
            mr_scalar v = get(x, i);
            if (select ? get(mask, i).i == 0 : v.is_integer ? v.i == 0 : v.f == 0) continue;
            if (select) assert_true(same_value(get(out[0], found), v));
            for (int d = 0; d < x->ndim && !select; d++)
                assert_int_equal(get(out[0], found * x->ndim + d).i,
                                 coordinates_of(x, i).at[d] + 1);
            found++;
        }
        assert_int_equal(out[0]->shape[0], found);
        drop(out[0]), drop(out[1]), drop(x), drop(mask);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scans_go_along_lines),
        cmocka_unit_test(scans_of_nan_have_the_same_bits),
        cmocka_unit_test(lines_are_sorted),
        cmocka_unit_test(elements_move),
        cmocka_unit_test(what_is_chosen_keeps_its_order),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
