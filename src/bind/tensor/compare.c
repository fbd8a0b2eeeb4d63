/* Comparison of whole tensors: the host gets one boolean. */
#include <stdio.h>

#include "bind/open.h"
#include "bind/ops/row.h"
#include "bind/tensor/tensor.h"
#include "ops/agree.h"

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

/* Host tensors of one shape, any strides. */
static bool tensors_agree(lua_State *L, const mr_machine *machine, const mr_tolerance *t,
                          const mr_tensor *a, const mr_tensor *b) {
    enum { PORTION = 1 << 20 }; /* elements between two looks at Ctrl-C */
    for (int64_t first = 0; first < a->numel; first += PORTION) {
        int64_t rest = a->numel - first;
        mr_check_stop(L, machine, first, "comparing two tensors");
        if (!mr_tensors_agree(t, a, b, first, first + (rest < PORTION ? rest : PORTION)))
            return false;
    }
    return true;
}

MR_FUNCTION(compare_equal, "equal", "mr.equal(a: tensor, b: tensor) -> boolean",
            "Returns whether both tensors have the same shape and the same values; NaN is not "
            "equal to anything. The values of device tensors are copied to the host in the current "
            "stream, and the host waits for that stream.") {
    static const mr_tolerance exact = {.exact = true};
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
    mr_tolerance t = {.relative = 1e-5, .absolute = 1e-8};
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
