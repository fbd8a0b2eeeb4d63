/* t:peek(): the bytes of a tensor as they are at this moment, on a virtual GPU.
 *
 * Easiest to break: it is not an access. It submits nothing, tells no observer, and advances the device only to the
 * host's present time. */
#include <string.h>

#include "bind/tensor/creation.h"
#include "bind/explore.h"
#include "bind/open.h"
#include "bind/ops/shape.h"
#include "bind/hazard/waits.h"
#include "model/backend.h"
#include "model/capture.h"

static void see_nothing(void *context, const mr_pending *pending) {
    (void)context, (void)pending;
}

/* The elements of a strided tensor, one after the other. */
static void gather(const mr_tensor *t, char *to) {
    size_t size = mr_dtype_size((mr_dtype)t->dtype);
    const char *from = mr_tensor_data(t);
    int64_t index[MR_MAX_DIMS] = {0}, at = 0;
    for (int64_t n = 0; n < t->numel; n++) {
        memcpy(to + (size_t)n * size, from + at * (int64_t)size, size);
        for (int d = t->ndim - 1; d >= 0; d--) {
            at += t->stride[d];
            if (++index[d] < t->shape[d]) break;
            at -= index[d] * t->stride[d];
            index[d] = 0;
        }
    }
}

MR_FUNCTION(tensor_peek, "peek", "t:peek() -> tensor",
            "Returns the values of t as they are now, half-written ones included, as a new host "
            "tensor. Unlike "
            "cpu() it submits nothing, waits for nothing and orders nothing, and does not count as "
            "an access for the hazard checker. Only on the virtual GPU: real hardware does not "
            "show its memory without an "
            "access.") {
    mr_caller caller = mr_enter(L);
    mr_tensor *t = mr_check_tensor(L, 1);
    if (!caller.machine->backend->simulator)
        mr_misuse(L, "peek: only the virtual GPU can show its memory without an access: use "
                     "t:cpu(), or run with --device virtual");
    mr_bind_explore_refuse(L, "t:peek(), which is not an access, so mr.explore does not try its "
                              "orders: use t:cpu(), or mr.replay(schedule, fn) to look around");
    mr_raise(L, mr_capture_ask_host(&caller, MR_ASK_ACCESS, "peek", NULL, NULL, NULL));
    t = mr_check_tensor(L, 1); /* checks again: the call above may run code that frees it */
    mr_bind_waits_looks(L, "peek", t->storage);
    /* afterwards the results of complete work are in memory */
    mr_machine_pending(caller.machine, see_nothing, NULL);
    mr_observers_learned(caller.machine);
    mr_new_options options = {.dtype = (mr_dtype)t->dtype,
                              .placement = {.kind = MR_MEMORY_PAGEABLE}};
    mr_tensor *seen = mr_push_empty(L, &caller, &options, t->ndim, t->shape);
    t = mr_check_tensor(L, 1); /* a finalizer may have freed it */
    if (t->contiguous)
        memcpy(mr_tensor_data(seen), mr_tensor_data(t),
               (size_t)t->numel * mr_dtype_size((mr_dtype)t->dtype));
    else gather(t, mr_tensor_data(seen));
    return 1;
}

static const mr_function *const functions[] = {&tensor_peek_function, NULL};

const mr_class mr_peek_class = {"tensor", "Looking at device memory.", functions, NULL,
                                &mr_kind_tensor};

void mr_open_peek(lua_State *L) {
    mr_class_extend(L, &mr_peek_class);
}
