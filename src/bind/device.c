/* The userdata of a device. Devices live as long as the machine, so the box owns nothing. */
#include <stdlib.h>
#include <string.h>

#include "bind/internal.h"
#include "bind/registry.h"
#include "model/backend.h"

/* --- state, check, constructor ------------------------------------------------------------------ */

static mr_device *device_at(lua_State *L, int arg) {
    return *(mr_device **)mr_check(L, arg, &mr_device_class);
}

mr_device *mr_device_named(lua_State *L, const char *text) {
    static const char *const words[] = {"cuda", "virtual", "device"};
    mr_machine *machine = mr_bind_machine(L);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(text, words[i], length) != 0) continue;
        if (!text[length]) return machine->current_device;
        if (!strchr(": ", text[length])) continue;
        char *end;
        const char *digits = text + length + 1;
        long ordinal = strtol(digits, &end, 10);
        if (*digits < '0' || *digits > '9' || *end || ordinal >= machine->device_count)
            mr_misuse(L, "there is no device \"%.40s\": this machine has %d, from %s:0", text,
                      machine->device_count, words[i]);
        return machine->devices[ordinal];
    }
    return NULL;
}

mr_device *mr_check_device(lua_State *L, int arg) {
    mr_device **box = mr_test(L, arg, &mr_device_class);
    if (box) return *box;
    if (lua_type(L, arg) == LUA_TSTRING) {
        mr_device *device = mr_device_named(L, lua_tostring(L, arg));
        if (device) return device;
    }
    if (lua_type(L, arg) != LUA_TNUMBER)
        mr_bad_argument(L, arg, "a device or its ordinal, or a name such as \"cuda:0\"");
    mr_machine *machine = mr_bind_machine(L);
    lua_Integer ordinal = mr_check_integer(L, arg);
    if (ordinal < 0 || ordinal >= machine->device_count)
        mr_raise(L, mr_fail(MR_CODE_INVALID_DEVICE,
                            "there is no device %lld: this machine has %d, numbered from 0",
                            (long long)ordinal, machine->device_count));
    return machine->devices[ordinal];
}

void mr_push_device(lua_State *L, mr_device *device) {
    if (mr_registry_push(L, device)) return;
    mr_device **box = mr_new(L, &mr_device_class, sizeof *box);
    *box = device;
    mr_registry_add(L, device);
}

/* --- methods ------------------------------------------------------------------------------------ */

MR_FUNCTION(device_synchronize, "synchronize", "d:synchronize()",
            "The host waits for all streams of this device (R10); as mr.synchronize(d).") {
    mr_enter(L);
    mr_raise(L, mr_device_synchronize(device_at(L, 1)));
    return 0;
}

MR_FUNCTION(device_can_access_peer, "can_access_peer",
            "d:can_access_peer(peer: device|integer) -> possible: boolean",
            "Whether kernels of this device could use memory of the other directly (R59).") {
    mr_enter(L);
    lua_pushboolean(L, mr_device_can_access_peer(device_at(L, 1), mr_check_device(L, 2)));
    return 1;
}

MR_FUNCTION(
    device_enable_peer_access, "enable_peer_access", "d:enable_peer_access(peer: device|integer)",
    "Lets this device use the other's memory directly, one way: copies between them no longer go "
    "through the host. Twice is an error, peer-access-already-enabled (R59).") {
    mr_enter(L);
    mr_raise(L, mr_device_enable_peer_access(device_at(L, 1), mr_check_device(L, 2)));
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
    {"index", "integer", "CUDA's ordinal; counts from 0.", get_index},
    {"name", "string", "What the device is.", get_name},
    {"backend", "string", "\"virtual\" or \"cuda\".", get_backend},
    {"sm_count", "integer", "Streaming multiprocessors.", get_sm_count},
    {"total_memory", "integer", "Bytes of device memory.", get_total_memory},
    {"compute_capability", "string", "\"9.0\" on an H200.", get_compute_capability},
    {"max_threads_per_block", "integer", "Threads.", get_max_threads_per_block},
    {"max_threads_per_sm", "integer", "Threads resident on one SM.", get_max_threads_per_sm},
    {"max_blocks_per_sm", "integer", "Blocks resident on one SM.", get_max_blocks_per_sm},
    {"max_resident_grids", "integer", "Kernels that can run at once (R53).",
     get_max_resident_grids},
    {"registers_per_sm", "integer", "32-bit registers of one SM.", get_registers_per_sm},
    {"shared_per_sm", "integer", "Bytes of shared memory of one SM.", get_shared_per_sm},
    {"shared_per_block", "integer", "Bytes of shared memory that one block can have.",
     get_shared_per_block},
    {"warp_size", "integer", "Threads of a warp.", get_warp_size},
    {"async_engine_count", "integer", "Copies that can run beside kernels (R25).",
     get_async_engine_count},
    {"l2_bytes", "integer", "Bytes of L2 cache.", get_l2_bytes},
    {"memory_bandwidth", "number", "Bytes per second, read and write together.",
     get_memory_bandwidth},
    {NULL, NULL, NULL, NULL}};

static const mr_function *const device_functions[] = {
    &device_synchronize_function, &device_can_access_peer_function,
    &device_enable_peer_access_function, &device_tostring_function, NULL};

const mr_class mr_device_class = {"device",
                                  "One GPU. mr.device(i) and mr.current_device() give it.",
                                  device_functions, device_properties};

void mr_open_device(lua_State *L, mr_machine *machine) {
    mr_registry_open(L);
    mr_class_open(L, machine, &mr_device_class);
}
