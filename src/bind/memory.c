/* mr.memory: what is allocated, where. Device memory has one account for each device; host memory,
 * pinned and pageable together, has one. */
#include "bind/tensor.h"

static void set_count(lua_State *L, const char *name, uint64_t count) {
    lua_pushinteger(L, (lua_Integer)count);
    lua_setfield(L, -2, name);
}

static void push_stats(lua_State *L, const mr_memory_stats *stats) {
    lua_createtable(L, 0, 6);
    set_count(L, "live", stats->live);
    set_count(L, "reserved", stats->reserved);
    set_count(L, "peak", stats->peak);
    set_count(L, "allocations", stats->allocations);
    set_count(L, "total_allocations", stats->total_allocations);
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

/* Of one device, or of all together. */
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
    "Bytes and counts of one device: `live` (of tensors that the script holds), `reserved` (what "
    "the pool has from the device), `peak` (the highest `live`), `allocations` (live ones) and "
    "`total_allocations`. With no device the sums over all, a list `devices` with those of each "
    "(the "
    "first is device 0) and `host`, with live, peak and allocations of host memory.") {
    mr_machine *machine = mr_enter(L);
    mr_device *device = opt_device(L, 1);
    mr_memory_stats stats = sum_stats(machine, device);
    push_stats(L, &stats);
    if (device) return 1;
    lua_createtable(L, machine->device_count, 0);
    for (int i = 0; i < machine->device_count; i++) {
        stats = mr_device_memory(machine->devices[i]);
        push_stats(L, &stats);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "devices");
    lua_createtable(L, 0, 3);
    set_count(L, "live", machine->host_live_bytes);
    set_count(L, "peak", machine->host_peak_bytes);
    set_count(L, "allocations", machine->host_allocations);
    lua_setfield(L, -2, "host");
    return 1;
}

MR_FUNCTION(memory_allocated, "allocated",
            "mr.memory.allocated([device: device|integer]) -> integer",
            "Bytes of device memory that the script's tensors hold, on one device or on all.") {
    lua_pushinteger(L, (lua_Integer)sum_stats(mr_enter(L), opt_device(L, 1)).live);
    return 1;
}

MR_FUNCTION(memory_reserved, "reserved", "mr.memory.reserved([device: device|integer]) -> integer",
            "Bytes that the pool has from the device, used or not, on one device or on all.") {
    lua_pushinteger(L, (lua_Integer)sum_stats(mr_enter(L), opt_device(L, 1)).reserved);
    return 1;
}

MR_FUNCTION(memory_max_allocated, "max_allocated",
            "mr.memory.max_allocated([device: device|integer]) -> integer",
            "The highest that allocated() has been, on one device, or the sum of these over all.") {
    lua_pushinteger(L, (lua_Integer)sum_stats(mr_enter(L), opt_device(L, 1)).peak);
    return 1;
}

MR_FUNCTION(memory_empty_cache, "empty_cache", "mr.memory.empty_cache([device: device|integer])",
            "Gives memory that no tensor uses back to the system, on one device or on all.") {
    mr_machine *machine = mr_enter(L);
    mr_device *device = opt_device(L, 1);
    for (int i = 0; i < machine->device_count; i++)
        if (!device || device == machine->devices[i])
            mr_raise(L, mr_device_trim(machine->devices[i]));
    return 0;
}

static const mr_function *const functions[] = {
    &memory_stats_function,         &memory_allocated_function,   &memory_reserved_function,
    &memory_max_allocated_function, &memory_empty_cache_function, NULL,
};

const mr_class mr_memory_class = {
    "mr.memory",
    "What is allocated. Freed device memory stays in the pool, in stream order, until it is used "
    "again "
    "or given back.",
    functions,
    NULL,
};

void mr_open_memory(lua_State *L, mr_machine *machine) {
    lua_createtable(L, 0, 8);
    mr_table_open(L, machine, &mr_memory_class);
    lua_setfield(L, -2, "memory");
}
