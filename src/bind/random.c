/* New tensors with random values. The same seed (mr.manual_seed) and the same calls give the same
 * numbers on every backend. The in-place forms, such as normal_, come from the operation table. */
#include <inttypes.h>

#include "bind/tensor.h"

static mr_scalar real(double f) {
    return (mr_scalar){false, 0, f};
}

static int random_floats(lua_State *L, const char *what, const char *row, double first,
                         double second) {
    mr_machine *machine = mr_enter_as(L, what);
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS];
    mr_params params = {.scalar = {real(first), real(second)}};
    int ndim = mr_check_new(L, what, 1, MR_F32, &options, shape);
    mr_push_generated(L, machine, row, &options, ndim, shape, &params);
    return 1;
}

MR_FUNCTION(random_rand, "rand",
            "mr.rand(sizes: integer... [, {dtype: string, device: device, name: string, "
            "stream: stream}]) -> tensor",
            "Random numbers from 0 up to, and without, 1; f32 or f64. Sizes also as one table.") {
    return random_floats(L, "rand", "uniform", 0, 1);
}

MR_FUNCTION(
    random_randn, "randn",
    "mr.randn(sizes: integer... [, {dtype: string, device: device, name: "
    "string, stream: stream}]) -> tensor",
    "Random numbers of the normal distribution with mean 0 and deviation 1; f32 or f64. Sizes also "
    "as one table.") {
    return random_floats(L, "randn", "normal", 0, 1);
}

static int random_floats_like(lua_State *L, const char *what, const char *row, double first,
                              double second) {
    mr_machine *machine = mr_enter_as(L, what);
    mr_new_options options;
    const mr_tensor *t = mr_check_tensor(L, 1);
    mr_params params = {.scalar = {real(first), real(second)}};
    mr_check_new_options(L, 2, t, MR_F32, &options);
    mr_push_generated(L, machine, row, &options, t->ndim, t->shape, &params);
    return 1;
}

MR_FUNCTION(
    random_rand_like, "rand_like",
    "mr.rand_like(t: tensor [, {dtype: string, device: device}]) -> tensor",
    "As mr.rand, with the shape of t, and its dtype and device unless the options say otherwise.") {
    return random_floats_like(L, "rand_like", "uniform", 0, 1);
}

MR_FUNCTION(random_randn_like, "randn_like",
            "mr.randn_like(t: tensor [, {dtype: string, device: device}]) -> tensor",
            "As mr.randn, with the shape of t, and its dtype and device unless the options say "
            "otherwise.") {
    return random_floats_like(L, "randn_like", "normal", 0, 1);
}

/* `first` to `last` are one or two numbers: [low,] high. */
static mr_params check_range(lua_State *L, int first, int last) {
    lua_Integer low = last > first ? mr_check_integer(L, first) : 0,
                high = mr_check_integer(L, last);
    if (low >= high)
        mr_misuse(L,
                  "randint: from %" PRId64 " up to, and without, %" PRId64 " there is no integer",
                  (int64_t)low, (int64_t)high);
    return (mr_params){.integer = {low, high}};
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
    "Random integers from low up to, and without, high; i64 unless dtype says otherwise. After two "
    "bounds, sizes also as arguments.") {
    mr_machine *machine = mr_enter(L);
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS];
    int table, last = mr_split_options(L, &table);
    int sizes = check_sizes_at(L, last);
    mr_params params = check_range(L, 1, sizes - 1);
    mr_check_new_options(L, table, NULL, MR_I64, &options);
    int ndim = mr_check_new_shape(L, "randint", sizes, last, shape);
    mr_push_generated(L, machine, "randint", &options, ndim, shape, &params);
    return 1;
}

MR_FUNCTION(random_randint_like, "randint_like",
            "mr.randint_like(t: tensor, [low: integer=0,] high: integer [, {dtype: string, device: "
            "device}]) -> tensor",
            "As mr.randint, with the shape of t, and its dtype and device unless the options say "
            "otherwise.") {
    mr_machine *machine = mr_enter(L);
    mr_new_options options;
    const mr_tensor *t = mr_check_tensor(L, 1);
    int table, last = mr_split_options(L, &table);
    if (last < 2 || last > 3)
        return mr_misuse(L, "randint_like: expected a tensor and one or two bounds");
    mr_params params = check_range(L, 2, last);
    mr_check_new_options(L, table, t, MR_I64, &options);
    mr_push_generated(L, machine, "randint", &options, t->ndim, t->shape, &params);
    return 1;
}

MR_FUNCTION(
    random_randperm, "randperm",
    "mr.randperm(n: integer [, {dtype: string, device: device, name: string, stream: stream}]) -> "
    "tensor",
    "The integers from 1 to n in random order, to be used as indices; i64 unless dtype says "
    "otherwise.") {
    mr_machine *machine = mr_enter(L);
    mr_new_options options;
    int table;
    mr_params params = {0};
    mr_split_options(L, &table);
    int64_t n = mr_check_integer(L, 1);
    if (n < 0) return mr_misuse(L, "randperm: n is %" PRId64 ", expected 0 or more", n);
    mr_check_new_options(L, table, NULL, MR_I64, &options);
    mr_push_generated(L, machine, "randperm", &options, 1, &n, &params);
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
};

void mr_open_random(lua_State *L, mr_machine *machine) {
    mr_table_open(L, machine, &mr_random_class);
}
