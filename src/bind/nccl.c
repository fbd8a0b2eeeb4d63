/* mr.nccl: communicators and collectives, as NCCL and PyTorch's torch.cuda.nccl have them (collective/comm.h). The
 * box of a communicator owns one reference. */
#include <stdlib.h>
#include <string.h>

#include "bind/explore_parts.h"
#include "bind/internal.h"
#include "bind/open.h"
#include "collective/ranks.h"

static const mr_kind comm_kind = {.text = "a communicator"};

mr_collectives *mr_bind_collectives(lua_State *L) {
    mr_module *module = mr_module_of(L);
    if (!module->collectives)
        mr_raise(L, mr_collectives_new(module->machine, &module->collectives));
    return module->collectives;
}

typedef struct {
    mr_comm *comm;   /* one reference; NULL: see split */
    mr_split *split; /* that is to make it, once all ranks have asked; one reference, or NULL */
    uint32_t rank;   /* with it: in the communicator that is split */
} comm_box;

static mr_comm *comm_at(lua_State *L, int arg) {
    comm_box *box = mr_check(L, arg, &comm_kind);
    if (box->comm) return box->comm;
    if (!box->split) mr_misuse(L, "the rank is in no communicator, or that was already collected");
    if (!mr_split_take(box->split, box->rank, &box->comm))
        mr_misuse(L, "split: the communicator is there once all ranks have called split");
    mr_split_release(box->split);
    box->split = NULL;
    if (!box->comm)
        mr_misuse(L, "split: the rank gave a negative color, so it is in no communicator");
    return box->comm;
}

/* --- options ------------------------------------------------------------------------------------ */

static mr_redop option_redop(lua_State *L, const mr_option_slots *given) {
    const char *text = mr_option_name(L, given, "op");
    if (!text) return MR_REDOP_SUM;
    for (int i = MR_REDOP_SUM; i <= MR_REDOP_AVG; i++)
        if (strcmp(text, mr_redop_text((mr_redop)i)) == 0) return (mr_redop)i;
    mr_misuse(L, "op: expected \"sum\", \"prod\", \"min\", \"max\" or \"avg\", got \"%s\"", text);
    return MR_REDOP_SUM;
}

static uint32_t as_rank(lua_State *L, lua_Integer rank, const char *what) {
    if (rank < 0 || rank >= MR_MEETING_MOST)
        mr_misuse(L, "%s: expected a rank from 0 to %d, got %lld", what, MR_MEETING_MOST - 1,
                  (long long)rank);
    return (uint32_t)rank;
}

static uint32_t option_root(lua_State *L, const mr_option_slots *given) {
    return as_rank(L, mr_option_integer(L, given, "root", 0), "root");
}

/* A finalizer runs on the rank that collects garbage, whoever made the object, so it has no peers to wait for. Lua's
 * collector answers nothing meanwhile. */
static void check_finalizer(lua_State *L) {
    if (mr_ranks_current(mr_bind_collectives(L)) == MR_MEETING_MOST) return;
    if (lua_gc(L, LUA_GCCOUNT) < 0)
        mr_misuse(L, "a finalizer of a rank cannot call collectives: it runs on any of the ranks");
}

static void ask_as(lua_State *L, const char *name, const mr_collective_call *call) {
    mr_caller caller = mr_enter(L);
    caller.name = name;
    check_finalizer(L);
    mr_raise(L, mr_collective_ask(mr_bind_collectives(L), &caller, call));
}

static void ask(lua_State *L, const mr_collective_call *call) {
    ask_as(L, NULL, call);
}

/* An all_reduce, as in NCCL, which has no barrier of its own. */
int mr_comm_barrier(lua_State *L) {
    mr_comm *comm = comm_at(L, 1);
    mr_tensor *token = mr_check_tensor(L, 2);
    ask_as(L, "barrier",
           &(mr_collective_call){
               .comm = comm, .what = MR_COLLECTIVE_ALL_REDUCE, .in = token, .out = token});
    return 0;
}

/* --- collectives of one rank -------------------------------------------------------------------- */

MR_FUNCTION(
    comm_all_reduce, "all_reduce",
    "c:all_reduce(t: tensor [, opts: {op: string=\"sum\", out: tensor, stream: stream}])",
    "Combines `t` of all ranks by `op` (\"sum\", \"prod\", \"min\", \"max\" or \"avg\"), and "
    "writes the result to `out` (default: `t`) on each rank. Runs as a kernel in the stream "
    "(default: the current one of the rank's device); the host does not wait (R61). All "
    "ranks call it, in one mr.nccl.group (R63).") {
    static const char *const known[] = {"op", "out", "stream", NULL};
    mr_comm *comm = comm_at(L, 1);
    mr_tensor *t = mr_check_tensor(L, 2);
    mr_option_slots given = mr_check_options(L, 3, known);
    mr_tensor *out = mr_option_tensor(L, &given, "out");
    ask(L, &(mr_collective_call){.comm = comm,
                                 .what = MR_COLLECTIVE_ALL_REDUCE,
                                 .redop = option_redop(L, &given),
                                 .in = t,
                                 .out = out ? out : t,
                                 .stream = mr_option_stream(L, &given, "stream")});
    return 0;
}

MR_FUNCTION(
    comm_broadcast, "broadcast",
    "c:broadcast(t: tensor [, opts: {root: integer=0, out: tensor, stream: stream}])",
    "Copies `t` of rank `root` to `t` of all other ranks, and to `out` where it is given.") {
    static const char *const known[] = {"root", "out", "stream", NULL};
    mr_comm *comm = comm_at(L, 1);
    mr_tensor *t = mr_check_tensor(L, 2);
    mr_option_slots given = mr_check_options(L, 3, known);
    mr_tensor *out = mr_option_tensor(L, &given, "out");
    uint32_t root = option_root(L, &given);
    bool is_root = root == comm->rank;
    ask(L, &(mr_collective_call){.comm = comm,
                                 .what = MR_COLLECTIVE_BROADCAST,
                                 .root = root,
                                 .in = is_root ? t : NULL,
                                 .out = is_root && !out ? NULL
                                        : out           ? out
                                                        : t,
                                 .stream = mr_option_stream(L, &given, "stream")});
    return 0;
}

MR_FUNCTION(
    comm_reduce, "reduce",
    "c:reduce(t: tensor [, opts: {root: integer=0, op: string=\"sum\", out: tensor, stream: "
    "stream}])",
    "As all_reduce, but only rank `root` gets the result; `out` of the others is not "
    "touched.") {
    static const char *const known[] = {"root", "op", "out", "stream", NULL};
    mr_comm *comm = comm_at(L, 1);
    mr_tensor *t = mr_check_tensor(L, 2);
    mr_option_slots given = mr_check_options(L, 3, known);
    mr_tensor *out = mr_option_tensor(L, &given, "out");
    uint32_t root = option_root(L, &given);
    ask(L, &(mr_collective_call){.comm = comm,
                                 .what = MR_COLLECTIVE_REDUCE,
                                 .redop = option_redop(L, &given),
                                 .root = root,
                                 .in = t,
                                 .out = root != comm->rank ? NULL
                                        : out              ? out
                                                           : t,
                                 .stream = mr_option_stream(L, &given, "stream")});
    return 0;
}

/* Result, input, options. */
static int ask_apart(lua_State *L, mr_collective what, const char *const *known) {
    mr_comm *comm = comm_at(L, 1);
    mr_tensor *out = mr_check_tensor(L, 2), *in = mr_check_tensor(L, 3);
    mr_option_slots given = mr_check_options(L, 4, known);
    ask(L, &(mr_collective_call){.comm = comm,
                                 .what = what,
                                 .redop = mr_collective_reduces(what) ? option_redop(L, &given)
                                                                      : MR_REDOP_SUM,
                                 .in = in,
                                 .out = out,
                                 .stream = mr_option_stream(L, &given, "stream")});
    return 0;
}

static const char *const only_stream[] = {"stream", NULL};
static const char *const redop_and_stream[] = {"op", "stream", NULL};

MR_FUNCTION(
    comm_all_gather, "all_gather",
    "c:all_gather(out: tensor, t: tensor [, opts: {stream: stream}])",
    "Writes `t` of all ranks to `out`, one behind the other by rank. `out` has `size` times "
    "as many elements; `t` may be the rank's own part of it (R65).") {
    return ask_apart(L, MR_COLLECTIVE_ALL_GATHER, only_stream);
}

MR_FUNCTION(
    comm_reduce_scatter, "reduce_scatter",
    "c:reduce_scatter(out: tensor, t: tensor [, opts: {op: string=\"sum\", stream: stream}])",
    "Combines `t` of all ranks by `op`, and writes part k of the result to `out` of rank k. "
    "`t` has `size` times as many elements; `out` may be the rank's own part of it (R65).") {
    return ask_apart(L, MR_COLLECTIVE_REDUCE_SCATTER, redop_and_stream);
}

MR_FUNCTION(
    comm_all_to_all, "all_to_all",
    "c:all_to_all(out: tensor, t: tensor [, opts: {stream: stream}])",
    "Cuts `t` into `size` equal parts and sends part k to rank k. Part k of `out` is what rank "
    "k has sent.") {
    return ask_apart(L, MR_COLLECTIVE_ALL_TO_ALL, only_stream);
}

static int ask_peer(lua_State *L, mr_peer_way way) {
    mr_comm *comm = comm_at(L, 1);
    mr_tensor *t = mr_check_tensor(L, 2);
    uint32_t peer = as_rank(L, luaL_checkinteger(L, 3), "peer");
    mr_option_slots given = mr_check_options(L, 4, only_stream);
    ask(L, &(mr_collective_call){.comm = comm,
                                 .what = MR_COLLECTIVE_EXCHANGE,
                                 .way = way,
                                 .root = peer,
                                 .in = way == MR_PEER_SEND ? t : NULL,
                                 .out = way == MR_PEER_RECV ? t : NULL,
                                 .stream = mr_option_stream(L, &given, "stream")});
    return 0;
}

MR_FUNCTION(comm_send, "send", "c:send(t: tensor, peer: integer [, opts: {stream: stream}])",
            "Sends `t` to rank `peer`, which receives it by recv in the same group (R66).") {
    return ask_peer(L, MR_PEER_SEND);
}

MR_FUNCTION(comm_recv, "recv", "c:recv(t: tensor, peer: integer [, opts: {stream: stream}])",
            "Receives from rank `peer` what that sends in the same group (R66).") {
    return ask_peer(L, MR_PEER_RECV);
}

/* --- life --------------------------------------------------------------------------------------- */

MR_FUNCTION(
    comm_split, "split", "c:split(color: integer [, key: integer=0]) -> comm: comm",
    "Cuts the communicator into smaller ones: ranks with the same `color` make one, in the order "
    "of "
    "their keys and then of their ranks (ncclCommSplit). All ranks call it; the result can be "
    "used once they have. A rank with a negative color is in none.") {
    mr_comm *comm = comm_at(L, 1);
    lua_Integer color = luaL_checkinteger(L, 2), key = luaL_optinteger(L, 3, 0);
    mr_enter(L);
    comm_box *box = mr_new(L, &comm_kind, sizeof *box);
    box->rank = comm->rank;
    mr_raise(L, mr_comm_split(mr_bind_collectives(L), comm, color, key, &box->split));
    return 1;
}

MR_FUNCTION(comm_abort, "abort", "c:abort()",
            "Later calls of all ranks of the communicator fail (ncclCommAbort).") {
    mr_comm_abort(comm_at(L, 1));
    return 0;
}

MR_FUNCTION(comm_close, "close", "c:close()",
            "Closes the communicator of this rank. What was submitted is carried out.") {
    mr_comm_close(comm_at(L, 1));
    return 0;
}

MR_FUNCTION(comm_close_variable, "__close", "", "The end of a <close> variable: c:close().") {
    mr_comm_close(comm_at(L, 1));
    return 0;
}

MR_FUNCTION(comm_gc, "__gc", "", "Drops the reference.") {
    comm_box *box = mr_check(L, 1, &comm_kind);
    mr_set_context(L);
    mr_comm_release(box->comm);
    mr_split_release(box->split);
    *box = (comm_box){0};
    return 0;
}

MR_FUNCTION(comm_tostring, "__tostring", "", "\"rank 1 of communicator `ring`, on device 1\".") {
    char text[120];
    mr_comm *comm = comm_at(L, 1);
    lua_pushfstring(L, "%s, on device %d", mr_comm_describe(comm, text, sizeof text),
                    comm->device->index);
    return 1;
}

static int get_rank(lua_State *L) {
    lua_pushinteger(L, comm_at(L, 1)->rank);
    return 1;
}
static int get_size(lua_State *L) {
    lua_pushinteger(L, comm_at(L, 1)->clique->size);
    return 1;
}
static int get_device(lua_State *L) {
    mr_push_device(L, comm_at(L, 1)->device);
    return 1;
}
static int get_id(lua_State *L) {
    lua_pushinteger(L, comm_at(L, 1)->clique->id);
    return 1;
}
static int get_name(lua_State *L) {
    lua_pushstring(L, mr_name_text(comm_at(L, 1)->clique->name)); /* NULL pushes nil */
    return 1;
}

static const mr_property comm_properties[] = {
    {"rank", "integer", "The number of this rank, from 0.", get_rank},
    {"size", "integer", "How many ranks there are.", get_size},
    {"device", "device", "The device of this rank.", get_device},
    {"id", "integer", "A number that all ranks of the communicator share.", get_id},
    {"name", "string?", "The name given at creation.", get_name},
    {NULL, NULL, NULL, NULL}};

/* --- the table mr.nccl -------------------------------------------------------------------------- */

static comm_box *push_comm(lua_State *L) {
    return mr_new(L, &comm_kind, sizeof(comm_box));
}

void mr_push_comm(lua_State *L, mr_comm *comm) {
    push_comm(L)->comm = comm;
    mr_comm_retain(comm);
}

/* Pushes a list of `count` communicators, in the order of their ranks. */
static void push_comms(lua_State *L, mr_comm **comms, uint32_t count) {
    lua_createtable(L, (int)count, 0);
    for (uint32_t i = 0; i < count; i++) {
        push_comm(L)->comm = comms[i];
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
            "together (ncclGroupStart, ncclGroupEnd). Nothing of them is in a stream before that "
            "(R63). Groups nest: the outermost submits. After an error nothing is submitted.") {
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

/* In the registry: communicators by the devices' numbers, "0,1". Those that a function makes which mr.explore calls are
 * apart, since its next run must not find them. */
static const char cliques_key, cliques_of_run_key;

/* In the registry: the mr_collectives that are kept, as functions that close a keeper have no module. */
static const char kept_key;

static mr_collectives *kept(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
    mr_collectives *c = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return c;
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
    check_finalizer(L);
    mr_collectives *c = mr_bind_collectives(L);
    push_comms_for(L, whole->in, whole->count);
    mr_status status = MR_OK;
    size_t first = mr_collectives_begin(c);
    for (int k = 0; k < whole->count && !status; k++) {
        lua_rawgeti(L, -1, k + 1);
        mr_collective_call call = call_of_rank(whole, comm_at(L, -1), k);
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
    if (mr_collective_reduces(what)) whole.redop = option_redop(L, &given);
    if (what == MR_COLLECTIVE_BROADCAST || what == MR_COLLECTIVE_REDUCE)
        whole.root = option_root(L, &given);
    whole.in = mr_check_tensors(L, 1, name, &whole.count);
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

static const mr_function *const comm_functions[] = {
    &comm_all_reduce_function, &comm_broadcast_function,      &comm_reduce_function,
    &comm_all_gather_function, &comm_reduce_scatter_function, &comm_all_to_all_function,
    &comm_send_function,       &comm_recv_function,           &comm_split_function,
    &comm_abort_function,      &comm_close_function,          &comm_close_variable_function,
    &comm_gc_function,         &comm_tostring_function,       NULL};

const mr_class mr_comm_class = {
    "comm",
    "A communicator: one rank's handle of a set of devices. Its collectives are kernels in the "
    "rank's stream (R61).",
    comm_functions, comm_properties, &comm_kind};

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
