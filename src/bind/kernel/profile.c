/* k:profile(): counts of a kernel's launches on the virtual GPU, as tables. */
#include <stdio.h>
#include <string.h>

#include "bind/kernel/kernel.h"
#include "bind/explore.h"
#include "bind/field.h"
#include "bind/open.h"
#include "bind/hazard/waits.h"
#include "model/backend.h"
#include "model/observer.h"
#include "ops/kernel_profile.h"

/* Adds the counts of a whole kernel, of one class or of one line to the table at the top. */
static void set_counts(lua_State *L, const mr_ptx_counts *c) {
    mr_set_integer(L, "instructions", c->warps);
    mr_set_number(L, "active_lanes", c->executed ? (double)c->lanes / (double)c->executed : 0);
    if (!c->requests) return;
    mr_set_integer(L, "requests", c->requests);
    mr_set_integer(L, "bytes", c->bytes);
    if (c->sectors) {
        mr_set_integer(L, "sectors", c->sectors);
        mr_set_number(L, "sectors_per_request", (double)c->sectors / (double)c->cached);
        mr_set_number(L, "efficiency", (double)c->least / (double)c->sectors);
    }
    if (c->wavefronts) mr_set_number(L, "bank_passes", (double)c->wavefronts / (double)c->banked);
}

/* The same for loads and for stores, where there are any: their averages differ. */
static void set_moves(lua_State *L, const mr_ptx_counts *loads, const mr_ptx_counts *stores) {
    static const char *const names[] = {"loads", "stores"};
    const mr_ptx_counts *const counts[] = {loads, stores};
    for (int i = 0; i < 2; i++) {
        if (!counts[i]->requests) continue;
        lua_newtable(L);
        set_counts(L, counts[i]);
        lua_setfield(L, -2, names[i]);
    }
}

static void add(mr_ptx_counts *sum, const mr_ptx_counts *c) {
    sum->warps += c->warps;
    sum->executed += c->executed;
    sum->lanes += c->lanes;
}

static void push_classes(lua_State *L, const mr_ptx_profile *profile, mr_ptx_counts *out_sum) {
    *out_sum = (mr_ptx_counts){0};
    lua_newtable(L);
    for (int i = 0; i < PTX_CLASS_COUNT; i++) {
        mr_ptx_counts counts, loads, stores;
        mr_ptx_profile_class(profile, (ptx_class)i, &counts);
        mr_ptx_profile_moves(profile, (ptx_class)i, &loads, &stores);
        add(out_sum, &counts);
        if (!counts.warps) continue;
        lua_newtable(L);
        set_counts(L, &counts);
        set_moves(L, &loads, &stores);
        lua_setfield(L, -2, mr_ptx_class_text((ptx_class)i));
    }
}

static void push_times(lua_State *L, const mr_kernel_times *t) {
    lua_newtable(L);
#define X(name, text) mr_set_number(L, text, t->name * 1e3);
    MR_KERNEL_BOUNDS(X)
#undef X
}

/* ---- as text */

static const char HEAD[] = " instructions  lanes  sectors/request  bank passes";

static double field(lua_State *L, int table, const char *key) {
    lua_getfield(L, table, key);
    double value = lua_isnumber(L, -1) ? lua_tonumber(L, -1) : 0;
    lua_pop(L, 1);
    return value;
}

static void put_row(lua_State *L, int row, mr_buffer *out) {
    double sectors = field(L, row, "sectors_per_request"), passes = field(L, row, "bank_passes");
    mr_buffer_printf(out, "%13.0f %6.1f", field(L, row, "instructions"),
                     field(L, row, "active_lanes"));
    if (sectors > 0) mr_buffer_printf(out, " %16.2f", sectors);
    else if (passes > 0) mr_buffer_printf(out, " %16s", "");
    if (passes > 0) mr_buffer_printf(out, " %12.2f", passes);
}

static void put_place(lua_State *L, int row, mr_buffer *out) {
    lua_getfield(L, row, "file");
    const char *file = luaL_optstring(L, -1, "?"), *slash = strrchr(file, '/');
    char place[40];
    snprintf(place, sizeof place, "%.24s:%d", slash ? slash + 1 : file, (int)field(L, row, "line"));
    mr_buffer_printf(out, "%-30s", place);
    lua_pop(L, 1);
}

static int row_text(lua_State *L) {
    mr_buffer *out = mr_push_buffer(L);
    put_place(L, 1, out);
    put_row(L, 1, out);
    mr_buffer_to_text(L);
    return 1;
}

static void put_rows(lua_State *L, int list, mr_buffer *out) {
    mr_buffer_printf(out, "%-30s%s", "line", HEAD);
    for (lua_Integer i = 1, n = (lua_Integer)lua_rawlen(L, list); i <= n; i++) {
        lua_rawgeti(L, list, i);
        int row = lua_gettop(L);
        mr_buffer_puts(out, "\n");
        put_place(L, row, out);
        put_row(L, row, out);
        lua_pop(L, 1);
    }
}

static int rows_text(lua_State *L) {
    put_rows(L, 1, mr_push_buffer(L));
    mr_buffer_to_text(L);
    return 1;
}

static int profile_text(lua_State *L) {
    lua_settop(L, 1);
    lua_getfield(L, 1, "bound_by");
    lua_getfield(L, 1, "limited_by");
    lua_getfield(L, 1, "list");
    mr_buffer *out = mr_push_buffer(L);
    mr_buffer_printf(out,
                     "launches: %.0f; blocks: %.0f, %.0f of them counted\n"
                     "a launch takes %.6f ms, bound by %s; occupancy %.0f %%, limited by %s\n",
                     field(L, 1, "launches"), field(L, 1, "launched_blocks"), field(L, 1, "blocks"),
                     field(L, 1, "ms"), luaL_optstring(L, 2, "?"), 100 * field(L, 1, "occupancy"),
                     luaL_optstring(L, 3, "?"));
    if (lua_istable(L, 4)) put_rows(L, 4, out);
    mr_buffer_to_text(L);
    return 1;
}

/* The table at the top has that text from now on. */
static void set_text(lua_State *L, const char *name, lua_CFunction text) {
    if (luaL_newmetatable(L, name)) {
        mr_push_module(L);
        lua_pushcclosure(L, text, 1);
        lua_setfield(L, -2, "__tostring");
    }
    lua_setmetatable(L, -2);
}

/* ---- lines */

#define MOST_LINES 4096

static void push_lines(lua_State *L, const mr_kernel_box *kernel, const mr_ptx_profile *profile) {
    const ptx_tree *tree = mr_ptx_module_tree(kernel->unit->module->code->ptx);
    mr_ptx_line *lines = lua_newuserdatauv(L, MOST_LINES * sizeof *lines, 0);
    uint32_t count = mr_ptx_profile_lines(profile, lines, MOST_LINES);
    if (count > MOST_LINES) count = MOST_LINES;
    lua_createtable(L, (int)count, 0);
    for (uint32_t i = 0; i < count; i++) {
        lua_newtable(L);
        lua_pushstring(L, tree->files[lines[i].file]);
        lua_setfield(L, -2, "file");
        mr_set_integer(L, "line", lines[i].line);
        set_counts(L, &lines[i].counts);
        set_moves(L, &lines[i].loads, &lines[i].stores);
        set_text(L, "millrace.profile.line", row_text);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_remove(L, -2);
    set_text(L, "millrace.profile.lines", rows_text);
}

/* p:lines(), as the table has them in `list`. */
static int profile_lines(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "list");
    return 1;
}

static int drop_profile(lua_State *L) {
    mr_ptx_profile **box = lua_touserdata(L, 1);
    mr_ptx_profile_destroy(*box);
    *box = NULL;
    return 0;
}

/* The counts of this moment. Their profile is a copy in `*box`: making Lua values runs the collector, and a finalizer
 * may reset it. */
static mr_kernel_count copy_count(lua_State *L, const mr_kernel_box *kernel, mr_ptx_profile **box) {
    const mr_kernel_code *code = kernel->unit->module->code;
    mr_kernel_count count = *mr_kernel_code_count(code, kernel->ptx);
    if (!count.profile) return count;
    *box = mr_ptx_profile_create(code->ptx);
    if (!*box) mr_raise(L, mr_no_memory("for a profile"));
    mr_ptx_profile_add(*box, count.profile);
    count.profile = *box;
    return count;
}

/* nil, and why there is none. */
static int nothing_counted(lua_State *L, const mr_machine *machine) {
    lua_pushnil(L);
    if (!machine->backend->simulator)
        lua_pushliteral(L, "only launches on the virtual GPU are counted");
    else
        lua_pushliteral(L, "no launch was counted yet: launch the kernel and synchronize, with the "
                           "setting kernel_profile on");
    return 2;
}

MR_FUNCTION(
    kernel_profile, "profile",
    "k:profile([{block: integer, shared: integer, reset: boolean=false}]) -> p: table?, why: "
    "string?",
    "Counts what the launches of the kernel did on the virtual GPU so far, or since the last "
    "`reset`. `blocks` of `launched_blocks` were counted: all of a kernel's first 2048 threads, "
    "then one of 64, or as the setting `kernel_profile_every` says. `instructions` counts those of "
    "warps. `active_lanes` of 32 is the mean of the instructions that at least one lane executes. "
    "`classes` has counts by kind of instruction: memory requests, sectors of 32 bytes, "
    "efficiency, passes over the banks, and the same for its `loads` and its `stores`. `occupancy` "
    "and `limited_by` are for blocks of that size (those of the last launch). `ms` is the "
    "estimated time of a launch on the device model. `bound_by` names the bound that determines "
    "it, and `times` has the time of each possible bound. p:lines() has the same counts for each "
    "line of the source. print shows both. Returns nil and the reason if no launch was counted "
    "yet. Waits for nothing: synchronize "
    "first.") {
    static const char *const known[] = {"block", "shared", "reset", NULL};
    mr_machine *machine = mr_set_context(L);
    mr_kernel_box *kernel = mr_check(L, 1, &mr_kind_kernel);
    if (!kernel->unit) return mr_bad_argument_as(L, 1, "a kernel", "a kernel that is gone");
    mr_option_slots options = mr_check_options(L, 2, known);
    mr_bind_explore_differs(L, "k:profile(), which counts the launches of all runs: call "
                               "k:profile{reset = true} before the launches");
    mr_bind_waits_looks(L, "k:profile", NULL);
    mr_observers_learned(machine);
    mr_ptx_profile **box = mr_push_owner(L, sizeof *box, drop_profile);
    const mr_kernel_count count = copy_count(L, kernel, box);
    lua_Integer block =
        mr_option_integer(L, &options, "block", count.threads ? (lua_Integer)count.threads : 1);
    lua_Integer shared = mr_option_integer(L, &options, "shared", count.shared);
    bool reset = mr_option_boolean(L, &options, "reset", false);
    if (block < 1 || block > kernel->ptx->max_threads)
        return mr_misuse(L, "profile: block is %d, expected 1 to %d threads", (int)block,
                         (int)kernel->ptx->max_threads);
    if (shared < 0 || shared > INT32_MAX / 2)
        return mr_misuse(L, "profile: shared is no number of bytes");
    const mr_ptx_profile *profile = count.profile;
    if (!profile || !mr_ptx_profile_blocks(profile)) return nothing_counted(L, machine);
    const mr_device *device = machine->current_device;
    mr_kernel_times times;
    if (!mr_kernel_times_of(device, kernel->ptx, &count, (uint32_t)block, (uint32_t)shared, &times))
        mr_raise(L, mr_no_memory("for a profile"));
    if (reset) mr_kernel_code_forget(kernel->unit->module->code, kernel->ptx);
    const mr_kernel_occupancy *occupancy = &times.occupancy;
    mr_ptx_counts sum;
    lua_newtable(L);
    push_classes(L, profile, &sum);
    lua_setfield(L, -2, "classes");
    set_counts(L, &sum);
    mr_set_integer(L, "blocks", mr_ptx_profile_blocks(profile));
    mr_set_integer(L, "launched_blocks", count.launched);
    mr_set_integer(L, "launches", count.launches);
    mr_set_number(L, "occupancy", occupancy->occupancy);
    mr_set_integer(L, "blocks_per_sm", (uint64_t)occupancy->blocks_per_sm);
    lua_pushstring(L, occupancy->limited_by);
    lua_setfield(L, -2, "limited_by");
    mr_set_number(L, "ms", times.total * 1e3);
    lua_pushstring(L, times.bound_by);
    lua_setfield(L, -2, "bound_by");
    push_times(L, &times);
    lua_setfield(L, -2, "times");
    push_lines(L, kernel, profile);
    lua_setfield(L, -2, "list");
    mr_push_module(L);
    lua_pushcclosure(L, profile_lines, 1);
    lua_setfield(L, -2, "lines");
    set_text(L, "millrace.profile", profile_text);
    return 1;
}

static const mr_function *const functions[] = {&kernel_profile_function, NULL};
const mr_class mr_kernel_profile_class = {"kernel", "What the launches of a kernel did.", functions,
                                          NULL, &mr_kind_kernel};

void mr_open_kernel_profile(lua_State *L) {
    mr_class_extend(L, &mr_kernel_profile_class);
}
