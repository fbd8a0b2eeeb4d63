/* The userdata of a device. Devices live as long as the machine, so the box owns nothing. */
#include "bind/open.h"
#include "bind/registry.h"
#include "model/backend.h"

/* --- state, check, constructor ------------------------------------------------------------------ */

static mr_device *device_at(lua_State *L, int arg) {
    return *(mr_device **)mr_check(L, arg, &mr_kind_device);
}

/* --- methods ------------------------------------------------------------------------------------ */

MR_FUNCTION(device_synchronize, "synchronize", "d:synchronize()",
            "The host waits for all streams of this device (R10). The same as mr.synchronize(d).") {
    mr_caller caller = mr_enter(L);
    mr_raise(L, mr_device_synchronize(&caller, device_at(L, 1)));
    return 0;
}

MR_FUNCTION(device_can_access_peer, "can_access_peer",
            "d:can_access_peer(peer: device|integer) -> possible: boolean",
            "Returns whether kernels of this device can access the memory of the other device "
            "directly (R59).") {
    mr_set_context(L);
    mr_device *device = device_at(L, 1), *peer = mr_check_device(L, 2);
    lua_pushboolean(L, mr_device_can_access_peer(device, peer));
    return 1;
}

MR_FUNCTION(device_enable_peer_access, "enable_peer_access",
            "d:enable_peer_access(peer: device|integer)",
            "Lets kernels of this device access the memory of the other device directly. This is "
            "for one direction only. Copies between the two devices then no longer go through the "
            "host. A second call is an error: peer-access-already-enabled (R59).") {
    mr_set_context(L);
    mr_device *device = device_at(L, 1), *peer = mr_check_device(L, 2);
    mr_raise(L, mr_device_enable_peer_access(device, peer));
    return 0;
}

MR_FUNCTION(device_tostring, "__tostring", "", "\"device 0: NVIDIA H200 (virtual)\".") {
    mr_device *device = device_at(L, 1);
    lua_pushfstring(L, "device %d: %s", device->index, device->properties.name);
    return 1;
}

/* --- properties --------------------------------------------------------------------------------- */

#define INTEGER_PROPERTY(field)                                                                    \
    static int get_##field(lua_State *L) {                                                         \
        lua_pushinteger(L, (lua_Integer)device_at(L, 1)->properties.field);                        \
        return 1;                                                                                  \
    }

INTEGER_PROPERTY(sm_count)
INTEGER_PROPERTY(total_memory)
INTEGER_PROPERTY(max_threads_per_block)
INTEGER_PROPERTY(max_threads_per_sm)
INTEGER_PROPERTY(max_blocks_per_sm)
INTEGER_PROPERTY(max_resident_grids)
INTEGER_PROPERTY(registers_per_sm)
INTEGER_PROPERTY(shared_per_sm)
INTEGER_PROPERTY(shared_per_block)
INTEGER_PROPERTY(warp_size)
INTEGER_PROPERTY(async_engine_count)
INTEGER_PROPERTY(l2_bytes)
INTEGER_PROPERTY(clock_hz)

static int get_index(lua_State *L) {
    lua_pushinteger(L, device_at(L, 1)->index);
    return 1;
}

static int get_name(lua_State *L) {
    lua_pushstring(L, device_at(L, 1)->properties.name);
    return 1;
}

static int get_backend(lua_State *L) {
    lua_pushstring(L, device_at(L, 1)->machine->backend->name);
    return 1;
}

static int get_compute_capability(lua_State *L) {
    const mr_device_properties *p = &device_at(L, 1)->properties;
    lua_pushfstring(L, "%d.%d", p->compute_major, p->compute_minor);
    return 1;
}

static int get_memory_bandwidth(lua_State *L) {
    lua_pushnumber(L, device_at(L, 1)->properties.memory_bandwidth);
    return 1;
}

static const mr_property device_properties[] = {
    {"index", "integer", "CUDA's ordinal, from 0.", get_index},
    {"name", "string", "The name of the device model.", get_name},
    {"backend", "string", "\"virtual\" or \"cuda\".", get_backend},
    {"sm_count", "integer", "The number of streaming multiprocessors.", get_sm_count},
    {"total_memory", "integer", "Bytes of device memory.", get_total_memory},
    {"compute_capability", "string", "\"9.0\" on an H200.", get_compute_capability},
    {"max_threads_per_block", "integer", "Threads.", get_max_threads_per_block},
    {"max_threads_per_sm", "integer", "Threads that can be resident on one SM.",
     get_max_threads_per_sm},
    {"max_blocks_per_sm", "integer", "Blocks that can be resident on one SM.",
     get_max_blocks_per_sm},
    {"max_resident_grids", "integer", "Kernels that can run at the same time (R53).",
     get_max_resident_grids},
    {"clock_hz", "integer", "The highest clock of the multiprocessors, in hertz.", get_clock_hz},
    {"registers_per_sm", "integer", "32-bit registers of one SM.", get_registers_per_sm},
    {"shared_per_sm", "integer", "Bytes of shared memory of one SM.", get_shared_per_sm},
    {"shared_per_block", "integer", "Bytes of shared memory that one block can have.",
     get_shared_per_block},
    {"warp_size", "integer", "Threads of a warp.", get_warp_size},
    {"async_engine_count", "integer", "Copies that can run at the same time as kernels (R25).",
     get_async_engine_count},
    {"l2_bytes", "integer", "Bytes of L2 cache.", get_l2_bytes},
    {"memory_bandwidth", "number", "Bytes per second, reads and writes together.",
     get_memory_bandwidth},
    {NULL, NULL, NULL, NULL}};

static const mr_function *const device_functions[] = {
    &device_synchronize_function, &device_can_access_peer_function,
    &device_enable_peer_access_function, &device_tostring_function, NULL};

const mr_class mr_device_class = {"device",
                                  "One GPU. mr.device(i) and mr.current_device() return devices.",
                                  device_functions, device_properties, &mr_kind_device};

void mr_open_device(lua_State *L) {
    mr_registry_open(L);
    mr_class_open(L, &mr_device_class);
}
