/* New tensors with random values. The same seed (mr.manual_seed) and the same calls give the same
 * numbers on every backend. The in-place forms, such as normal_, come from the operation table. */
#include <inttypes.h>

#include "bind/tensor/creation.h"
#include "bind/open.h"
#include "bind/ops/shape.h"
#include "ops/ids.h"

static mr_scalar real(double f) {
    return (mr_scalar){.f = f};
}

static mr_scalar whole(int64_t i) {
    return (mr_scalar){.is_integer = true, .i = i, .f = (double)i};
}

static int random_floats(lua_State *L, const char *what, mr_op_id row, double first,
                         double second) {
    mr_caller caller = mr_enter_as(L, what);
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS];
    const mr_scalar numbers[2] = {real(first), real(second)};
    int ndim = mr_check_new(L, what, 1, MR_F32, &options, shape);
    mr_push_generated(L, &caller, row, &options, ndim, shape, numbers);
    return 1;
}

MR_FUNCTION(random_rand, "rand",
            "mr.rand(sizes: integer... [, {dtype: string, device: device, name: string, "
            "stream: stream}]) -> tensor",
            "Makes a tensor of uniform random numbers from 0 up to, but not including, 1; f32 "
            "unless `dtype` is another floating one. The sizes can also be one table.") {
    return random_floats(L, "rand", MR_OP_uniform, 0, 1);
}

MR_FUNCTION(random_randn, "randn",
            "mr.randn(sizes: integer... [, {dtype: string, device: device, name: "
            "string, stream: stream}]) -> tensor",
            "Makes a tensor of random numbers from the normal distribution with mean 0 and "
            "standard deviation 1; f32 unless `dtype` is another floating one. The sizes can also "
            "be one table.") {
    return random_floats(L, "randn", MR_OP_normal, 0, 1);
}

static int random_floats_like(lua_State *L, const char *what, mr_op_id row, double first,
                              double second) {
    mr_caller caller = mr_enter_as(L, what);
    mr_new_options options;
    const mr_tensor *t = mr_check_tensor(L, 1);
    const mr_scalar numbers[2] = {real(first), real(second)};
    mr_check_new_options(L, 2, t, MR_F32, &options);
    mr_push_generated(L, &caller, row, &options, t->ndim, t->shape, numbers);
    return 1;
}

MR_FUNCTION(random_rand_like, "rand_like",
            "mr.rand_like(t: tensor [, {dtype: string, device: device}]) -> tensor",
            "Like mr.rand, with the shape of t, and with its dtype and device unless the options "
            "give others.") {
    return random_floats_like(L, "rand_like", MR_OP_uniform, 0, 1);
}

MR_FUNCTION(random_randn_like, "randn_like",
            "mr.randn_like(t: tensor [, {dtype: string, device: device}]) -> tensor",
            "Like mr.randn, with the shape of t, and with its dtype and device unless the options "
            "give others.") {
    return random_floats_like(L, "randn_like", MR_OP_normal, 0, 1);
}

/* `first` to `last` are one or two numbers: [low,] high. */
static void check_range(lua_State *L, int first, int last, mr_scalar out_numbers[2]) {
    lua_Integer low = last > first ? mr_check_integer(L, first) : 0,
                high = mr_check_integer(L, last);
    if (low >= high)
        mr_misuse(
            L, "randint: there is no integer from %" PRId64 " up to, but not including, %" PRId64,
            (int64_t)low, (int64_t)high);
    out_numbers[0] = whole(low);
    out_numbers[1] = whole(high);
}

/* Where the sizes begin in mr.randint's arguments: at the table, or after two numbers. */
static int check_sizes_at(lua_State *L, int last) {
    for (int arg = 2; arg <= 3 && arg <= last; arg++)
        if (lua_type(L, arg) == LUA_TTABLE) return arg;
    if (last < 3)
        mr_misuse(L, "randint: expected bounds and sizes: mr.randint(0, 10, {3, 4}) or "
                     "mr.randint(10, {3, 4})");
    return 3;
}

MR_FUNCTION(
    random_randint, "randint",
    "mr.randint([low: integer=0,] high: integer, sizes: integer[] [, {dtype: string, device: "
    "device, name: string, stream: stream}]) -> tensor",
    "Makes a tensor of random integers from `low` up to, but not including, `high`; i64 unless "
    "`dtype` is given. If both bounds are given, the sizes can also be separate arguments.") {
    mr_caller caller = mr_enter(L);
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS];
    int table, last = mr_split_options(L, lua_type(L, 2) == LUA_TTABLE ? 2 : 3, &table);
    int sizes = check_sizes_at(L, last);
    mr_scalar numbers[2];
    check_range(L, 1, sizes - 1, numbers);
    mr_check_new_options(L, table, NULL, MR_I64, &options);
    int ndim = mr_check_new_shape(L, "randint", sizes, last, shape);
    mr_push_generated(L, &caller, MR_OP_randint, &options, ndim, shape, numbers);
    return 1;
}

MR_FUNCTION(random_randint_like, "randint_like",
            "mr.randint_like(t: tensor, [low: integer=0,] high: integer [, {dtype: string, device: "
            "device}]) -> tensor",
            "Like mr.randint, with the shape of t, and with its dtype and device unless the "
            "options give others.") {
    mr_caller caller = mr_enter(L);
    mr_new_options options;
    const mr_tensor *t = mr_check_tensor(L, 1);
    int table, last = mr_split_options(L, 0, &table);
    if (last < 2 || last > 3)
        return mr_misuse(L, "randint_like: expected a tensor and one or two bounds");
    mr_scalar numbers[2];
    check_range(L, 2, last, numbers);
    mr_check_new_options(L, table, t, MR_I64, &options);
    mr_push_generated(L, &caller, MR_OP_randint, &options, t->ndim, t->shape, numbers);
    return 1;
}

/* Whether the dtype has all integers from 1 to n; floats have some greater ones, but not each. */
static bool has_all(mr_dtype dtype, int64_t n) {
    switch (dtype) {
    case MR_F16: return n <= 1 << 11;
    case MR_BF16: return n <= 1 << 8;
    case MR_F32: return n <= 1 << 24;
    case MR_F64: return n <= (int64_t)1 << 53;
    default: return mr_dtype_holds(dtype, n);
    }
}

MR_FUNCTION(
    random_randperm, "randperm",
    "mr.randperm(n: integer [, {dtype: string, device: device, name: string, stream: stream}]) -> "
    "tensor",
    "Makes a tensor of the integers from 1 to n in random order, for use as indices; i64 unless "
    "`dtype` is given.") {
    mr_caller caller = mr_enter(L);
    mr_new_options options;
    int table;
    const mr_scalar numbers[2] = {{0}};
    mr_split_options(L, 0, &table);
    int64_t n = mr_check_integer(L, 1);
    if (n < 0) return mr_misuse(L, "randperm: n is %" PRId64 ", expected 0 or more", n);
    mr_check_new_options(L, table, NULL, MR_I64, &options);
    if (!has_all(options.dtype, n))
        return mr_misuse(L, "randperm: %s does not have all integers from 1 to %" PRId64,
                         mr_dtype_text(options.dtype), n);
    mr_push_generated(L, &caller, MR_OP_randperm, &options, 1, &n, numbers);
    return 1;
}

static const mr_function *const functions[] = {
    &random_rand_function,      &random_randn_function,
    &random_rand_like_function, &random_randn_like_function,
    &random_randint_function,   &random_randint_like_function,
    &random_randperm_function,  NULL,
};

const mr_class mr_random_class = {
    "mr",
    "Random tensors. The same seed and the same calls give the same numbers on every backend.",
    functions,
    NULL,
    NULL,
};

void mr_open_random(lua_State *L) {
    mr_table_open(L, &mr_random_class);
}
