/* Memory and events of several processes (tensor/ipc.h). */
#include <string.h>

#include "bind/tensor/creation.h"
#include "bind/explore.h"
#include "bind/machine/ipc.h"
#include "bind/open.h"
#include "tensor/ipc.h"

MR_FUNCTION(tensor_ipc_handle, "ipc_handle", "t:ipc_handle() -> handle: string, offset: integer",
            "Returns what another process needs to use the memory of t: the handle, 64 bytes from "
            "CUDA (cuIpcGetMemHandle), and the offset of t in that memory, in bytes. Send both, "
            "with the shape and the dtype, for example through a pipe; mr.from_ipc_handle or "
            "CUDA's calls in other programs take them. "
            "The tensor must have been made with ipc=true. Keep it until the other process "
            "has closed the memory. Order the work of the two processes by events: e:ipc_handle(). "
            "Not available on the virtual GPU. help(\"interop\") explains more.") {
    char handle[MR_IPC_HANDLE_BYTES];
    int64_t offset;
    mr_caller caller = mr_enter(L);
    mr_bind_explore_refuse(L, "t:ipc_handle(): " MR_OUTSIDE_NOT_EXPLORED);
    mr_raise(L, mr_tensor_ipc_handle(&caller, mr_check_tensor(L, 1), handle, &offset));
    lua_pushlstring(L, handle, sizeof handle);
    lua_pushinteger(L, (lua_Integer)offset);
    return 2;
}

const char *mr_check_ipc_handle(lua_State *L, int index, const char *what) {
    size_t size = 0;
    const char *handle = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &size) : NULL;
    if (handle && size == MR_IPC_HANDLE_BYTES) return handle;
    mr_misuse(L, "%s: expected a handle of another process, a string of %d bytes, got %s%s", what,
              MR_IPC_HANDLE_BYTES, mr_type_text(L, index), handle ? " of another length" : "");
    return NULL;
}

MR_FUNCTION(
    mr_from_ipc_handle, "from_ipc_handle",
    "mr.from_ipc_handle(handle: string, offset: integer, sizes: integer... [, {dtype: string, "
    "device: device|integer|string, name: string, stream: stream}]) -> t: tensor",
    "Returns a contiguous tensor over memory of another process, from t:ipc_handle() there or from "
    "cuIpcGetMemHandle of another program. `offset` is where it begins, in bytes. Nothing is "
    "copied, and nothing waits for the other process. The memory is closed when no tensor here "
    "uses it, at the latest by mr.memory.empty_cache(). A process cannot open a handle that it "
    "made. Not available on the virtual GPU.") {
    mr_new_options options;
    int64_t shape[MR_MAX_DIMS];
    mr_caller caller = mr_enter(L);
    const char *handle = mr_check_ipc_handle(L, 1, "from_ipc_handle");
    lua_Integer offset = mr_check_integer(L, 2);
    int ndim = mr_check_new(L, "from_ipc_handle", 3, MR_F32, &options, shape);
    if (options.placement.kind != MR_MEMORY_DEVICE || options.ipc)
        return mr_misuse(L,
                         "from_ipc_handle: expected options of memory on a device: dtype, device, "
                         "name or stream");
    mr_stream *stream = options.placement.stream;
    if (!stream) stream = options.placement.device->current;
    mr_bind_explore_refuse(L, "mr.from_ipc_handle(): " MR_OUTSIDE_NOT_EXPLORED);
    mr_tensor **slot = mr_new_tensor(L);
    mr_raise(L, mr_tensor_from_ipc_handle(&caller, handle, offset, stream, options.dtype, ndim,
                                          shape, slot));
    if (options.name) mr_raise(L, mr_tensor_set_name(*slot, options.name));
    return 1;
}

MR_FUNCTION(
    event_ipc_handle, "ipc_handle", "e:ipc_handle() -> handle: string",
    "Returns a handle for another process to use this event: 64 bytes from CUDA "
    "(cuIpcGetEventHandle), as from Event.ipc_handle() of PyTorch. mr.event{ipc=handle} or "
    "Event.from_ipc_handle takes it there. Both processes may record the event and wait for it. "
    "The event must have been made with interprocess=true; keep it as long as the other process "
    "uses it. An event that was never recorded belongs to the current device from now on. Not on "
    "the virtual GPU.") {
    const mr_outside_slots *slots;
    char handle[MR_IPC_HANDLE_BYTES], text[80];
    mr_caller caller = mr_enter(L);
    mr_event *event = mr_check_event(L, 1);
    mr_raise(L, mr_machine_ready(caller.machine));
    mr_raise(L, mr_outside_of(caller.machine, "ipc_handle", MR_NO_IPC_EVENTS, &slots));
    if (!event->interprocess && event->shared)
        return mr_misuse(L,
                         "ipc_handle: %s belongs to another process: pass on the handle that this "
                         "one got",
                         mr_event_describe(event, text, sizeof text));
    if (!event->interprocess)
        return mr_misuse(L,
                         "ipc_handle: %s is of this process alone: make it with "
                         "mr.event{interprocess=true}",
                         mr_event_describe(event, text, sizeof text));
    mr_raise(L, slots->event_handle(event, caller.machine->current_device, handle));
    mr_share_event(&caller, event, "ipc_handle");
    lua_pushlstring(L, handle, sizeof handle);
    return 1;
}

/* --- docs, open --------------------------------------------------------------------------------- */

static const mr_function *const methods[] = {&tensor_ipc_handle_function, NULL};
const mr_class mr_ipc_class = {"tensor", "Memory of several processes.", methods, NULL,
                               &mr_kind_tensor};

static const mr_function *const functions[] = {&mr_from_ipc_handle_function, NULL};
const mr_class mr_ipc_functions_class = {"mr", "Memory of other processes.", functions, NULL, NULL};

static const mr_function *const of_events[] = {&event_ipc_handle_function, NULL};
const mr_class mr_ipc_event_class = {"event", "Events of several processes.", of_events, NULL,
                                     &mr_kind_event};

void mr_open_ipc(lua_State *L) {
    mr_class_extend(L, &mr_ipc_class);
    mr_class_extend(L, &mr_ipc_event_class);
    mr_table_open(L, &mr_ipc_functions_class);
}
