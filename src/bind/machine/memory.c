/* mr.memory: how much memory is allocated. There is one counter for each device, and one for host memory
 * (pinned and pageable together). */
#include "bind/open.h"
#include "bind/field.h"
#include "model/observer.h"

static void push_stats(lua_State *L, const mr_memory_stats *stats) {
    lua_createtable(L, 0, 6);
    mr_set_integer(L, "live", stats->live);
    mr_set_integer(L, "reserved", stats->reserved);
    mr_set_integer(L, "peak", stats->peak);
    mr_set_integer(L, "allocations", stats->allocations);
    mr_set_integer(L, "total_allocations", stats->total_allocations);
}

/* The device at `arg`, or NULL when none is named. */
static mr_device *opt_device(lua_State *L, int arg) {
    return lua_isnoneornil(L, arg) ? NULL : mr_check_device(L, arg);
}

static void add_stats(mr_memory_stats *sum, const mr_memory_stats *stats) {
    sum->live += stats->live;
    sum->reserved += stats->reserved;
    sum->peak += stats->peak;
    sum->allocations += stats->allocations;
    sum->total_allocations += stats->total_allocations;
}

/* For one device, or for all together. */
static mr_memory_stats sum_stats(mr_machine *machine, mr_device *device) {
    mr_memory_stats sum = {0};
    if (device) return mr_device_memory(device);
    for (int i = 0; i < machine->device_count; i++) {
        mr_memory_stats stats = mr_device_memory(machine->devices[i]);
        add_stats(&sum, &stats);
    }
    return sum;
}

MR_FUNCTION(
    memory_stats, "stats", "mr.memory.stats([device: device|integer]) -> table",
    "Returns the bytes and counts of one device. `live` counts the bytes of tensors that the "
    "script holds, and `reserved` the bytes that the pool has allocated from the device. `peak` is "
    "the highest `live`. `allocations` counts the live ones, `total_allocations` all. Without a "
    "device, it returns the sums over all devices, and a list `devices` with the values of each "
    "(the first entry is device 0). `host` has live, peak and allocations of host memory.") {
    mr_machine *machine = mr_set_context(L);
    mr_device *device = opt_device(L, 1);
    int count = device ? 0 : machine->device_count;
    /* All numbers are of one moment: making the tables may free tensors. */
    mr_memory_stats *each = lua_newuserdatauv(L, (size_t)count * sizeof *each + 1, 0);
    mr_memory_stats stats = sum_stats(machine, device);
    mr_observers_learned(machine);
    mr_memory_stats host = {.live = machine->host_memory.live_bytes,
                            .peak = machine->host_memory.peak_bytes,
                            .allocations = machine->host_memory.allocations};
    for (int i = 0; i < count; i++) each[i] = mr_device_memory(machine->devices[i]);
    push_stats(L, &stats);
    if (device) return 1;
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        push_stats(L, &each[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "devices");
    lua_createtable(L, 0, 3);
    mr_set_integer(L, "live", host.live);
    mr_set_integer(L, "peak", host.peak);
    mr_set_integer(L, "allocations", host.allocations);
    lua_setfield(L, -2, "host");
    return 1;
}

MR_FUNCTION(
    memory_allocated, "allocated", "mr.memory.allocated([device: device|integer]) -> integer",
    "Returns the bytes of device memory that the script's tensors hold, on one device or on all.") {
    mr_machine *machine = mr_set_context(L);
    lua_pushinteger(L, (lua_Integer)sum_stats(machine, opt_device(L, 1)).live);
    return 1;
}

MR_FUNCTION(memory_reserved, "reserved", "mr.memory.reserved([device: device|integer]) -> integer",
            "Returns the bytes that the pool has allocated from the device, used or not, on one "
            "device or on all.") {
    mr_machine *machine = mr_set_context(L);
    mr_observers_learned(machine);
    lua_pushinteger(L, (lua_Integer)sum_stats(machine, opt_device(L, 1)).reserved);
    return 1;
}

MR_FUNCTION(memory_max_allocated, "max_allocated",
            "mr.memory.max_allocated([device: device|integer]) -> integer",
            "Returns the highest value of allocated() so far, for one device, or the sum of these "
            "values for all devices.") {
    mr_machine *machine = mr_set_context(L);
    lua_pushinteger(L, (lua_Integer)sum_stats(machine, opt_device(L, 1)).peak);
    return 1;
}

MR_FUNCTION(memory_reset_peak, "reset_peak", "mr.memory.reset_peak([device: device|integer])",
            "Sets max_allocated() and `peak` of stats() to the bytes that are allocated now, on "
            "one device, or on all devices and on the host.") {
    mr_machine *machine = mr_set_context(L);
    mr_device *device = opt_device(L, 1);
    for (int i = 0; i < machine->device_count; i++) {
        mr_memory_stats *memory = &machine->devices[i]->memory;
        if (!device || device == machine->devices[i]) memory->peak = memory->live;
    }
    if (!device) machine->host_memory.peak_bytes = machine->host_memory.live_bytes;
    return 0;
}

MR_FUNCTION(memory_empty_cache, "empty_cache", "mr.memory.empty_cache([device: device|integer])",
            "Returns memory that no tensor uses to the system, on one device or on all.") {
    mr_machine *machine = mr_set_context(L);
    mr_device *device = opt_device(L, 1);
    for (int i = 0; i < machine->device_count; i++)
        if (!device || device == machine->devices[i])
            mr_raise(L, mr_device_trim(machine->devices[i]));
    return 0;
}

static const mr_function *const functions[] = {
    &memory_stats_function,
    &memory_allocated_function,
    &memory_reserved_function,
    &memory_max_allocated_function,
    &memory_reset_peak_function,
    &memory_empty_cache_function,
    NULL,
};

const mr_class mr_memory_class = {
    "mr.memory",
    "Memory use. Freed device memory stays in the pool, in stream order, until it is reused or "
    "returned to the system.",
    functions,
    NULL,
    NULL,
};

void mr_open_memory(lua_State *L) {
    lua_createtable(L, 0, 8);
    mr_table_open(L, &mr_memory_class);
    lua_setfield(L, -2, "memory");
}
