/* mr.waits: records one run of a function, and tells which of its waits are needed (src/waits/waits.h). Also does this
 * for a whole script, for --waits.
 *
 * Variables are looked up while the function runs: afterwards its locals no longer exist. */
#include "bind/hazard/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "bind/field.h"
#include "bind/hazard/hazard.h"
#include "bind/internal.h"
#include "bind/lua_body.h"
#include "bind/open.h"
#include "collective/world.h"
#include "waits/waits.h"
#include "model/backend.h"
#include "model/hosts.h"
#include "ops/kernel.h"

#define MOST_ITEMS 4000000 /* of a recorded program */
#define MOST_NAMES 256     /* objects whose variables are looked for */

/* --- names -------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t id;
    unsigned uses; /* so far */
    char text[64]; /* "": not found so far */
} named;

typedef struct {
    MR_VEC(named) items;
} name_list;

typedef struct {
    mr_observer observer;
    mr_machine *machine;
    uint16_t rank;         /* whose function it is (mr_machine.rank); --waits: 0 */
    mr_recorder *recorder; /* NULL: nothing is recorded */
    size_t returned;       /* items when the script's code had returned */
    mr_ledger ledger;      /* what was not followed */
    name_list streams, storages;
    MR_VEC(size_t) not_judged; /* items that no line of the script can leave out; ascending */
    MR_VEC(mr_waits_look) looks;
    MR_VEC(size_t) prints; /* items: launches that may print */
    bool failed;           /* no memory for them */
    bool repeats;          /* mr.explore or mr.stress calls its function again */
} recording;

typedef struct {
    mr_machine *machine;
    const mr_backend *simulated;
    recording script;    /* --waits */
    recording *function; /* of an mr.waits that runs; else NULL */
} state;

static const char state_box; /* its address is a registry key */

static state *state_of(lua_State *L) {
    return mr_under_key(L, &state_box);
}

static named *find_name(name_list *list, uint64_t id) {
    for (size_t i = list->items.count; i-- > 0;)
        if (list->items.items[i].id == id) return &list->items.items[i];
    named fresh = {.id = id};
    if (list->items.count == MOST_NAMES || !mr_vec_push(&list->items, fresh)) return NULL;
    return &list->items.items[list->items.count - 1];
}

/* A local is set only after the call that made the object, and may be one of a function that is called later. So it is
 * looked for at uses 1, 2, 4, 8, ...: each look walks the stacks and the globals. */
static void look_up(recording *r, name_list *list, uint64_t id, mr_hazard_object object) {
    named *n = find_name(list, id);
    if (!n || n->text[0]) return;
    unsigned uses = ++n->uses;
    if (uses & (uses - 1)) return;
    mr_bind_variable(r->machine->hooks.context, &object, (mr_site){0}, n->text, sizeof n->text);
}

static void note_stream(recording *r, const mr_stream *stream) {
    if (stream && !stream->name && stream->kind == MR_STREAM_USER)
        look_up(r, &r->streams, stream->id, (mr_hazard_object){.stream = stream});
}

/* Whether one of millrace's own Lua modules, such as autograd's, called the running function. */
static bool is_called_by_own_module(lua_State *L) {
    lua_Debug frame;
    for (int level = 0; lua_getstack(L, level, &frame); level++) {
        lua_getinfo(L, "S", &frame);
        if (frame.what[0] == 'C') continue;
        if (strncmp(frame.source, "=millrace.", 10) != 0) return false;
        if (!mr_lua_waits_for_caller(L, &frame)) return true;
    }
    return false;
}

static bool is_judged_kind(mr_command_id kind) {
    switch (kind) {
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_RECORD_STREAM: return true;
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE:
    case MR_COMMAND_FAULT:
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_HOST_ACCESS:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_RESET:
    case MR_COMMAND_STREAM_DROP:
    case MR_COMMAND_EVENT_CREATE:
    case MR_COMMAND_EVENT_CLOSE:
    case MR_COMMAND_HOST_ALLOC:
    case MR_COMMAND_HOST_FREE:
    case MR_COMMAND_FREE_WAIT:
    case MR_COMMAND_HOST_READ:
    case MR_COMMAND_HOST_WORK:
    case MR_COMMAND_ELAPSED:
    case MR_COMMAND_DRAIN: MR_MACHINE_LIST(MR_COMMAND_CASE) break;
    }
    return false;
}

/* The recorder was told first, so this command's item is its last one. */
static void note_not_judged(recording *r, const mr_command *command) {
    size_t count = mr_recorder_count(r->recorder);
    if (!count || !is_judged_kind(command->kind)) return;
    if (!r->repeats && !is_called_by_own_module(r->machine->hooks.context)) return;
    if (!mr_vec_push(&r->not_judged, count - 1)) r->failed = true;
}

static void note_print(recording *r, const mr_command *command) {
    size_t count = mr_recorder_count(r->recorder);
    if (!count || !mr_kernel_may_print(command)) return;
    if (!mr_vec_push(&r->prints, count - 1)) r->failed = true;
}

static void note_look(recording *r, mr_waits_look look) {
    if (!r || !r->recorder || r->repeats) return;
    look.at = mr_recorder_count(r->recorder);
    if (!mr_vec_push(&r->looks, look)) r->failed = true;
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    recording *r = (recording *)(void *)observer;
    (void)host_waited;
    note_not_judged(r, command);
    note_print(r, command);
    note_stream(r, command->stream);
    mr_command_asks_collector(command);
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_tensor *t = command->operands[i].tensor;
        if (!t->name && !t->storage->name)
            look_up(r, &r->storages, t->storage->id, (mr_hazard_object){.storage = t->storage});
    }
}

static const char *name_of(const name_list *list, uint64_t id) {
    for (size_t i = 0; i < list->items.count; i++)
        if (list->items.items[i].id == id && list->items.items[i].text[0])
            return list->items.items[i].text;
    return NULL;
}

static const char *stream_name(void *context, uint32_t id) {
    return name_of(&((recording *)context)->streams, id);
}

static const char *storage_name(void *context, uint64_t id) {
    return name_of(&((recording *)context)->storages, id);
}

/* --- recording ---------------------------------------------------------------------------------- */

static void forget(recording *r) {
    mr_recorder_abandon(r->recorder);
    mr_ledger_end(&r->ledger, r->machine);
    if (r->observer.did) mr_observer_remove(r->machine, &r->observer);
    mr_vec_free(&r->streams.items);
    mr_vec_free(&r->storages.items);
    mr_vec_free(&r->not_judged);
    mr_vec_free(&r->looks);
    mr_vec_free(&r->prints);
    *r = (recording){0};
}

static mr_status begin(mr_machine *machine, recording *r) {
    *r = (recording){.machine = machine, .rank = machine->rank};
    MR_TRY(mr_program_record(machine, MOST_ITEMS, &r->recorder));
    /* Everything: record_stream, too. */
    r->observer = (mr_observer){.name = "names", .everything = true, .did = did};
    mr_status status = mr_observer_add(machine, &r->observer);
    if (status) r->observer.did = NULL;
    if (!status) status = mr_ledger_begin(&r->ledger, machine);
    if (status) forget(r);
    return status;
}

static bool is_interrupted(const mr_machine *machine) {
    return machine->hooks.interrupted && machine->hooks.interrupted(machine->hooks.context);
}

static bool interrupted(void *context) {
    return is_interrupted(((recording *)context)->machine);
}

/* The findings so far are returned to the script. */
static bool takes_interrupt(const mr_machine *machine) {
    return machine->hooks.take_interrupt && machine->hooks.take_interrupt(machine->hooks.context);
}

static mr_status was_interrupted(void) {
    return mr_fail(MR_CODE_INTERRUPTED, "interrupted while waits were judged");
}

/* In the recording, a wait of one rank may order work of another one. */
static mr_status check_ranks(lua_State *L, const mr_program *program) {
    const mr_module *module = mr_bind_module(L);
    if (!module->collectives || !mr_world_is_joined(module->collectives)) return MR_OK;
    for (size_t i = 0; i < mr_program_count(program); i++)
        if (mr_program_item_at(program, i).meets)
            return mr_fail(
                MR_CODE_NOT_SUPPORTED,
                "waits: a wait of this rank may order work of ranks in other processes. Use "
                "millrace --ranks N instead of mpirun");
    return MR_OK;
}

static mr_status judge(lua_State *L, recording *r, bool all_costs, mr_waits **out_waits) {
    const state *s = state_of(L);
    mr_program *program;
    mr_recorder *recorder = r->recorder;
    r->recorder = NULL;
    MR_TRY(mr_recorder_finish(recorder, &program));
    mr_waits_options options = {.simulated = s->machine->backend->simulator ? s->machine->backend
                                                                            : s->simulated,
                                .interrupted = interrupted,
                                .stream_name = stream_name,
                                .storage_name = storage_name,
                                .context = r,
                                .names = mr_bind_hazard(L),
                                .not_judged = r->not_judged.items,
                                .not_judged_count = r->not_judged.count,
                                .looks = r->looks.items,
                                .look_count = r->looks.count,
                                .prints = r->prints.items,
                                .print_count = r->prints.count,
                                .returned = r->returned,
                                .all_costs = all_costs};
    mr_status status = check_ranks(L, program);
    if (!status && mr_program_facts_of(program).cut)
        status = mr_fail(MR_CODE_NOT_SUPPORTED,
                         "waits: the program has more than %d commands: call it with fewer rounds",
                         MOST_ITEMS);
    if (!status && r->failed) status = mr_no_memory("for waits that are not judged");
    if (!status) status = mr_waits_find(program, &options, out_waits);
    if (!status) mr_waits_note_claims(*out_waits, &r->ledger.claims);
    status = mr_player_error_outlives(s->machine, status);
    mr_program_release(program);
    return status;
}

/* --- the result --------------------------------------------------------------------------------- */

static int drop_waits(lua_State *L) {
    mr_waits **box = lua_touserdata(L, 1);
    mr_waits_destroy(*box);
    *box = NULL;
    return 0;
}

static int drop_recording(lua_State *L) {
    forget(lua_touserdata(L, 1));
    return 0;
}

static void push_wait(lua_State *L, const mr_wait *w) {
    lua_createtable(L, 0, 11);
    mr_set_text(L, "kind", mr_wait_kind_text(w->kind));
    mr_push_site(L, w->where);
    lua_setfield(L, -2, "where");
    mr_set_text(L, "who", w->who);
    mr_set_text(L, "verdict", mr_wait_verdict_text(w->verdict));
    mr_set_boolean(L, "kept", w->kept);
    mr_set_integer(L, "rounds", w->rounds);
    if (w->needed_rounds != MR_WAIT_NOT_COUNTED)
        mr_set_integer(L, "needed_rounds", w->needed_rounds);
    mr_set_text(L, "because", w->because);
    mr_set_text(L, "instead", w->instead);
    if (!w->has_cost) return;
    lua_pushnumber(L, w->costs_ms);
    lua_setfield(L, -2, "costs_ms");
}

static void push_record(lua_State *L, const mr_wait_record *c) {
    lua_createtable(L, 0, 7);
    mr_set_site(L, "where", c->where);
    mr_set_text(L, "tensor", c->tensor);
    mr_set_text(L, "stream", c->stream);
    mr_set_text(L, "verdict", mr_wait_verdict_text(c->verdict));
    mr_set_boolean(L, "kept", c->kept);
    mr_set_integer(L, "rounds", c->rounds);
    mr_set_text(L, "because", c->because);
}

/* not_followed: the clauses that the text has, too. */
static void set_claims(lua_State *L, const mr_waits *waits) {
    const mr_claims *claims = &waits->claims;
    mr_claim claim = mr_waits_claim(waits);
    if (claim == MR_CLAIM_IS_EVERY) return;
    lua_newtable(L);
    for (int i = 0, count = 0; i < MR_CLAIM_COUNT; i++) {
        bool is_said = mr_claim_rows[i].effect == MR_CLAIM_FORBIDS || claim != MR_CLAIM_IS_NONE;
        if (!claims->count[i] || !is_said) continue;
        mr_claims_write_row(claims, (mr_claim_id)i, mr_push_buffer(L));
        mr_buffer_to_text(L);
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "not_followed");
}

static int text_of_result(lua_State *L) {
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

static void push_result(lua_State *L, const mr_waits *waits) {
    mr_buffer *text = mr_push_buffer(L);
    mr_waits_write(waits, text);
    while (text->size && text->data[text->size - 1] == '\n') text->size--; /* print ends the line */
    mr_buffer_to_text(L);
    lua_createtable(L, 0, 9);
    mr_set_text(L, "claim", mr_claim_text(mr_waits_claim(waits)));
    mr_set_integer(L, "total", waits->total);
    if (waits->searched) mr_set_integer(L, "sufficient", waits->sufficient);
    if (waits->searched) mr_set_boolean(L, "exact", waits->exact);
    mr_set_integer(L, "hazards", waits->hazards);
    if (waits->hazards_assumed) mr_set_boolean(L, "hazards_assumed", true);
    mr_set_boolean(L, "complete", !waits->interrupted);
    if (waits->interrupted) mr_set_boolean(L, "interrupted", true);
    set_claims(L, waits);
    if (waits->has_costs) {
        lua_pushnumber(L, waits->makespan_ms);
        lua_setfield(L, -2, "makespan_ms");
        lua_pushnumber(L, waits->kept_ms);
        lua_setfield(L, -2, "sufficient_ms");
    }
    lua_createtable(L, (int)waits->count, 0);
    for (size_t i = 0; i < waits->count; i++) {
        push_wait(L, &waits->waits[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "waits");
    lua_createtable(L, (int)waits->records.count, 0);
    for (size_t i = 0; i < waits->records.count; i++) {
        push_record(L, &waits->records.items[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "record_streams");
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, -3);
    lua_pushcclosure(L, text_of_result, 1);
    lua_setfield(L, -2, "__tostring");
    lua_setmetatable(L, -2);
}

/* --- the function ------------------------------------------------------------------------------- */

/* Runs host functions, because their accesses must be known; this adds no order. */
static int run_functions(lua_State *L) {
    mr_raise(L, mr_machine_drain(mr_set_context(L)));
    return 0;
}

static void refuse(lua_State *L, const state *s) {
    if (s->machine->host_function.running)
        mr_raise(L, mr_fail(MR_CODE_NOT_PERMITTED, "waits: not permitted inside a host function"));
    if (!s->function) return;
    uint16_t rank = s->function->rank;
    if (!rank || rank == s->machine->rank)
        mr_raise(L, mr_fail(MR_CODE_NOT_PERMITTED,
                            "waits: not permitted inside another mr.waits; call the function "
                            "itself"));
    mr_raise(L, mr_fail(MR_CODE_NOT_PERMITTED,
                        "waits: rank %u is in mr.waits, which judges all ranks of this process: "
                        "call mr.waits around mr.dist.spawn, or use --waits",
                        rank - 1u));
}

MR_FUNCTION(
    waits, "waits", "mr.waits(fn: function [, opts: {costs: boolean=false}]) -> result: table",
    "Runs `fn()` once and tells which of its waits are needed: wait_event, wait_stream, each "
    "member of a barrier, synchronize. The commands are shown to the hazard checker without each "
    "of them; nothing runs again. The result can be printed. It has total, and sufficient: the "
    "size of the smallest set found that is enough. exact says whether no smaller set is. hazards "
    "counts accesses that race even with all waits; hazards_assumed is true if no code tells that "
    "they touch the same bytes. claim (as of mr.hazard.summary), not_followed (clauses, or nil), "
    "makespan_ms and sufficient_ms (with only that set) follow. waits has for each line {kind=, "
    "where=, who=, verdict=, kept=, because=, rounds=, needed_rounds=, costs_ms=, instead=}. "
    "verdict is \"needed\", \"redundant\", \"together\" (other waits do the same, and not all can "
    "be removed) or \"unknown\". An unknown wait orders things that the checker does not follow: "
    "host functions, an answer, atomic updates, output, peek. kept says whether it is in that set. "
    "costs_ms is the time that the program would save without it, by the device model. instead is "
    "a cheaper wait. "
    "record_streams has for each line that calls record_stream {where=, tensor=, stream=, "
    "verdict=, kept=, because=, rounds=}. `costs`: predict all costs, also of a long program. "
    "After Ctrl-C it has what was found so far: complete=false, interrupted=true; without "
    "sufficient, only needed waits are listed.") {
    static const char *const known[] = {"costs", NULL};
    mr_machine *machine = mr_set_context(L);
    state *s = state_of(L);
    if (!lua_isfunction(L, 1))
        return mr_misuse(L, "waits: expected a function, got %s", mr_type_text(L, 1));
    lua_settop(L, 2);
    mr_option_slots options = mr_check_options(L, 2, known);
    bool all_costs = mr_option_boolean(L, &options, "costs", false);
    refuse(L, s);
    recording *r = mr_push_owner(L, sizeof *r, drop_recording);
    mr_waits **box = mr_push_owner(L, sizeof(mr_waits *), drop_waits);
    mr_raise(L, begin(machine, r));
    s->function = r;
    lua_pushvalue(L, 1);
    int status = lua_pcall(L, 0, 0, 0);
    if (status == LUA_OK) {
        r->returned = mr_recorder_count(r->recorder);
        mr_push_module(L);
        lua_pushcclosure(L, run_functions, 1);
        status = lua_pcall(L, 0, 0, 0);
    }
    s->function = NULL;
    mr_set_context(L);
    if (status != LUA_OK && is_interrupted(machine) && takes_interrupt(machine)) {
        mr_waits nothing = {.interrupted = true};
        forget(r);
        push_result(L, &nothing);
        return 1;
    }
    if (status != LUA_OK) {
        forget(r);
        return lua_error(L);
    }
    mr_status judged = judge(L, r, all_costs, box);
    forget(r);
    mr_raise(L, judged);
    if ((*box)->interrupted && !takes_interrupt(machine)) mr_raise(L, was_interrupted());
    push_result(L, *box);
    return 1;
}

bool mr_bind_waits_running(lua_State *L) {
    return state_of(L)->function != NULL;
}

void mr_bind_waits_looks(lua_State *L, const char *what, const mr_storage *storage) {
    state *s = state_of(L);
    mr_waits_look look = {.what = what, .is_of_storage = storage != NULL};
    if (!s->function && !s->script.recorder) return;
    if (storage) look.storage = storage->id;
    look.where = mr_enter(L).where;
    note_look(s->function, look);
    note_look(&s->script, look);
}

void mr_bind_waits_repeats(lua_State *L, bool on) {
    state_of(L)->script.repeats = on;
}

/* --- for the host program ----------------------------------------------------------------------- */

void mr_bind_waits_predict(lua_State *L, const mr_backend *simulated) {
    state_of(L)->simulated = simulated;
}

mr_status mr_bind_waits_begin(lua_State *L) {
    state *s = state_of(L);
    return begin(s->machine, &s->script);
}

mr_status mr_bind_waits_end(lua_State *L, mr_buffer *out, bool *out_hazards) {
    state *s = state_of(L);
    mr_waits *waits = NULL;
    *out_hazards = false;
    if (!s->script.recorder) return MR_OK;
    s->machine->hooks.context = L;
    s->script.returned = mr_recorder_count(s->script.recorder);
    mr_status status = mr_machine_drain(s->machine);
    if (!status) status = judge(L, &s->script, false, &waits);
    forget(&s->script);
    if (status) return status;
    *out_hazards = waits->hazards > 0;
    mr_waits_write(waits, out);
    if (waits->interrupted) status = was_interrupted();
    mr_waits_destroy(waits);
    return status;
}

/* --- opening ------------------------------------------------------------------------------------ */

static int state_gc(lua_State *L) {
    state *s = lua_touserdata(L, 1);
    if (s->script.machine) forget(&s->script);
    return 0;
}

static const mr_function *const functions[] = {&waits_function, NULL};

const mr_class mr_waits_class = {
    "mr", "Which waits of a program are needed. docs/waits.md explains it.", functions, NULL, NULL};

void mr_open_waits(lua_State *L) {
    state *s = mr_push_owner(L, sizeof *s, state_gc);
    s->machine = mr_bind_machine(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &state_box);
    mr_table_open(L, &mr_waits_class);
}
