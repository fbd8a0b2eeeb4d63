/* New tensors whose values depend only on the position: zeros, ones, arange and so on. literal.c
 * makes tensors from Lua tables, random.c tensors of random values. */
#include <inttypes.h>
#include <math.h>

#include "bind/tensor/creation.h"
#include "bind/open.h"
#include "bind/ops/row.h"
#include "bind/ops/shape.h"
#include "bind/tensor_box.h"
#include "ops/ids.h"

#define OPTIONS                                                                                    \
    "{dtype: string, device: device|integer|string, pinned: boolean=false, name: string, stream: " \
    "stream, requires_grad: boolean=false, ipc: boolean=false}"

mr_tensor *mr_push_generated(lua_State *L, const mr_caller *caller, mr_op_id row,
                             const mr_new_options *options, int ndim, const int64_t *shape,
                             const mr_scalar numbers[2]) {
    const mr_op *op = &mr_ops[row];
    /* Checked before any allocation, so an error has no effect. */
    if (!(op->dtypes & (1 << mr_dtype_category(options->dtype))))
        mr_misuse(L,
                  "%s: dtype %s cannot represent these values: expected a floating one: f32, f64, "
                  "f16 or bf16",
                  op->name, mr_dtype_text(options->dtype));
    mr_tensor *t = mr_push_empty(L, caller, options, ndim, shape);
    mr_finish_new(L, mr_generate(caller, op, t, false, options->placement.stream, numbers));
    return t;
}

int mr_check_new(lua_State *L, const char *what, int first, mr_dtype dtype, mr_new_options *options,
                 int64_t *out_shape) {
    int table, last = mr_split_options(L, first, &table);
    if (table &&
        lua_rawlen(L, table) > 0) { /* sizes and options in one: the shape's check says so */
        last = table;
        table = 0;
    }
    mr_check_new_options(L, table, NULL, dtype, options);
    return mr_check_new_shape(L, what, first, last, out_shape);
}

static mr_scalar integer_scalar(int64_t i) {
    return (mr_scalar){true, false, i, (double)i};
}

/* Tells the checker that host memory is unwritten. For device memory, the allocation's command tells it. */
static void blank(const mr_tensor *t) {
    if (!mr_tensor_on_host(t)) return;
    t->storage->blank = true;
    mr_storage_begin_zero(t->storage);
}

/* --- one value everywhere ----------------------------------------------------------------------- */

MR_FUNCTION(
    creation_empty, "empty", "mr.empty(sizes: integer... [, " OPTIONS "]) -> tensor",
    "Makes a tensor without writing its values: they are whatever the memory contains, on the "
    "host zeros. The sizes can also be one table. Device memory is allocated in the order of "
    "`stream` (default: the current stream). With ipc=true other processes can have it: "
    "t:ipc_handle().") {
    mr_caller caller = mr_enter(L);
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS];
    int ndim = mr_check_new(L, "empty", 1, MR_F32, &options, shape);
    blank(mr_push_empty(L, &caller, &options, ndim, shape));
    return 1;
}

static int filled(lua_State *L, const char *what, int64_t value) {
    mr_caller caller = mr_enter_as(L, what);
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS];
    const mr_scalar numbers[2] = {integer_scalar(value)};
    int ndim = mr_check_new(L, what, 1, MR_F32, &options, shape);
    mr_push_generated(L, &caller, MR_OP_fill, &options, ndim, shape, numbers);
    return 1;
}

MR_FUNCTION(
    creation_zeros, "zeros", "mr.zeros(sizes: integer... [, " OPTIONS "]) -> tensor",
    "Makes a tensor of zeros, f32 unless `dtype` is given. The sizes can also be one table.") {
    return filled(L, "zeros", 0);
}

MR_FUNCTION(
    creation_ones, "ones", "mr.ones(sizes: integer... [, " OPTIONS "]) -> tensor",
    "Makes a tensor of ones, f32 unless `dtype` is given. The sizes can also be one table.") {
    return filled(L, "ones", 1);
}

static mr_dtype dtype_of_value(lua_State *L, int arg) {
    if (lua_isboolean(L, arg)) return MR_BOOL;
    return lua_isinteger(L, arg) ? MR_I64 : MR_F32;
}

MR_FUNCTION(creation_full, "full",
            "mr.full(sizes: integer[], value: number|boolean [, " OPTIONS "]) -> tensor",
            "Makes a tensor in which every element has this value. An integer gives i64, another "
            "number f32, a boolean bool, unless `dtype` is given. The sizes can also be separate "
            "arguments before the value.") {
    mr_caller caller = mr_enter_as(L, "full");
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS];
    int table, last = mr_split_options(L, 1, &table);
    if (last < 2) return mr_misuse(L, "full: expected sizes and a value: mr.full({3, 4}, 0.5)");
    if (last > 2) mr_check_no_name(L, "full", "{3, 4}, 0.5", last);
    const mr_scalar numbers[2] = {mr_check_scalar(L, last)};
    mr_check_new_options(L, table, NULL, dtype_of_value(L, last), &options);
    int ndim = mr_check_new_shape(L, "full", 1, last - 1, shape);
    mr_push_generated(L, &caller, MR_OP_fill, &options, ndim, shape, numbers);
    return 1;
}

/* --- like another ------------------------------------------------------------------------------- */

MR_FUNCTION(creation_empty_like, "empty_like", "mr.empty_like(t: tensor [, " OPTIONS "]) -> tensor",
            "Like mr.empty, with the shape of t, and with its dtype and device unless the options "
            "give others.") {
    mr_caller caller = mr_enter(L);
    mr_new_options options;
    const mr_tensor *t = mr_check_tensor(L, 1);
    mr_check_new_options(L, 2, t, MR_F32, &options);
    blank(mr_push_empty(L, &caller, &options, t->ndim, t->shape));
    return 1;
}

/* `arg`: where the options are. */
static int filled_like(lua_State *L, const char *what, mr_scalar value, int arg) {
    mr_caller caller = mr_enter_as(L, what);
    mr_new_options options;
    const mr_tensor *t = mr_check_tensor(L, 1);
    const mr_scalar numbers[2] = {value};
    mr_check_new_options(L, arg, t, MR_F32, &options);
    mr_push_generated(L, &caller, MR_OP_fill, &options, t->ndim, t->shape, numbers);
    return 1;
}

MR_FUNCTION(creation_zeros_like, "zeros_like", "mr.zeros_like(t: tensor [, " OPTIONS "]) -> tensor",
            "Makes a tensor of zeros with the shape of t, and with its dtype and device unless the "
            "options give others.") {
    return filled_like(L, "zeros_like", integer_scalar(0), 2);
}

MR_FUNCTION(creation_ones_like, "ones_like", "mr.ones_like(t: tensor [, " OPTIONS "]) -> tensor",
            "Makes a tensor of ones with the shape of t, and with its dtype and device unless the "
            "options give others.") {
    return filled_like(L, "ones_like", integer_scalar(1), 2);
}

MR_FUNCTION(creation_full_like, "full_like",
            "mr.full_like(t: tensor, value: number|boolean [, " OPTIONS "]) -> tensor",
            "Makes a tensor in which every element has this value, with the shape of t, and with "
            "its dtype and device unless the options give others.") {
    mr_check_tensor(L, 1);
    return filled_like(L, "full_like", mr_check_scalar(L, 2), 3);
}

/* --- sequences ---------------------------------------------------------------------------------- */

/* How many integers there are from `start` to before `stop`; -1: `step` leads away. Differences are
 * taken unsigned, where those of two int64 always fit. */
static int64_t count_integers(int64_t start, int64_t stop, int64_t step) {
    if (start == stop) return 0;
    if ((stop > start) != (step > 0)) return -1;
    uint64_t distance =
        step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t count = (distance - 1) / by + 1;
    return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

static int64_t count_numbers(double start, double stop, double step) {
    if (start == stop) return 0;
    if ((stop > start) != (step > 0)) return -1;
    double count = ceil((stop - start) / step);
    return count < 9e18 ? (int64_t)count : INT64_MAX;
}

static int64_t check_count(lua_State *L, mr_scalar start, mr_scalar stop, mr_scalar step) {
    if (!isfinite(start.f) || !isfinite(stop.f) || !isfinite(step.f))
        mr_misuse(L, "arange: from %g to %g with step %g: expected finite numbers", start.f, stop.f,
                  step.f);
    if (step.f == 0) mr_misuse(L, "arange: the step is 0, expected another number");
    int64_t count = start.is_integer && stop.is_integer && step.is_integer
                        ? count_integers(start.i, stop.i, step.i)
                        : count_numbers(start.f, stop.f, step.f);
    if (count < 0)
        mr_misuse(L, "arange: from %g to %g with step %g: the step has the wrong sign", start.f,
                  stop.f, step.f);
    return count;
}

static mr_scalar check_number(lua_State *L, int arg) {
    if (lua_type(L, arg) != LUA_TNUMBER) mr_bad_argument(L, arg, "a number");
    return mr_check_scalar(L, arg);
}

MR_FUNCTION(creation_arange, "arange",
            "mr.arange([start: number=0,] stop: number [, step: number=1] [, " OPTIONS
            "]) -> tensor",
            "Makes a 1-D tensor of the numbers from `start` up to, but not including, `stop`: "
            "mr.arange(3) is 0 1 2. It is i64 if all three arguments are integers, otherwise f32, "
            "unless `dtype` is given.") {
    mr_caller caller = mr_enter(L);
    mr_new_options options;
    int table, last = mr_split_options(L, 0, &table);
    mr_scalar start = integer_scalar(0), step = integer_scalar(1), stop;
    if (last < 1 || last > 3)
        return mr_misuse(L, "arange: expected 1 to 3 numbers, got %d arguments", last);
    stop = check_number(L, last == 1 ? 1 : 2);
    if (last >= 2) start = check_number(L, 1);
    if (last == 3) step = check_number(L, 3);
    bool integers = start.is_integer && stop.is_integer && step.is_integer;
    mr_check_new_options(L, table, NULL, integers ? MR_I64 : MR_F32, &options);
    int64_t count = check_count(L, start, stop, step);
    if (mr_dtype_category(options.dtype) < 2 &&
        !(fabs(start.f) < 0x1p63 && fabs(stop.f) < 0x1p63 && fabs(step.f) < 0x1p63) && !integers)
        return mr_misuse(L, "arange: dtype %s cannot represent the numbers from %g to %g",
                         mr_dtype_text(options.dtype), start.f, stop.f);
    const mr_scalar numbers[2] = {start, step};
    mr_push_generated(L, &caller, MR_OP_arange, &options, 1, &count, numbers);
    return 1;
}

MR_FUNCTION(creation_linspace, "linspace",
            "mr.linspace(first: number, last: number, count: integer [, " OPTIONS "]) -> tensor",
            "Makes a 1-D tensor of `count` numbers at equal distances, including `first` and "
            "`last`; f32 unless `dtype` is given.") {
    mr_caller caller = mr_enter(L);
    mr_new_options options;
    int table;
    mr_split_options(L, 0, &table);
    const mr_scalar numbers[2] = {check_number(L, 1), check_number(L, 2)};
    int64_t count = mr_check_integer(L, 3);
    if (count < 0) return mr_misuse(L, "linspace: count is %" PRId64 ", expected 0 or more", count);
    mr_check_new_options(L, table, NULL, MR_F32, &options);
    mr_push_generated(L, &caller, MR_OP_linspace, &options, 1, &count, numbers);
    return 1;
}

MR_FUNCTION(
    creation_eye, "eye",
    "mr.eye(rows: integer [, columns: integer=rows] [, " OPTIONS "]) -> tensor",
    "Makes a matrix with ones on the diagonal and zeros elsewhere; f32 unless `dtype` is given.") {
    mr_caller caller = mr_enter(L);
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS];
    const mr_scalar numbers[2] = {{0}};
    int ndim = mr_check_new(L, "eye", 1, MR_F32, &options, shape);
    if (ndim < 1 || ndim > 2) return mr_misuse(L, "eye: %d sizes given, expected 1 or 2", ndim);
    if (ndim == 1) shape[1] = shape[0];
    int64_t numel;
    mr_raise(L, mr_shape_numel(2, shape, &numel));
    mr_push_generated(L, &caller, MR_OP_eye, &options, 2, shape, numbers);
    return 1;
}

static const mr_function *const functions[] = {
    &creation_empty_function,     &creation_zeros_function,      &creation_ones_function,
    &creation_full_function,      &creation_empty_like_function, &creation_zeros_like_function,
    &creation_ones_like_function, &creation_full_like_function,  &creation_arange_function,
    &creation_linspace_function,  &creation_eye_function,        NULL,
};

const mr_class mr_creation_class = {
    "mr",
    "Functions that make tensors. Options are in a table at the end. dtype is \"f32\", \"f64\", "
    "\"f16\", \"bf16\", \"i32\", \"i64\", \"u8\" or \"bool\". It may also be \"float\", "
    "\"double\", \"half\", \"int\", \"long\", \"byte\", \"float32\", \"float64\", \"float16\", "
    "\"bfloat16\", \"int32\", \"int64\" or \"uint8\". f16 and bf16 are computed in f32, and "
    "results are rounded once. device is \"cpu\", a device, an ordinal, \"device 1\", \"cuda:1\" "
    "or \"virtual:1\"; default: the current device. pinned=true gives host memory that the device "
    "can access. name is for messages. stream: the memory is allocated and filled in the order of "
    "this stream.",
    functions,
    NULL,
    NULL,
};

void mr_open_creation(lua_State *L) {
    mr_table_open(L, &mr_creation_class);
}
