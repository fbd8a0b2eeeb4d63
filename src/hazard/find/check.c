/* The observer: for each command, updates the order and has its accesses checked (touch.c). Easiest to break: in error
 * mode a command is checked before it runs, and that check must change no state. */
#include "hazard/explain.h"
#include "model/hosts.h"
#include "ops/kernel.h"

/* ---- copies: the waits of host and streams (R20-R24, R60) */

/* Updates the order for a command of a stream, then checks its accesses. A check ahead (`only_look`) does the same, and
 * is followed by mr_hazard_order_restore. */
static bool order_and_touch(checker *c, const mr_command *command, actor *a, bool only_look) {
    bool staged =
        command->kind == MR_COMMAND_COPY && mr_order_copy_guaranteed(command).reads_source;
    if (staged) mr_hazard_read_staged(c, command, a, only_look);
    bool carries = mr_hazard_order_before(c, a, command);
    if (c->advice.on && a->legacy && !only_look) carries = mr_hazard_advise_carries(c, a);
    mr_hazard_touch_operands(c, command, a, staged, only_look);
    return carries;
}

static void copy_command(checker *c, const mr_command *command, actor *a, bool host_waited) {
    mr_copy_direction direction = command->u.copy.direction;
    bool synchronous = command->u.copy.synchronous;
    mr_order_copy_rules rules = mr_order_copy_guaranteed(command);
    bool host_waits = rules.until_done && host_waited;
    if (MR_BROKEN(COPY_SYNC)) host_waits = false;
    if (MR_BROKEN(COPY_ASYNC)) host_waits = true;
    if (MR_BROKEN(COPY_D2D) && synchronous && direction == MR_COPY_D2D) host_waits = true;
    if (MR_BROKEN(STAGED) && rules.reads_source) host_waits = true;
    if (!host_waits) return;
    mr_order_facts facts = a->lane.facts | MR_FACT_FOR_ITSELF;
    if (mr_place_in(mr_order_returned(facts, MR_GUARANTEED), MR_PLACE_NODE))
        mr_hazard_order_stream_sync(c, a, command->seq);
}

/* ---- mr.reset */

/* mr.reset releases device memory, but host memory keeps its bytes. True: a pending write to host memory may or may not
 * have been carried out by then. */
static bool host_memory_is_written(const checker *c) {
    for (const history *h = c->histories.all; h; h = h->next)
        for (uint32_t i = 0; h->storage->kind != MR_MEMORY_DEVICE && i < h->count; i++)
            if ((h->entries[i]->access & MR_WRITE) &&
                !mr_hazard_all_know(c, h->entries[i]->actor, h->entries[i]->seq))
                return true;
    return mr_hazard_functions_left(c, -1) > 0;
}

static void forget_everything(checker *c) {
    if (host_memory_is_written(c)) mr_claims_add(&c->totals.claims, MR_CLAIM_RESET);
    c->totals.claims.count[MR_CLAIM_UNFINISHED] += mr_hazard_kernels_left(c, -1);
    mr_hazard_drop_collected(c);
    mr_hazard_history_drop_all(c);
    mr_hazard_histories_begin(c); /* host memory has kept its values */
    mr_hazard_order_close(c);
    mr_hazard_order_open(c);
}

/* ---- commands */

static void use_record(checker *c, snapshot *s) {
    if (c->advice.on && !s->used) mr_hazard_advise_used(c, s);
    s->used = true;
}

/* R27: cudaFree is an action of the host, whatever stream allocated the memory. */
static actor *freeing_actor(checker *c, actor *a, const mr_command *command) {
    return command->u.at_once && !MR_BROKEN(FREE_AT_ONCE) ? &c->order.host_actor : a;
}

static void memory_command(checker *c, actor *a, const mr_command *command) {
    if (command->kind == MR_COMMAND_ALLOC) {
        mr_hazard_order_alloc(c, a, command->seq);
        mr_hazard_alloc(c, a, command);
        return;
    }
    if (!command->u.at_once) mr_hazard_order_free(c, a, command->seq);
    mr_hazard_free_memory(c, freeing_actor(c, a, command), command, false);
}

/* The load of a module gives its variables their values: the script did not submit that. */
static bool is_initial_value(const mr_command *command) {
    if (command->kind != MR_COMMAND_COPY) return false;
    const mr_storage *from = command->operands[1].tensor->storage;
    return from->of_module && from->kind == MR_MEMORY_PINNED;
}

/* The values exist before any command can use them. No other order follows: the load waits for streams on the virtual
 * GPU and with some drivers, but not by CUDA's rules. */
static void module_loaded(checker *c, const mr_command *command) {
    history *h = mr_hazard_history_of(c, command->operands[0].tensor->storage);
    if (!h) return;
    mr_hazard_unset_drop(h);
    if (h->alloc_actor) mr_hazard_actor_release(c, h->alloc_actor);
    h->alloc_actor = NULL;
}

/* Whether its accesses, or its failure, become known only when it runs. */
static bool tells_when_it_runs(const mr_command *command) {
    switch (command->kind) {
    case MR_COMMAND_OP: {
        const mr_op *row = command->u.op.row;
        return mr_kernel_escapes_of(command) || (row && row->family->may_fail);
    }
    case MR_COMMAND_FAULT: return true;
    case MR_COMMAND_COPY:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return false;
}

/* R61. Devices also order members that get no data from each other, but that is not guaranteed. */
static void meet(checker *c, actor *a, const mr_command *command) {
    mr_order_set rows = mr_order_of_meeting(MR_GUARANTEED);
    for (; rows; rows &= rows - 1)
        if (mr_order_first(rows)->from == MR_PLACE_SOURCES) {
            mr_hazard_in_flight_note(c, a, command);
            mr_hazard_order_meet(c, a, command);
        }
}

static void submitted(checker *c, const mr_command *command, bool host_waited) {
    actor *a = mr_hazard_actor_of(c, command->stream);
    if (!a) return;
    if (c->functions.may_be_done) mr_hazard_functions_drop(c, false);
    if (__builtin_expect(a->idle_wait != 0, 0)) mr_hazard_advise_active(c, a);
    if (mr_command_has(command, MR_PART_MEMORY)) {
        memory_command(c, a, command);
        a->worked = a->did = command->seq;
        return;
    }
    if (is_initial_value(command)) {
        module_loaded(c, command);
        return;
    }
    if (tells_when_it_runs(command)) a->launched = command->seq;
    bool carries = order_and_touch(c, command, a, false);
    if (command->operand_count) mr_command_asks_collector(command);
    if (__builtin_expect(command->meeting != NULL, 0)) meet(c, a, command);
    bool marks = !carries && mr_kind_is_of_event(command->kind);
    if (!marks) a->worked = a->did = command->seq;
    switch (command->kind) {
    case MR_COMMAND_OP:
    case MR_COMMAND_FAULT: c->totals.operations++; break;
    case MR_COMMAND_COPY:
        c->totals.operations++;
        copy_command(c, command, a, host_waited);
        break;
    case MR_COMMAND_RECORD:
        mr_hazard_order_record(c, a, command, carries);
        if (command->u.event.event->timing)
            a->worked = a->did = command->seq; /* a time is asked for */
        if (c->advice.on) mr_hazard_advise_record(c, command, carries);
        break;
    case MR_COMMAND_WAIT: {
        snapshot *s = mr_hazard_snapshot_of(command);
        bool news = s && mr_hazard_advise_news(c, a, s);
        bool added = s && mr_hazard_order_wait(c, a, command->seq, s) && news;
        if (added) a->worked = command->seq;
        if (s) use_record(c, s);
        if (c->advice.on) mr_hazard_advise_wait(c, command, added, carries);
        if (c->reports.recent_next) mr_hazard_amend(c, a, command);
        break;
    }
    case MR_COMMAND_HOST_FUNCTION:
        c->totals.operations++;
        mr_hazard_function_add(c, a, command);
        break;
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
}

/* Later actions of the host come after what it has waited for. */
static void order_host(checker *c, const mr_command *command) {
    if (c->advice.on) mr_hazard_advise_sync(c, command);
    actor *a = command->stream ? mr_hazard_actor_of(c, command->stream) : NULL;
    mr_order_facts facts = mr_order_facts_of_kind(command->kind, a ? a->lane.facts : 0);
    mr_order_set set = mr_order_find(facts, MR_AT_RETURN, MR_GUARANTEED);
    for (; set; set &= set - 1) {
        switch ((mr_place)mr_order_first(set)->from) {
        case MR_PLACE_LANE:
            if (a) mr_hazard_order_stream_sync(c, a, command->seq);
            break;
        case MR_PLACE_RECORD: {
            snapshot *s = mr_hazard_snapshot_of(command);
            if (!s) break;
            use_record(c, s);
            mr_hazard_order_event_sync(c, s);
            break;
        }
        case MR_PLACE_DEVICE:
            mr_hazard_order_device_sync(c, command->u.device, command->seq);
            break;
        case MR_PLACE_GATHERED: /* only seen (R5) */
        case MR_PLACE_NODE:
        case MR_PLACE_HOST:
        case MR_PLACE_RELEASED:
        case MR_PLACE_WALL:
        case MR_PLACE_SOURCES:
        case MR_PLACE_MEETING:
        case MR_PLACE_FREED:
        case MR_PLACE_USERS:
        case MR_PLACE_OWNER: break;
        }
    }
}

static void host_did(checker *c, const mr_command *command) {
    switch (command->kind) {
    case MR_COMMAND_HOST_ACCESS: mr_hazard_host_access(c, command, false); break;
    case MR_COMMAND_RESET:
        mr_hazard_functions_waited(c);
        forget_everything(c);
        break;
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
        mr_hazard_functions_waited(c);
        if (!MR_BROKEN(QUERY)) order_host(c, command);
        break;
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
        mr_hazard_functions_waited(c);
        order_host(c, command);
        break;
        MR_SUBMITTED_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
}

mr_status mr_hazard_refuse(checker *c) {
    mr_status refusal = c->reports.refusal;
    c->reports.refusal = MR_OK;
    return refusal;
}

static void look_ahead(checker *c, const mr_command *command, actor *a) {
    order_before before;
    if (!command->operand_count) return;
    mr_hazard_order_save(c, a, command, &before);
    if (MR_BROKEN(LOOK_WITHOUT_ORDER)) mr_hazard_touch_operands(c, command, a, false, true);
    else order_and_touch(c, command, a, true);
    mr_hazard_order_restore(c, &before);
}

static void look_at_command(checker *c, const mr_command *command, actor *a) {
    switch (command->kind) {
    case MR_COMMAND_HOST_ACCESS: mr_hazard_host_access(c, command, true); break;
    case MR_COMMAND_FREE:
        mr_hazard_free_memory(c, freeing_actor(c, a, command), command, true);
        break;
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT: look_ahead(c, command, a); break;
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_RESET: MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
}

/* Error mode: finds what the command would race with, and changes nothing. */
static void check_ahead(checker *c, const mr_command *command) {
    /* the explanation of a race searches the log for both sides */
    mr_hazard_log_command(c, command);
    actor *a = mr_command_is(command, MR_TRAIT_SUBMITTED) ? mr_hazard_actor_of(c, command->stream)
                                                          : &c->order.host_actor;
    if (a && a != &c->order.host_actor && c->functions.may_be_done)
        mr_hazard_functions_drop(c, false);
    if (a) look_at_command(c, command, a);
    mr_hazard_publish_held(c);
    mr_hazard_log_take_back(c);
}

/* The next call raises an error that could not be raised where it happened: for a tensor collected by Lua, or without
 * memory to keep a command. */
static mr_status may(mr_observer *observer, const mr_command *command) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    mr_hazard_host_is(c, c->machine->rank);
    if (mr_hazard_is_collected(command)) return MR_OK;
    if (c->reports.collected.count) mr_hazard_flush_collected(c);
    if (c->mode == MR_HAZARD_ERROR && !c->reports.refusal) check_ahead(c, command);
    if (__builtin_expect(c->reports.refusal != MR_OK, 0)) return mr_hazard_refuse(c);
    if (__builtin_expect(!c->out_of_memory, 1)) return MR_OK;
    c->out_of_memory = false;
    return mr_no_memory("for the hazard checker; mr.hazard.mode(\"off\") frees what it holds");
}

static void host_is(mr_observer *observer, uint16_t rank) {
    mr_hazard_host_is((checker *)((char *)observer - offsetof(checker, observer)), rank);
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    mr_hazard_host_is(c, c->machine->rank);
    mr_hazard_log_command(c, command);
    if (c->advice.on) mr_hazard_advise_command(c, command);
    mr_claims_did(&c->totals.claims, command);
    if (mr_command_is(command, MR_TRAIT_SUBMITTED)) submitted(c, command, host_waited);
    else host_did(c, command);
    if (mr_hazard_functions_pending(c) && !c->machine->host_function.command)
        mr_hazard_functions_note(c, command);
    if (__builtin_expect(c->reports.held.count != 0, 0) && !c->machine->host_function.command)
        mr_hazard_publish_held(c);
    if (__builtin_expect(c->withdrawing.may_settle, 0) && !c->reports.held.count)
        mr_hazard_settle(c);
}

static void failed(mr_observer *observer, const mr_command *command, const mr_error *status) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    mr_claims_failed(&c->totals.claims, command, status);
}

static void lost(mr_observer *observer, const mr_error *error) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    mr_claims_lost(&c->totals.claims, error);
}

static void drew(mr_observer *observer) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    mr_claims_add(&c->totals.claims, MR_CLAIM_DRAWN);
}

static void learned(mr_observer *observer) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    if (c->mode != MR_HAZARD_OFF) mr_claims_add(&c->totals.claims, MR_CLAIM_LEARNED);
}

static void finalized(mr_observer *observer) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    if (c->mode != MR_HAZARD_OFF) mr_claims_add(&c->totals.claims, MR_CLAIM_FINALIZED);
}

static void shared(mr_observer *observer, const char *what, mr_site where) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    (void)what, (void)where;
    if (c->mode != MR_HAZARD_OFF) mr_claims_add(&c->totals.claims, MR_CLAIM_OUTSIDE);
}

static void function_ran(mr_observer *observer, const mr_command *command) {
    mr_hazard_function_ran((checker *)((char *)observer - offsetof(checker, observer)), command);
}

/* ---- calls of mr.graph.auto, which are judged like plain calls */

static void reused(mr_observer *observer, mr_storage *storage, uint64_t first, uint64_t last) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    history *h = storage->observed;
    h->reused = c->machine->counts.next_seq;
    for (uint32_t i = h->count; i-- > 0;)
        if (h->entries[i]->seq >= first && h->entries[i]->seq <= last)
            mr_hazard_history_remove(c, h, h->entries[i]);
}

static void renumbered(mr_observer *observer, mr_event *event) {
    (void)observer;
    ((snapshot *)event->observed)->known_as = event->record_seq;
}

/* ---- objects that go */

static void storage_gone(mr_observer *observer, mr_storage *storage) {
    mr_hazard_history_drop((checker *)((char *)observer - offsetof(checker, observer)),
                           storage->observed);
}

static void stream_gone(mr_observer *observer, mr_stream *stream) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    if (stream->observed) mr_hazard_actor_lose(c, stream->observed);
    mr_hazard_log_stream_gone(c, stream);
}

static void event_gone(mr_observer *observer, mr_event *event) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    snapshot *s = event->observed;
    mr_hazard_snapshot_free(c, s);
}

const mr_observer mr_hazard_observer = {.name = "hazard",
                                        .as_written = true,
                                        .may = may,
                                        .did = did,
                                        .failed = failed,
                                        .lost = lost,
                                        .host_is = host_is,
                                        .drew = drew,
                                        .learned = learned,
                                        .finalized = finalized,
                                        .shared = shared,
                                        .found = mr_hazard_found_in_kernel,
                                        .touched = mr_hazard_touched,
                                        .unset = mr_hazard_unset_before,
                                        .function_ran = function_ran,
                                        .reused = reused,
                                        .renumbered = renumbered,
                                        .storage_gone = storage_gone,
                                        .stream_gone = stream_gone,
                                        .event_gone = event_gone};
