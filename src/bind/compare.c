/* Comparison of whole tensors: the host gets one boolean. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bind/open.h"
#include "bind/tensor.h"

typedef struct {
    bool exact;
    double relative, absolute;
    bool equal_nan;
} tolerance;

static bool both_in_one_place(const mr_tensor *a, const mr_tensor *b) {
    if (mr_tensor_on_host(a) || mr_tensor_on_host(b))
        return mr_tensor_on_host(a) && mr_tensor_on_host(b);
    return a->storage->device == b->storage->device;
}

void mr_check_same_place(lua_State *L, const char *what, const mr_tensor *a, const mr_tensor *b) {
    char name_a[160], name_b[160], device_a[24], device_b[24];
    if (both_in_one_place(a, b)) return;
    snprintf(device_a, sizeof device_a, "device %d",
             mr_tensor_on_host(a) ? 0 : a->storage->device->index);
    snprintf(device_b, sizeof device_b, "device %d",
             mr_tensor_on_host(b) ? 0 : b->storage->device->index);
    mr_misuse(L, "%s: %s is on %s and %s on %s", what, mr_tensor_describe(a, name_a, sizeof name_a),
              mr_tensor_on_host(a) ? "the host" : device_a,
              mr_tensor_describe(b, name_b, sizeof name_b),
              mr_tensor_on_host(b) ? "the host" : device_b);
}

static bool values_agree(const tolerance *t, bool floating, mr_scalar a, mr_scalar b) {
    if (!floating && t->exact) return a.i == b.i;
    if (a.f == b.f) return true; /* equal infinities have no difference to measure */
    if (t->exact) return false;
    if (isnan(a.f) || isnan(b.f)) return t->equal_nan && isnan(a.f) && isnan(b.f);
    if (isinf(a.f) || isinf(b.f)) return false;
    return fabs(a.f - b.f) <= t->absolute + t->relative * fabs(b.f);
}

/* Whether `n` dense elements of floats certainly agree: loops without a way out, for pieces of which most agree. Where this
 * says false, values_agree decides. Sums and products that overflow, and values that are not finite, are left to it. */
#define SURELY_AGREE(name, T)                                                                      \
    static bool name(const tolerance *t, const T *a, const T *b, int64_t n) {                      \
        int differs = 0;                                                                           \
        if (t->exact) {                                                                            \
            for (int64_t i = 0; i < n; i++) differs |= !(a[i] == b[i]);                            \
            return !differs;                                                                       \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            double x = (double)a[i], y = (double)b[i],                                             \
                   limit = t->absolute + t->relative * fabs(y);                                    \
            differs |= !(fabs(x - y) <= limit) | !(limit < (double)INFINITY);                      \
        }                                                                                          \
        return !differs;                                                                           \
    }
SURELY_AGREE(surely_agree_f32, float)
SURELY_AGREE(surely_agree_f64, double)

enum { PIECE = 1024 };

static bool piece_agrees(const tolerance *t, mr_dtype dtype, const char *a, const char *b,
                         int64_t n) {
    size_t size = mr_dtype_size(dtype);
    bool floating = mr_dtype_category(dtype) == 2;
    if (!floating && t->exact) return memcmp(a, b, (size_t)n * size) == 0;
    if (dtype == MR_F32 && surely_agree_f32(t, (const float *)a, (const float *)b, n)) return true;
    if (dtype == MR_F64 && surely_agree_f64(t, (const double *)a, (const double *)b, n))
        return true;
    for (int64_t i = 0; i < n; i++, a += size, b += size)
        if (!values_agree(t, floating, mr_dtype_load(dtype, a), mr_dtype_load(dtype, b)))
            return false;
    return true;
}

static bool dense_tensors_agree(lua_State *L, const mr_machine *machine, const tolerance *t,
                                const mr_tensor *a, const mr_tensor *b) {
    const char *pa = mr_tensor_data(a), *pb = mr_tensor_data(b);
    size_t size = mr_dtype_size((mr_dtype)a->dtype);
    for (int64_t first = 0; first < a->numel; first += PIECE) {
        int64_t rest = a->numel - first, n = rest < PIECE ? rest : PIECE;
        size_t offset = (size_t)first * size;
        mr_check_stop(L, machine, first, "comparing two tensors");
        if (!piece_agrees(t, (mr_dtype)a->dtype, pa + offset, pb + offset, n)) return false;
    }
    return true;
}

/* Host tensors of one shape, any strides. */
static bool tensors_agree(lua_State *L, const mr_machine *machine, const tolerance *t,
                          const mr_tensor *a, const mr_tensor *b) {
    if (a->contiguous && b->contiguous && a->dtype == b->dtype)
        return dense_tensors_agree(L, machine, t, a, b);
    const char *pa = mr_tensor_data(a), *pb = mr_tensor_data(b);
    int64_t at[MR_MAX_DIMS] = {0};
    int64_t size_a = (int64_t)mr_dtype_size((mr_dtype)a->dtype);
    int64_t size_b = (int64_t)mr_dtype_size((mr_dtype)b->dtype);
    bool floating =
        mr_dtype_category((mr_dtype)a->dtype) == 2 || mr_dtype_category((mr_dtype)b->dtype) == 2;
    for (int64_t n = a->numel; n > 0; n--) {
        mr_check_stop(L, machine, n, "comparing two tensors");
        if (!values_agree(t, floating, mr_dtype_load((mr_dtype)a->dtype, pa),
                          mr_dtype_load((mr_dtype)b->dtype, pb)))
            return false;
        for (int d = a->ndim - 1; d >= 0; d--) {
            pa += a->stride[d] * size_a;
            pb += b->stride[d] * size_b;
            if (++at[d] < a->shape[d]) break;
            pa -= a->stride[d] * size_a * a->shape[d];
            pb -= b->stride[d] * size_b * b->shape[d];
            at[d] = 0;
        }
    }
    return true;
}

MR_FUNCTION(compare_equal, "equal", "mr.equal(a: tensor, b: tensor) -> boolean",
            "Returns whether both tensors have the same shape and the same values; NaN is not "
            "equal to anything. The values of device tensors are copied to the host in the current "
            "stream, and the host waits for that stream.") {
    static const tolerance exact = {.exact = true};
    mr_caller caller = mr_enter_as(L, "equal");
    mr_tensor *a = mr_check_tensor(L, 1), *b = mr_check_tensor(L, 2);
    lua_settop(L, 2);
    mr_check_same_place(L, "equal", a, b);
    bool same = mr_same_shape(a, b);
    if (same) {
        a = mr_push_on_host(L, &caller, a);
        b = mr_push_on_host(L, &caller, b);
        same = tensors_agree(L, caller.machine, &exact, a, b);
        mr_let_go(L, 3);
        mr_let_go(L, 4);
    }
    lua_pushboolean(L, same);
    return 1;
}

/* Pushes a view of the values of the tensor at `arg` on the host, broadcast to `shape`. */
static mr_tensor *push_expanded(lua_State *L, const mr_caller *caller, int arg, int ndim,
                                const int64_t *shape) {
    mr_tensor *values = mr_push_on_host(L, caller, mr_check_tensor(L, arg));
    mr_tensor **slot = mr_new_tensor(L);
    mr_raise(L, mr_tensor_expand(caller, values, ndim, shape, slot));
    mr_let_go(L, -2); /* the view has a handle of its own */
    lua_remove(L, -2);
    return *slot;
}

MR_FUNCTION(compare_allclose, "allclose",
            "mr.allclose(a: tensor, b: tensor [, {rtol: number=1e-5, atol: number=1e-8, equal_nan: "
            "boolean=false}]) -> boolean",
            "Returns whether |a - b| <= atol + rtol * |b| for all elements, after broadcasting. "
            "The values of device tensors are copied to the host in the current stream, and the "
            "host waits for that stream.") {
    static const char *const known[] = {"rtol", "atol", "equal_nan", NULL};
    mr_caller caller = mr_enter_as(L, "allclose");
    mr_tensor *a = mr_check_tensor(L, 1), *b = mr_check_tensor(L, 2);
    tolerance t = {.relative = 1e-5, .absolute = 1e-8};
    int64_t shape[MR_MAX_DIMS];
    int ndim;
    mr_option_slots options = mr_check_options(L, 3, known);
    t.relative = mr_option_number(L, &options, "rtol", t.relative);
    t.absolute = mr_option_number(L, &options, "atol", t.absolute);
    t.equal_nan = mr_option_boolean(L, &options, "equal_nan", false);
    mr_check_same_place(L, "allclose", a, b);
    mr_raise(L, mr_shape_broadcast("allclose", a->ndim, a->shape, b->ndim, b->shape, &ndim, shape));
    a = push_expanded(L, &caller, 1, ndim, shape);
    b = push_expanded(L, &caller, 2, ndim, shape);
    bool close = tensors_agree(L, caller.machine, &t, a, b);
    mr_let_go(L, -1);
    mr_let_go(L, -2);
    lua_pushboolean(L, close);
    return 1;
}

static const mr_function *const functions[] = {&compare_equal_function, &compare_allclose_function,
                                               NULL};

const mr_class mr_compare_class = {"mr", "Comparing whole tensors.", functions, NULL, NULL};
const mr_class mr_compare_methods_class = {"tensor", "Comparing whole tensors.", functions, NULL,
                                           &mr_kind_tensor};

void mr_open_compare(lua_State *L) {
    mr_class_extend(L, &mr_compare_methods_class);
    mr_table_open(L, &mr_compare_class);
}
