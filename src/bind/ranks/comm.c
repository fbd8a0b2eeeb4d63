/* A communicator: one rank's handle (collective/comm.h), and its collectives. The box of a communicator owns one
 * reference. */
#include "bind/ranks/comm.h"

#include <string.h>

#include "bind/explore.h"
#include "bind/internal.h"
#include "bind/open.h"
#include "collective/ranks.h"
#include "collective/world.h"

static const mr_kind comm_kind = {.text = "a communicator"};

typedef struct {
    mr_comm *comm; /* one reference; NULL: see split */
    /* the split that makes it, once all ranks have asked; one reference, or NULL */
    mr_split *split;
    uint32_t rank; /* with it: in the communicator that is split */
    bool left_out; /* by its negative color */
} comm_box;

/* Why there is no communicator; NULL: there is one, perhaps made by this call. */
static const char *why_none(comm_box *box) {
    if (box->comm) return NULL;
    if (box->left_out) return "split: the rank gave a negative color, so it is in no communicator";
    if (!box->split) return "the rank is in no communicator, or that was already collected";
    if (!mr_split_take(box->split, box->rank, &box->comm))
        return "split: the communicator is there once all ranks have called split";
    mr_split_release(box->split);
    box->split = NULL;
    box->left_out = !box->comm;
    return why_none(box);
}

mr_comm *mr_check_comm(lua_State *L, int arg) {
    comm_box *box = mr_check(L, arg, &comm_kind);
    const char *why = why_none(box);
    if (why) mr_misuse(L, "%s", why);
    return box->comm;
}

/* --- options ------------------------------------------------------------------------------------ */

mr_redop mr_option_redop(lua_State *L, const mr_option_slots *given) {
    const char *text = mr_option_name(L, given, "op");
    if (!text) return MR_REDOP_SUM;
    for (int i = MR_REDOP_SUM; i <= MR_REDOP_AVG; i++)
        if (strcmp(text, mr_redop_text((mr_redop)i)) == 0) return (mr_redop)i;
    mr_misuse(L, "op: expected \"sum\", \"prod\", \"min\", \"max\" or \"avg\", got \"%s\"", text);
    return MR_REDOP_SUM;
}

mr_collectives *mr_bind_collectives(lua_State *L) {
    mr_module *module = mr_module_of(L);
    if (!module->collectives)
        mr_raise(L, mr_collectives_new(module->machine, &module->collectives));
    return module->collectives;
}

int mr_bind_rank_of_process(lua_State *L) {
    mr_module *module = mr_bind_module(L);
    const mr_collectives *c = module ? module->collectives : NULL;
    return c && mr_world_is_joined(c) ? (int)mr_ranks_current(c) : -1;
}

/* A rank of `size`. */
static uint32_t as_rank(lua_State *L, lua_Integer rank, const char *what, uint32_t size) {
    if (rank < 0 || rank >= size)
        mr_misuse(L, "%s: expected a rank from 0 to %d, as there are %d, got %lld", what,
                  (int)size - 1, (int)size, (long long)rank);
    return (uint32_t)rank;
}

uint32_t mr_option_root(lua_State *L, const mr_option_slots *given, uint32_t size) {
    return as_rank(L, mr_option_integer(L, given, "root", 0), "option `root`", size);
}

/* A finalizer runs on the rank that collects garbage, which may not be the rank of the object, so it has no peers. In a
 * finalizer, lua_gc returns -1. */
void mr_check_no_finalizer(lua_State *L) {
    if (mr_ranks_current(mr_bind_collectives(L)) == MR_MEETING_MOST) return;
    if (lua_gc(L, LUA_GCCOUNT) < 0)
        mr_misuse(L, "a finalizer of a rank cannot call collectives: it runs on any of the ranks");
}

void mr_check_may_meet(lua_State *L) {
    mr_check_no_finalizer(L);
    if (mr_world_is_joined(mr_bind_collectives(L)))
        mr_bind_explore_refuse(L, MR_RANKS_NOT_EXPLORED);
    else mr_bind_explore_refuse_meeting(L);
}

static void ask_as(lua_State *L, const char *name, const mr_collective_call *call) {
    mr_caller caller = mr_enter(L);
    caller.name = name;
    mr_check_may_meet(L);
    mr_raise(L, mr_collective_ask(mr_bind_collectives(L), &caller, call));
}

static void ask(lua_State *L, const mr_collective_call *call) {
    ask_as(L, NULL, call);
}

/* An all_reduce, since NCCL has no barrier of its own. */
int mr_comm_barrier(lua_State *L) {
    static const char *const names[] = {MR_COLLECTIVE_BARRIER, MR_COLLECTIVE_GROUP,
                                        MR_COLLECTIVE_INIT, NULL};
    mr_comm *comm = mr_check_comm(L, 1);
    mr_tensor *token = mr_check_tensor(L, 2);
    ask_as(L, names[luaL_checkoption(L, 3, names[0], names)],
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
    mr_comm *comm = mr_check_comm(L, 1);
    mr_tensor *t = mr_check_tensor(L, 2);
    mr_option_slots given = mr_check_options(L, 3, known);
    mr_tensor *out = mr_option_tensor(L, &given, "out");
    ask(L, &(mr_collective_call){.comm = comm,
                                 .what = MR_COLLECTIVE_ALL_REDUCE,
                                 .redop = mr_option_redop(L, &given),
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
    mr_comm *comm = mr_check_comm(L, 1);
    mr_tensor *t = mr_check_tensor(L, 2);
    mr_option_slots given = mr_check_options(L, 3, known);
    mr_tensor *out = mr_option_tensor(L, &given, "out");
    uint32_t root = mr_option_root(L, &given, comm->clique->size);
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
    mr_comm *comm = mr_check_comm(L, 1);
    mr_tensor *t = mr_check_tensor(L, 2);
    mr_option_slots given = mr_check_options(L, 3, known);
    mr_tensor *out = mr_option_tensor(L, &given, "out");
    uint32_t root = mr_option_root(L, &given, comm->clique->size);
    ask(L, &(mr_collective_call){.comm = comm,
                                 .what = MR_COLLECTIVE_REDUCE,
                                 .redop = mr_option_redop(L, &given),
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
    mr_comm *comm = mr_check_comm(L, 1);
    mr_tensor *out = mr_check_tensor(L, 2), *in = mr_check_tensor(L, 3);
    mr_option_slots given = mr_check_options(L, 4, known);
    ask(L, &(mr_collective_call){.comm = comm,
                                 .what = what,
                                 .redop = mr_collective_reduces(what) ? mr_option_redop(L, &given)
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
    mr_comm *comm = mr_check_comm(L, 1);
    mr_tensor *t = mr_check_tensor(L, 2);
    uint32_t peer = as_rank(L, luaL_checkinteger(L, 3), "argument `peer`", comm->clique->size);
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
            "Receives from rank `peer`, which calls send in the same group (R66).") {
    return ask_peer(L, MR_PEER_RECV);
}

/* --- life --------------------------------------------------------------------------------------- */

MR_FUNCTION(
    comm_split, "split", "c:split(color: integer [, key: integer=0]) -> comm: comm",
    "Cuts the communicator into smaller ones: ranks with the same `color` make one, in the order "
    "of "
    "their keys and then of their ranks (ncclCommSplit). All ranks call it; after that the result "
    "can be used. A rank with a negative color is in no part.") {
    mr_comm *comm = mr_check_comm(L, 1);
    lua_Integer color = luaL_checkinteger(L, 2), key = luaL_optinteger(L, 3, 0);
    mr_enter(L);
    comm_box *box = mr_new(L, &comm_kind, sizeof *box);
    box->rank = comm->rank;
    mr_raise(L, mr_comm_split(mr_bind_collectives(L), comm, color, key, &box->split));
    return 1;
}

MR_FUNCTION(comm_abort, "abort", "c:abort()",
            "Later calls of all ranks of the communicator fail (ncclCommAbort).") {
    mr_comm_abort(mr_check_comm(L, 1));
    return 0;
}

int mr_comm_reopen_own(lua_State *L) {
    mr_comm_reopen(mr_check_comm(L, 1));
    return 0;
}

MR_FUNCTION(comm_close, "close", "c:close()",
            "Closes the communicator of this rank. Submitted work is carried out.") {
    mr_comm_close(mr_check_comm(L, 1));
    return 0;
}

MR_FUNCTION(comm_close_variable, "__close", "", "The end of a <close> variable: c:close().") {
    mr_comm_close(mr_check_comm(L, 1));
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

MR_FUNCTION(comm_tostring, "__tostring", "",
            "\"rank 1 of communicator `ring`, on device 1\". Where there is none, why.") {
    char text[120];
    comm_box *box = mr_check(L, 1, &comm_kind);
    const char *why = why_none(box);
    if (why) lua_pushfstring(L, "no communicator (%s)", why);
    else
        lua_pushfstring(L, "%s, on device %d", mr_comm_describe(box->comm, text, sizeof text),
                        box->comm->device->index);
    return 1;
}

static int get_rank(lua_State *L) {
    lua_pushinteger(L, mr_check_comm(L, 1)->rank);
    return 1;
}
static int get_size(lua_State *L) {
    lua_pushinteger(L, mr_check_comm(L, 1)->clique->size);
    return 1;
}
static int get_device(lua_State *L) {
    mr_push_device(L, mr_check_comm(L, 1)->device);
    return 1;
}
static int get_id(lua_State *L) {
    lua_pushinteger(L, mr_check_comm(L, 1)->clique->id);
    return 1;
}
static int get_name(lua_State *L) {
    lua_pushstring(L, mr_name_text(mr_check_comm(L, 1)->clique->name)); /* NULL pushes nil */
    return 1;
}

static const mr_property comm_properties[] = {
    {"rank", "integer", "The number of this rank, from 0.", get_rank},
    {"size", "integer", "How many ranks there are.", get_size},
    {"device", "device", "The device of this rank.", get_device},
    {"id", "integer", "A number that all ranks of the communicator share.", get_id},
    {"name", "string?", "The name given at creation.", get_name},
    {NULL, NULL, NULL, NULL}};

/* --- open -------------------------------------------------------------------------------------- */

void mr_push_own_comm(lua_State *L, mr_comm *comm) {
    comm_box *box = mr_new(L, &comm_kind, sizeof *box);
    box->comm = comm;
}

void mr_push_comm(lua_State *L, mr_comm *comm) {
    mr_push_own_comm(L, comm);
    mr_comm_retain(comm);
}

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
