/* The INDEX family against loops over coordinates: each row, dtype and layout. On the device it runs in random slices,
 * which must give the host's bits. Indices out of range are tested, too. */
#include "fake_backend.h"

enum { ROUNDS = 40 };

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

static int64_t position_of(const mr_tensor *t, coordinates c) {
    int64_t position = 0;
    for (int d = 0; d < t->ndim; d++) position = position * t->shape[d] + c.at[d];
    return position;
}

static void random_shape(int ndim, int64_t *shape) {
    for (int d = 0; d < ndim; d++) shape[d] = 1 + random_below(6);
}

static mr_tensor *random_tensor(mr_dtype dtype, int ndim, const int64_t *shape, bool may_expand) {
    layout how = (layout)random_below(may_expand ? LAYOUTS : EXPANDED);
    mr_tensor *t = make_laid_out(MR_MEMORY_PAGEABLE, dtype, ndim, shape, how);
    fill_random(t);
    return t;
}

static mr_tensor *random_index(int ndim, const int64_t *shape, int64_t size) {
    mr_tensor *t = random_tensor(random_below(2) ? MR_I64 : MR_I32, ndim, shape, true);
    for (int64_t i = 0; i < t->numel; i++) set(t, i, whole(1 + random_below(size)));
    return t;
}

static bool same_value(mr_scalar a, mr_scalar b) {
    if (a.is_integer) return a.i == b.i;
    return a.f == b.f || (isnan(a.f) && isnan(b.f));
}

/* A call on the host, checked by the caller's `expected`, and the same on the device. */
static void check_pick(const char *name, int dim, mr_tensor *x, mr_tensor *index,
                       const mr_scalar *expected, int64_t count) {
    mr_call call = {.in = {{.tensor = x}, {.tensor = index}}, .in_count = 2, .dim_count = 1};
    call.dims[0] = dim;
    mr_tensor *host = run_call(name, &call);
    assert_int_equal(host->numel, count);
    for (int64_t i = 0; i < count; i++)
        if (!same_value(get(host, i), expected[i]))
            fail_msg("%s of %s: element %d is wrong", name, mr_dtype_text(x->dtype), (int)i);
    mr_tensor *device_x = copy_in(x, MR_MEMORY_DEVICE),
              *device_index = copy_in(index, MR_MEMORY_DEVICE);
    call.in[0].tensor = device_x;
    call.in[1].tensor = device_index;
    mr_tensor *device = run_call(name, &call);
    if (!same_bits(host, device)) fail_msg("%s: slices change the result", name);
    mr_tensor *into = make_laid_out(MR_MEMORY_DEVICE, x->dtype, host->ndim, host->shape, STEPPED);
    call.out = into;
    run_call(name, &call);
    if (!same_bits(host, into)) fail_msg("%s: out= changes the result", name);
    drop(into), drop(device), drop(host), drop(device_x), drop(device_index);
}

static void gather_picks(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS * MR_DTYPE_COUNT; round++) {
        int ndim = 1 + (int)random_below(4), dim = (int)random_below(ndim);
        int64_t shape[MR_MAX_DIMS], index_shape[MR_MAX_DIMS];
        random_shape(ndim, shape);
        for (int d = 0; d < ndim; d++) index_shape[d] = random_below(shape[d] + 1);
        index_shape[dim] = random_below(9);
        mr_tensor *x = random_tensor((mr_dtype)(round % MR_DTYPE_COUNT), ndim, shape, true);
        mr_tensor *index = random_index(ndim, index_shape, shape[dim]);
        mr_scalar *expected = calloc((size_t)index->numel + 1, sizeof *expected);
        for (int64_t i = 0; i < index->numel; i++) {
            coordinates c = coordinates_of(index, i);
            c.at[dim] = get(index, i).i - 1;
            expected[i] = get(x, position_of(x, c));
        }
        check_pick("gather", dim, x, index, expected, index->numel);
        free(expected);
        drop(x), drop(index);
    }
}

static void index_select_picks_slices(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS * MR_DTYPE_COUNT; round++) {
        int ndim = 1 + (int)random_below(4), dim = (int)random_below(ndim);
        int64_t shape[MR_MAX_DIMS], count = random_below(9);
        random_shape(ndim, shape);
        mr_tensor *x = random_tensor((mr_dtype)(round % MR_DTYPE_COUNT), ndim, shape, true);
        mr_tensor *index = random_index(1, &count, shape[dim]);
        shape[dim] = count;
        mr_tensor *like = make(MR_BOOL, ndim, shape);
        mr_scalar *expected = calloc((size_t)like->numel + 1, sizeof *expected);
        for (int64_t i = 0; i < like->numel; i++) {
            coordinates c = coordinates_of(like, i);
            c.at[dim] = get(index, c.at[dim]).i - 1;
            expected[i] = get(x, position_of(x, c));
        }
        check_pick("index_select", dim, x, index, expected, like->numel);
        free(expected);
        drop(x), drop(index), drop(like);
    }
}

static void embedding_picks_rows(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS * MR_DTYPE_COUNT; round++) {
        int64_t shape[2], index_shape[MR_MAX_DIMS];
        int ndim = (int)random_below(4);
        random_shape(2, shape);
        random_shape(ndim, index_shape);
        if (round % 3 == 0) shape[1] = 16 * (1 + random_below(3));
        mr_tensor *x = random_tensor((mr_dtype)(round % MR_DTYPE_COUNT), 2, shape, true);
        mr_tensor *index = random_index(ndim, index_shape, shape[0]);
        int64_t count = index->numel * shape[1];
        mr_scalar *expected = calloc((size_t)count + 1, sizeof *expected);
        for (int64_t i = 0; i < count; i++)
            expected[i] = get(x, (get(index, i / shape[1]).i - 1) * shape[1] + i % shape[1]);
        check_pick("embedding", 0, x, index, expected, count);
        free(expected);
        drop(x), drop(index);
    }
}

/* ------------------------------------------------------------------------- setting, adding */

/* Sums in the type that the row computes in, in the order of the positions. */
static mr_scalar plus(mr_dtype dtype, mr_scalar a, mr_scalar b) {
    if (dtype == MR_BOOL) return whole(a.i || b.i);
    if (a.is_integer) return whole((int64_t)((uint64_t)a.i + (uint64_t)b.i));
    return real(dtype == MR_F64 ? a.f + b.f : (double)((float)a.f + (float)b.f));
}

/* What must come out: for each position, source element and place in x. `number`: instead of a source. */
static mr_scalar *expected_of(bool adds, bool flat, int dim, const mr_tensor *x,
                              const mr_tensor *index, const mr_tensor *source, mr_scalar number) {
    mr_scalar *out = calloc((size_t)x->numel + 1, sizeof *out);
    const mr_tensor *positions = flat ? source : index;
    for (int64_t i = 0; i < x->numel; i++) out[i] = get(x, i);
    for (int64_t i = 0; i < positions->numel; i++) {
        coordinates c = coordinates_of(positions, i);
        mr_scalar v = source ? get(source, position_of(source, c)) : number;
        c.at[dim] = get(index, flat ? c.at[dim] : i).i - 1;
        mr_scalar *to = &out[position_of(x, c)];
        *to = adds ? plus((mr_dtype)x->dtype, *to, v) : v;
    }
    for (int64_t i = 0; i < x->numel; i++) { /* wraps, or is rounded */
        uint8_t bytes[8];
        mr_dtype_store((mr_dtype)x->dtype, bytes, out[i]);
        out[i] = mr_dtype_load((mr_dtype)x->dtype, bytes);
    }
    return out;
}

static void check_place(const char *name, int dim, mr_tensor *x, mr_tensor *index,
                        mr_tensor *source, mr_scalar number, const mr_scalar *expected) {
    for (int pass = 0; pass < 2; pass++) {
        mr_memory_kind kind = pass ? MR_MEMORY_DEVICE : MR_MEMORY_PAGEABLE;
        mr_tensor *own = copy_in(x, kind), *own_index = copy_in(index, kind);
        mr_tensor *own_source = source ? copy_in(source, kind) : NULL;
        mr_call call = {.in = {{.tensor = own}, {.tensor = own_index}, {own_source, number}},
                        .in_count = 3,
                        .dim_count = 1,
                        .out = own,
                        .in_place = true};
        call.dims[0] = dim;
        run_call(name, &call);
        for (int64_t i = 0; i < x->numel; i++)
            if (!same_value(get(own, i), expected[i]))
                fail_msg("%s of %s: element %d is %g, not %g", name, mr_dtype_text(x->dtype),
                         (int)i, get(own, i).f, expected[i].f);
        drop(own), drop(own_index), drop(own_source);
    }
}

static void scatter_sets_and_adds(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS * MR_DTYPE_COUNT; round++) {
        mr_dtype dtype = (mr_dtype)(round % MR_DTYPE_COUNT);
        int ndim = 1 + (int)random_below(4), dim = (int)random_below(ndim);
        int64_t shape[MR_MAX_DIMS], index_shape[MR_MAX_DIMS], source_shape[MR_MAX_DIMS];
        random_shape(ndim, shape);
        for (int d = 0; d < ndim; d++) {
            index_shape[d] = d == dim ? random_below(30) : random_below(shape[d]) + 1;
            source_shape[d] = index_shape[d] + random_below(2);
        }
        mr_tensor *x = random_tensor(dtype, ndim, shape, false);
        mr_tensor *index = random_index(ndim, index_shape, shape[dim]);
        mr_tensor *source = random_tensor(dtype, ndim, source_shape, true);
        for (int what = 0; what < 3; what++) {
            mr_tensor *from = what < 2 ? source : NULL;
            mr_scalar *expected = expected_of(what == 0, false, dim, x, index, from, whole(1));
            check_place(what == 0 ? "scatter_add" : "scatter", dim, x, index, from, whole(1),
                        expected);
            free(expected);
        }
        drop(x), drop(index), drop(source);
    }
}

static void index_add_adds_slices(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS * MR_DTYPE_COUNT; round++) {
        mr_dtype dtype = (mr_dtype)(round % MR_DTYPE_COUNT);
        int ndim = 1 + (int)random_below(4), dim = (int)random_below(ndim);
        int64_t shape[MR_MAX_DIMS], count = random_below(30);
        random_shape(ndim, shape);
        mr_tensor *x = random_tensor(dtype, ndim, shape, false);
        mr_tensor *index = random_index(1, &count, shape[dim]);
        shape[dim] = count;
        mr_tensor *source = random_tensor(dtype, ndim, shape, true);
        mr_scalar *expected = expected_of(true, true, dim, x, index, source, whole(0));
        check_place("index_add", dim, x, index, source, whole(0), expected);
        free(expected);
        drop(x), drop(index), drop(source);
    }
}

/* ------------------------------------------------------------------------- errors */

static void wrong_calls_say_why(void **state) {
    (void)state;
    mr_tensor *x = make(MR_F32, SHAPE(3, 4)), *index = make(MR_I64, SHAPE(2)),
              *floats = make(MR_F32, SHAPE(2)), *rows = make(MR_I64, SHAPE(5, 2));
    expect_ok(mr_tensor_set_name(x, "x"));
    expect_ok(mr_tensor_set_name(index, "i"));
    for (int64_t i = 0; i < 2; i++) set(index, i, whole(1));
    for (int64_t i = 0; i < 10; i++) set(rows, i, whole(1));
    fill_random(x);
    mr_call call = {.in = {{.tensor = x}, {.tensor = floats}}, .in_count = 2, .dim_count = 1};
    expect_error(try_call("index_select", &call), MR_CODE_INVALID_ARGUMENT, "expected i64 or i32");
    call.in[1].tensor = rows;
    expect_error(try_call("index_select", &call), MR_CODE_INVALID_ARGUMENT, "expected one dim");
    call.dims[0] = 1;
    expect_error(try_call("gather", &call), MR_CODE_INVALID_ARGUMENT, "outside of dim 2");
    call.in[1].tensor = index;
    expect_error(try_call("gather", &call), MR_CODE_INVALID_ARGUMENT, "at most 3x4");
    static const int64_t bad[] = {0, 5, -1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        set(index, 1, whole(bad[i]));
        expect_error(try_call("index_select", &call), MR_CODE_INVALID_ARGUMENT,
                     "element [2] of `i` is");
        expect_error(try_call("index_select", &call), MR_CODE_INVALID_ARGUMENT,
                     "`x` has 4 elements there: expected 1 to 4");
    }
    set(index, 1, whole(4));
    mr_tensor *out = make(MR_F64, SHAPE(3, 2));
    call.out = out;
    expect_error(try_call("index_select", &call), MR_CODE_INVALID_ARGUMENT, "of one dtype");
    drop(out);
    expect_ok(mr_tensor_narrow(&caller, x, 1, 0, 2, 1, &out));
    call.out = out;
    expect_error(try_call("index_select", &call), MR_CODE_INVALID_ARGUMENT, "share memory");
    mr_call add = {.in = {{.tensor = x}, {.tensor = index}, {.tensor = out}},
                   .in_count = 3,
                   .dim_count = 1,
                   .out = x,
                   .in_place = true};
    add.dims[0] = 1;
    expect_error(try_call("index_add", &add), MR_CODE_INVALID_ARGUMENT, "share memory");
    add.dims[0] = 0;
    expect_error(try_call("index_add", &add), MR_CODE_INVALID_ARGUMENT, "expected 2x4");
    drop(out), drop(x), drop(index), drop(floats), drop(rows);
}

/* On the device the row itself finds it, and does not touch what lies outside. */
static void a_device_index_is_checked_where_it_is_used(void **state) {
    (void)state;
    static const char *const names[] = {"index_select", "gather", "scatter_add", "index_add"};
    for (int k = 0; k < 4; k++) {
        mr_tensor *x = make(MR_F32, SHAPE(3)), *index = make(MR_I32, SHAPE(4)),
                  *out = make(MR_F32, SHAPE(4));
        for (int64_t i = 0; i < 4; i++) set(index, i, whole(i + 1)), set(out, i, real(1));
        mr_operand operands[] = {{k < 2 ? out : x, MR_WRITE},
                                 {k < 2 ? x : index, MR_READ},
                                 {k < 2 ? index : out, MR_READ}};
        mr_command command = {.kind = MR_COMMAND_OP,
                              .name = names[k],
                              .operand_count = 3,
                              .operands = operands,
                              .machine = machine};
        command.u.op.row = mr_op_find(names[k]);
        int64_t items = command.u.op.row->items(&command);
        expect_error(command.u.op.row->run(&command, NULL, 0, items), MR_CODE_ASSERT,
                     "element [4] of ");
        drop(x), drop(index), drop(out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gather_picks),
        cmocka_unit_test(index_select_picks_slices),
        cmocka_unit_test(embedding_picks_rows),
        cmocka_unit_test(scatter_sets_and_adds),
        cmocka_unit_test(index_add_adds_slices),
        cmocka_unit_test(wrong_calls_say_why),
        cmocka_unit_test(a_device_index_is_checked_where_it_is_used),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
