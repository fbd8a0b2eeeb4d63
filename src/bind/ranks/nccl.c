/* The table mr.nccl: communicators of several devices, groups, and PyTorch's form with all ranks in one call
 * (torch.cuda.nccl). A communicator itself is in comm.c. */
#include <stdlib.h>
#include <string.h>

#include "bind/ranks/comm.h"
#include "bind/explore_guard.h"
#include "bind/internal.h"
#include "bind/open.h"

/* Pushes a list of `count` communicators, in the order of their ranks. */
static void push_comms(lua_State *L, mr_comm **comms, uint32_t count) {
    lua_createtable(L, (int)count, 0);
    for (uint32_t i = 0; i < count; i++) {
        mr_push_own_comm(L, comms[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void make_comms(lua_State *L, mr_device **devices, uint32_t count, const char *name) {
    mr_comm *comms[MR_MEETING_MOST];
    luaL_checkstack(L, LUA_MINSTACK, NULL);
    mr_raise(L, mr_comms_create(mr_bind_collectives(L), devices, count, name, comms));
    push_comms(L, comms, count);
}

MR_FUNCTION(nccl_comms, "comms",
            "mr.nccl.comms(devices: list [, opts: {name: string}]) -> comms: list",
            "Makes one communicator for each of the devices, in this order: rank 0 is the first "
            "(ncclCommInitAll). Each device may be in the list once (R67).") {
    static const char *const known[] = {"name", NULL};
    mr_device *devices[MR_MEETING_MOST];
    mr_enter(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_Integer count = (lua_Integer)lua_rawlen(L, 1);
    mr_option_slots given = mr_check_options(L, 2, known);
    if (count < 1 || count > MR_MEETING_MOST)
        mr_misuse(L, "comms: expected 1 to %d devices, got %d", MR_MEETING_MOST, (int)count);
    luaL_checkstack(L, (int)count, NULL);
    int top = lua_gettop(L);
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, 1, i + 1);
        devices[i] = mr_check_device(L, top + i + 1);
    }
    make_comms(L, devices, (uint32_t)count, mr_option_name(L, &given, "name"));
    return 1;
}

MR_FUNCTION(nccl_group, "group", "mr.nccl.group(fn: function, ...: any) -> ...: any",
            "Runs `fn(...)` and then submits the collectives that it called, those of all ranks "
            "together (ncclGroupStart, ncclGroupEnd). None of them is in a stream before that "
            "(R63). Groups nest: the outermost one submits. After an error nothing is submitted.") {
    if (!lua_isfunction(L, 1)) mr_bad_argument(L, 1, "a function");
    mr_set_context(L);
    mr_collectives *c = mr_bind_collectives(L);
    size_t first = mr_collectives_begin(c);
    int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    mr_set_context(L);
    if (status != LUA_OK) {
        mr_collectives_cancel(c, first);
        return lua_error(L);
    }
    mr_raise(L, mr_collectives_end(c));
    return lua_gettop(L);
}

/* --- all ranks in one call, as in torch.cuda.nccl ------------------------------------------------- */

/* Registry keys of tables of communicators by device numbers, "0,1". Communicators made in a run of mr.explore have a
 * table of their own, since the next run must not find them. */
static const char cliques_key, cliques_of_run_key;

/* Registry key of the mr_collectives with saved state, since functions that close a keeper have no module. */
static const char kept_key;

static mr_collectives *kept(lua_State *L) {
    return mr_under_key(L, &kept_key);
}

static void forget_of_run(lua_State *L) {
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &cliques_of_run_key);
}

void mr_bind_nccl_keep(lua_State *L) {
    mr_collectives *c = mr_bind_collectives(L);
    lua_pushlightuserdata(L, c);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
    mr_raise(L, mr_collectives_keep(c));
}

void mr_bind_nccl_put_back(lua_State *L) {
    forget_of_run(L);
    mr_bind_dist_put_back(L);
    mr_collectives_put_back(kept(L));
}

void mr_bind_nccl_let_go(lua_State *L) {
    forget_of_run(L);
    mr_collectives *c = kept(L);
    if (c) mr_collectives_let_go(c);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
}

static void push_cliques(lua_State *L, const char *key) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) != LUA_TNIL) return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

/* Pushes the list of communicators for the devices of these tensors; the same list each time. */
static void push_comms_for(lua_State *L, mr_tensor **tensors, int count) {
    mr_device *devices[MR_MEETING_MOST];
    luaL_Buffer key;
    uint32_t epoch = mr_machine_of(L)->epoch;
    if (count < 1 || count > MR_MEETING_MOST)
        mr_misuse(L, "expected 1 to %d tensors, each on a device of its own", MR_MEETING_MOST);
    luaL_buffinit(L, &key);
    lua_pushinteger(L, epoch);
    luaL_addvalue(&key);
    for (int i = 0; i < count; i++) {
        devices[i] = tensors[i]->storage->device;
        if (!devices[i]) mr_misuse(L, "tensor %d is not on a device", i + 1);
        luaL_addchar(&key, ',');
        lua_pushinteger(L, devices[i]->index);
        luaL_addvalue(&key);
    }
    luaL_pushresult(&key);
    push_cliques(L, &cliques_key);
    lua_pushvalue(L, -2);
    if (lua_rawget(L, -2) != LUA_TNIL) return;
    lua_pop(L, 1);
    if (mr_explore_guard_is_busy(L)) {
        push_cliques(L, &cliques_of_run_key);
        lua_pushvalue(L, -3);
        if (lua_rawget(L, -2) != LUA_TNIL) return;
        lua_pop(L, 1);
        lua_remove(L, -2);
    }
    make_comms(L, devices, (uint32_t)count, NULL);
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
}

typedef struct {
    mr_collective what;
    mr_redop redop;
    uint32_t root;
    mr_tensor **in, **out; /* out NULL: in place */
    int count;
} whole_call;

static mr_collective_call call_of_rank(const whole_call *whole, mr_comm *comm, int k) {
    mr_collective_call call = {.comm = comm,
                               .what = whole->what,
                               .redop = whole->redop,
                               .root = whole->root,
                               .in = whole->in[k],
                               .out = whole->out ? whole->out[k] : whole->in[k]};
    bool is_root = (uint32_t)k == whole->root;
    if (whole->what == MR_COLLECTIVE_BROADCAST && !is_root) call.in = NULL;
    if (whole->what == MR_COLLECTIVE_BROADCAST && is_root) call.out = NULL;
    if (whole->what == MR_COLLECTIVE_REDUCE && !is_root) call.out = NULL;
    return call;
}

static int ask_all(lua_State *L, const whole_call *whole) {
    mr_caller caller = mr_enter(L);
    mr_check_no_finalizer(L);
    mr_collectives *c = mr_bind_collectives(L);
    push_comms_for(L, whole->in, whole->count);
    mr_status status = MR_OK;
    size_t first = mr_collectives_begin(c);
    for (int k = 0; k < whole->count && !status; k++) {
        lua_rawgeti(L, -1, k + 1);
        mr_collective_call call = call_of_rank(whole, mr_check_comm(L, -1), k);
        lua_pop(L, 1);
        status = mr_collective_ask(c, &caller, &call);
    }
    if (!status) status = mr_collectives_end(c);
    else mr_collectives_cancel(c, first);
    mr_raise(L, status);
    return 0;
}

/* Argument 1: tensors; with `apart`, argument 2: the results' tensors; then options. */
static int ask_whole(lua_State *L, mr_collective what, bool apart, const char *const *known) {
    whole_call whole = {.what = what};
    int results = 0, options = apart ? 3 : 2;
    luaL_checktype(L, 1, LUA_TTABLE);
    mr_option_slots given = mr_check_options(L, options, known);
    const char *name = mr_collective_text(what);
    if (mr_collective_reduces(what)) whole.redop = mr_option_redop(L, &given);
    whole.in = mr_check_tensors(L, 1, name, &whole.count);
    if (what == MR_COLLECTIVE_BROADCAST || what == MR_COLLECTIVE_REDUCE)
        whole.root = mr_option_root(L, &given, (uint32_t)whole.count);
    int at = apart ? 2 : what == MR_COLLECTIVE_ALL_REDUCE ? mr_option_at(L, &given, "out") : 0;
    if (at) {
        luaL_checktype(L, at, LUA_TTABLE);
        whole.out = mr_check_tensors(L, at, name, &results);
        if (results != whole.count)
            mr_misuse(L, "%s: %d inputs and %d results: expected one of each for each rank", name,
                      whole.count, results);
    }
    return ask_all(L, &whole);
}

MR_FUNCTION(
    nccl_all_reduce, "all_reduce",
    "mr.nccl.all_reduce(tensors: list [, opts: {op: string=\"sum\", out: list}])",
    "All ranks in one call: tensor k is that of rank k, each on a device of its own, on the "
    "device's current stream. The result replaces the tensors, or goes to those in `out`.") {
    static const char *const known[] = {"op", "out", NULL};
    return ask_whole(L, MR_COLLECTIVE_ALL_REDUCE, false, known);
}

MR_FUNCTION(nccl_broadcast, "broadcast",
            "mr.nccl.broadcast(tensors: list [, opts: {root: integer=0}])",
            "Copies the tensor of rank `root`, counted from 0, to all others of the list.") {
    static const char *const known[] = {"root", NULL};
    return ask_whole(L, MR_COLLECTIVE_BROADCAST, false, known);
}

MR_FUNCTION(nccl_reduce, "reduce",
            "mr.nccl.reduce(tensors: list [, opts: {root: integer=0, op: string=\"sum\"}])",
            "As all_reduce; only the tensor of rank `root` gets the result.") {
    static const char *const known[] = {"root", "op", NULL};
    return ask_whole(L, MR_COLLECTIVE_REDUCE, false, known);
}

MR_FUNCTION(nccl_all_gather, "all_gather", "mr.nccl.all_gather(tensors: list, results: list)",
            "Writes all tensors, one behind the other, to each of the results.") {
    static const char *const known[] = {NULL};
    return ask_whole(L, MR_COLLECTIVE_ALL_GATHER, true, known);
}

MR_FUNCTION(nccl_reduce_scatter, "reduce_scatter",
            "mr.nccl.reduce_scatter(tensors: list, results: list [, opts: {op: string=\"sum\"}])",
            "Combines the tensors, and writes part k to result k.") {
    static const char *const known[] = {"op", NULL};
    return ask_whole(L, MR_COLLECTIVE_REDUCE_SCATTER, true, known);
}

MR_FUNCTION(nccl_all_to_all, "all_to_all", "mr.nccl.all_to_all(tensors: list, results: list)",
            "Part j of tensor k becomes part k of result j.") {
    static const char *const known[] = {NULL};
    return ask_whole(L, MR_COLLECTIVE_ALL_TO_ALL, true, known);
}

/* --- open --------------------------------------------------------------------------------------- */

static const mr_function *const nccl_functions[] = {
    &nccl_comms_function,          &nccl_group_function,      &nccl_all_reduce_function,
    &nccl_broadcast_function,      &nccl_reduce_function,     &nccl_all_gather_function,
    &nccl_reduce_scatter_function, &nccl_all_to_all_function, NULL};

const mr_class mr_nccl_class = {"mr.nccl", "Collectives between devices, as NCCL has them.",
                                nccl_functions, NULL, NULL};

void mr_open_nccl(lua_State *L) {
    mr_class_open(L, &mr_comm_class);
    lua_createtable(L, 0, 8);
    mr_table_open(L, &mr_nccl_class);
    lua_setfield(L, -2, "nccl");
}
