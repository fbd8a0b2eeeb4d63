/* Branches: a recorded run of the function, and the facts about its program that the search needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore/state.h"
#include "model/backend.h"
#include "tensor/tensor.h"

/* of a program; the memory of a search grows with the square of the number of commands */
#define MOST_ITEMS 100000
#define MOST_NODES 20000
#define NONE       UINT32_MAX

/* ---- running the function */

/* Takes over what the run noted besides its program. */
static mr_status take_notes(steer_script *steer, branch *b) {
    b->turns = steer->turns;
    b->queries = steer->queries;
    steer->turns = (host_turns){0};
    steer->queries = (task_queries){0};
    for (size_t i = 0; i < steer->functions.count; i++)
        if (!mr_vec_push(&b->variants.items[0].order, steer->functions.items[i]))
            return mr_no_memory("for an outcome");
    return MR_OK;
}

/* `b`: takes the notes of the run, or NULL. *out_strayed: it could not be forced into the plan. */
static mr_status record(const mr_explore_subject *subject, const plan *forced,
                        mr_program **out_program, mr_explore_value *value, branch *b,
                        plan *out_taken, bool *out_strayed) {
    mr_machine *machine = subject->machine;
    steer_script *steer;
    mr_recorder *recorder;
    bool gone;
    if (subject->begin) MR_TRY(subject->begin(subject->context));
    /* A player begins with an empty pool. */
    for (int i = 0; i < machine->device_count; i++) MR_TRY(mr_device_trim(machine->devices[i]));
    if (b) room_begin(machine, b);
    MR_TRY(steer_script_create(forced, &gone, &steer));
    steer->taken = out_taken;
    MR_TRY(machine->backend->simulator->use_chooser(machine, &steer->base));
    MR_TRY(mr_program_record(machine, MOST_ITEMS, &recorder));
    mr_status status = steer_script_attach(steer, machine, recorder);
    if (!status) status = subject->run(subject->context, value);
    bool is_left = steer->next < forced->steps.count && !subject->machine->lost; /* R50 */
    is_left |= steer->next_turn < forced->turns.count;
    *out_strayed = !gone && (steer->strayed || is_left);
    if (!gone && b) b->stages = steer->stages;
    if (!gone && !status && b) status = take_notes(steer, b);
    if (!gone) steer_script_detach(steer);
    if (status) {
        mr_recorder_abandon(recorder);
        return status;
    }
    MR_TRY(mr_recorder_finish(recorder, out_program));
    if (!gone) return MR_OK;
    mr_program_release(*out_program);
    *out_program = NULL;
    return mr_fail(MR_CODE_NOT_PERMITTED,
                   "the function changes the chooser, which the exploration has to set");
}

/* A program cannot rely on the number of launches that may be pending (R56). Without that limit the host waits only
 * where the rules say so, both in the function's run and in the player's. */
static mr_status record_unlimited(const mr_explore_subject *subject, const plan *forced,
                                  mr_program **out_program, mr_explore_value *value, branch *b,
                                  plan *out_taken, bool *out_strayed) {
    static const char depth[] = "launch_queue_depth";
    mr_machine *machine = subject->machine;
    const mr_simulator *simulator = machine->backend->simulator;
    int64_t limit;
    MR_TRY(simulator->get_setting(machine, depth, &limit));
    MR_TRY(simulator->set_setting(machine, depth, INT64_MAX));
    mr_status status = record(subject, forced, out_program, value, b, out_taken, out_strayed);
    mr_error_destroy(simulator->set_setting(machine, depth, limit));
    return status;
}

/* ---- the value */

static mr_status keep_part(branch *b, const mr_tensor *t) {
    value_part part = {.slot = mr_program_storage_slot(b->program, t->storage->id), .view = *t};
    part.view.storage = NULL;
    part.view.name = NULL;
    if (part.slot == NONE) {
        mr_buffer bytes = {0};
        mr_program_read(t, &bytes);
        part.bytes = bytes.data;
        part.size = bytes.size;
        if (bytes.failed) return mr_no_memory("for an outcome");
    }
    if (mr_vec_push(&b->parts, part)) return MR_OK;
    free(part.bytes);
    return mr_no_memory("for an outcome");
}

/* Keeps the current bytes of the value, as branch_value returns them after a schedule. */
static mr_status keep_own(const branch *b, const mr_explore_value *value, own_schedule *own) {
    own->text_size = value->text.size;
    mr_buffer_add(&own->value, value->text.data, value->text.size);
    for (size_t i = 0; i < value->tensors.count; i++) {
        const mr_tensor *t = value->tensors.items[i];
        if (t->storage->host && !t->storage->freed) mr_program_read(t, &own->value);
    }
    own->plan.until = (uint32_t)mr_program_count(b->program);
    return own->value.failed ? mr_no_memory("for an outcome") : MR_OK;
}

static mr_status keep_value(branch *b, mr_explore_value *value) {
    b->variants.items[0].text = value->text;
    value->text = (mr_buffer){0};
    for (size_t i = 0; i < value->tensors.count; i++) MR_TRY(keep_part(b, value->tensors.items[i]));
    return MR_OK;
}

/* ---- and what host functions make of it */

static bool ran_so(const branch *b, const plan *schedule, const function_order *ran) {
    size_t next = 0;
    for (size_t i = 0; i < schedule->steps.count; i++) {
        const plan_step *step = &schedule->steps.items[i];
        if (b->order.items[step->command].kind != MR_COMMAND_HOST_FUNCTION) continue;
        if (next == ran->count || ran->items[next].at != step->at ||
            ran->items[next].command != step->command)
            return false;
        next++;
    }
    return next == ran->count;
}

static mr_status run_whole(explorer *e, const plan *forced, branch **out_branch);

/* Whether the other run submitted the same commands as `b`: its host functions ran in another order, and only values
 * differ. */
static bool does_the_same(const branch *b, const branch *other, char *text, size_t size) {
    snprintf(text, size, "it submits its work in another order");
    if (other->strayed) return false;
    snprintf(text, size, "it returns another number of tensors");
    return mr_program_same(b->program, other->program, SIZE_MAX, text, size) &&
           other->parts.count == b->parts.count;
}

/* *out_added: false if the function submits other commands in that order. */
static mr_status add_variant(explorer *e, branch *b, const plan *schedule, bool *out_added) {
    branch *other;
    char text[400];
    *out_added = false;
    MR_TRY(run_whole(e, schedule, &other));
    mr_status status = MR_OK;
    if (does_the_same(b, other, text, sizeof text)) {
        *out_added = mr_vec_push(&b->variants, other->variants.items[0]);
        if (*out_added) other->variants.count = 0; /* it is b's */
        else status = mr_no_memory("for an outcome");
    }
    branch_destroy(e, other);
    return status;
}

/* *out: NULL if the function submits other commands in that order. */
static mr_status find_text(explorer *e, branch *b, const plan *schedule, const mr_buffer **out) {
    size_t i = 0;
    bool is_there = true;
    while (b->has_functions && i < b->variants.count &&
           !ran_so(b, schedule, &b->variants.items[i].order))
        i++;
    if (i == b->variants.count) MR_TRY(add_variant(e, b, schedule, &is_there));
    *out = is_there ? &b->variants.items[i].text : NULL;
    return MR_OK;
}

/* A player writes what the host functions wrote when they were recorded. In another order they may write other bytes,
 * so the function runs again in that order. If it then submits other commands, its own final value is one possible
 * outcome. */
static mr_status value_of_run(explorer *e, const branch *b, const plan *schedule, mr_buffer *out,
                              size_t *out_text_size) {
    own_schedule own = {0};
    branch *other = NULL;
    char text[400];
    mr_status status = branch_record(e, schedule, &own, &other);
    if (!status) {
        if (!does_the_same(b, other, text, sizeof text))
            explore_incomplete(e,
                               "what the function does depends on when its host functions run, and "
                               "only one order of what it does then was tried: %s",
                               text);
        out->size = 0;
        *out_text_size = own.text_size;
        mr_buffer_add(out, own.value.data, own.value.size);
        if (out->failed) status = mr_no_memory("for an outcome");
    }
    plan_free(&own.plan);
    mr_buffer_free(&own.value);
    branch_destroy(e, other);
    return status;
}

mr_status branch_value(explorer *e, branch *b, const plan *schedule, mr_buffer *out,
                       size_t *out_text_size) {
    const mr_buffer *text;
    if (b->functions_write && !ran_so(b, schedule, &b->variants.items[0].order))
        return value_of_run(e, b, schedule, out, out_text_size);
    MR_TRY(find_text(e, b, schedule, &text));
    if (!text) return value_of_run(e, b, schedule, out, out_text_size);
    out->size = 0;
    *out_text_size = text->size;
    mr_buffer_add(out, text->data, text->size);
    for (size_t i = 0; i < b->parts.count; i++) {
        const value_part *part = &b->parts.items[i];
        if (part->slot == NONE) mr_buffer_add(out, part->bytes, part->size);
        else mr_player_read(b->player, part->slot, &part->view, out);
    }
    return out->failed ? mr_no_memory("for an outcome") : MR_OK;
}

/* ---- looking at the program */

/* Whether the search must look at the device at item i. It carries out the items between two such items without a
 * look. */
static bool is_break(const branch *b, size_t i) {
    switch ((item_class)b->classes[i]) {
    case ITEM_PLAIN:
    case ITEM_WORK: return false;
    case ITEM_ALLOC: return b->order.aliases && !b->clean;
    case ITEM_HOST:
    case ITEM_WAIT:
    case ITEM_QUERY:
    case ITEM_COPY:
    case ITEM_LOOK:
    case ITEM_REFUSED: break;
    }
    return true;
}

static bool writes_inside(const branch *b, const mr_program_item *function) {
    for (uint32_t i = 0; i < function->inner_count; i++) {
        mr_program_item inner = mr_player_inner_at(b->player, function->inner + i);
        for (uint32_t k = 0; k < inner.operand_count; k++)
            if (inner.operands[k].access & MR_WRITE) return true;
    }
    return false;
}

static mr_status look_at_items(branch *b) {
    for (uint32_t i = 0; i < b->count; i++) {
        b->classes[i] = (uint8_t)order_class(&b->order, i);
        b->has_functions |= b->order.items[i].kind == MR_COMMAND_HOST_FUNCTION;
        mr_program_item it = mr_program_item_at(b->program, i);
        b->functions_write |= writes_inside(b, &it);
        if (b->classes[i] != ITEM_REFUSED) continue;
        if (!it.where.file)
            return mr_fail(MR_CODE_NOT_PERMITTED, "the function calls %s",
                           mr_explore_refusal(it.kind));
        return mr_fail(MR_CODE_NOT_PERMITTED, "the function calls %s (%s:%d)",
                       mr_explore_refusal(it.kind), it.where.file, it.where.line);
    }
    return MR_OK;
}

static void find_breaks(branch *b) {
    uint32_t next = b->count;
    for (uint32_t i = b->count; i-- > 0;) {
        if (is_break(b, i)) next = i;
        b->breaks_at[i] = next;
    }
    b->breaks_at[b->count] = b->count;
}

/* Builds the order without any decision. So a free counts as complete for the host or a stream only where the rules say
 * so, never because a schedule has carried it out. The result is the order by the rules alone. */
static mr_status go_by_the_rules(explorer *e, branch *b) {
    order *o = &b->order;
    mr_status status = MR_OK;
    for (uint32_t i = 0; i < b->count && o->aliases && !e->stop; i++) {
        rules_place(b, i, mr_program_item_at(b->program, i).came_true);
        if (i % 64 == 0) budget_look_at_clock(e);
    }
    if (o->aliases && !e->stop && !e->options.full) status = proof_of_memory(b, &b->clean);
    order_forget(o);
    return status;
}

static mr_status make_tables(branch *b) {
    b->classes = calloc(b->count + 1, sizeof *b->classes);
    b->breaks_at = calloc(b->count + 1, sizeof *b->breaks_at);
    b->may_miss = calloc(b->count + 1, sizeof *b->may_miss);
    b->told = calloc(b->count + 1, sizeof *b->told);
    if (!b->told || !b->may_miss || !b->classes || !b->breaks_at)
        return mr_no_memory("to explore a program");
    return look_at_items(b);
}

mr_status branch_open_player(explorer *e, branch *b) {
    mr_machine *machine = e->subject->machine;
    budget_trim_spares(e, budget_of_player(e, b));
    mr_player_options options = {
        .backend = machine->backend, .chooser = "manual", .memory_limit = machine->memory.limit};
    MR_TRY(mr_player_open(b->program, &options, &b->player));
    mr_machine *own = mr_player_machine(b->player);
    own->hooks.interrupted = budget_interrupts;
    own->hooks.context = e;
    MR_TRY(own->backend->simulator->set_setting(own, "launch_queue_depth", INT64_MAX));
    MR_TRY(steer_player_create(e->options.grain, &b->steer));
    MR_TRY(own->backend->simulator->use_chooser(own, &b->steer->base));
    /* It keeps all that the program overwrites. */
    if (!b->without_marks && budget_has_room(e, 2 * budget_of_player(e, b)))
        MR_TRY(mr_player_mark_make(b->player, &b->start));
    if (b->order.items) order_find_items(&b->order, b->player);
    if (b->edit.left_out) mr_player_edit(b->player, &b->edit);
    return MR_OK;
}

void branch_leave_out(branch *b, const bool *left_out) {
    b->edit.left_out = left_out;
    if (b->player) mr_player_edit(b->player, left_out ? &b->edit : NULL);
}

void branch_close_player(branch *b) {
    mr_player_mark_drop(b->start);
    mr_player_close(b->player);
    b->start = NULL;
    b->player = NULL;
}

mr_status branch_go_to_start(explorer *e, branch *b) {
    if (b->start) return mr_player_go_back(b->player, b->start);
    if (b->player) branch_close_player(b);
    return branch_open_player(e, b);
}

static void measure(branch *b) {
    const order *o = &b->order;
    size_t row = o->words_in_set * sizeof *o->words;
    b->fixed_bytes = mr_program_bytes(b->program) + o->word_count * sizeof *o->words +
                     b->count * sizeof *b->told + o->nodes.count * (row + sizeof *o->nodes.items);
    b->host_bytes = mr_program_host_bytes(b->program);
}

mr_status branch_open(explorer *e, branch *b) {
    MR_TRY(branch_open_player(e, b));
    MR_TRY(order_open(&b->order, b->player, e->options.grain));
    MR_TRY(make_tables(b));
    measure(b);
    sides_find(e, b);
    return MR_OK;
}

mr_status branch_order(explorer *e, branch *b) {
    size_t nodes = b->order.nodes.count;
    if (nodes > MOST_NODES)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "the function submits %zu commands, or parts of them; at most %d can be "
                       "explored: make the program smaller",
                       nodes, MOST_NODES);
    MR_TRY(order_begin(&b->order));
    b->conflicts = calloc(nodes * b->order.words_in_set + 1, sizeof *b->conflicts);
    b->known = calloc(nodes + 1, sizeof *b->known);
    if (!b->conflicts || !b->known) return mr_no_memory("to explore a program");
    MR_TRY(ready_open(&b->ready, &b->order));
    measure(b);
    MR_TRY(go_by_the_rules(e, b));
    MR_TRY(fresh_find(e, b));
    find_breaks(b);
    return MR_OK;
}

static mr_status check_exact(const mr_program *program) {
    const char *reason = mr_program_inexact(program);
    return reason ? mr_fail(MR_CODE_NOT_SUPPORTED, "the function cannot be explored: %s", reason)
                  : MR_OK;
}

mr_status branch_record(explorer *e, const plan *forced, own_schedule *out_own,
                        branch **out_branch) {
    mr_explore_value value = {0};
    branch *b = *out_branch = calloc(1, sizeof *b);
    if (!b) return mr_no_memory("to explore a program");
    e->branches++;
    e->subject->machine->random.seed = e->seed;
    e->subject->machine->random.draws = e->draws;
    e->result->runs++;
    double began = budget_now(e);
    mr_status status =
        mr_vec_push(&b->variants, (variant){0}) ? MR_OK : mr_no_memory("to explore a program");
    if (!status)
        status = record_unlimited(e->subject, forced, &b->program, &value, b,
                                  out_own ? &out_own->plan : NULL, &b->strayed);
    e->last_run = budget_now(e) - began;
    if (e->result->runs == 1) e->first_run = e->last_run;
    if (!status) b->count = (uint32_t)mr_program_count(b->program);
    e->result->stages |= b->stages;
    if (!status) status = check_exact(b->program);
    if (!status) room_judge(e, b);
    if (!status && out_own) status = keep_own(b, &value, out_own);
    if (!status) status = keep_value(b, &value);
    mr_explore_value_free(&value);
    if (e->subject->machine->lost) mr_machine_revive(e->subject->machine);
    if (!status) return MR_OK;
    branch_destroy(e, b);
    *out_branch = NULL;
    return status;
}

mr_status branch_prepare(explorer *e, branch *b) {
    mr_status status = branch_open(e, b);
    if (!status) status = branch_order(e, b);
    return status ? mr_player_error_outlives(e->subject->machine, status) : MR_OK;
}

static mr_status run_whole(explorer *e, const plan *forced, branch **out_branch) {
    MR_TRY(branch_record(e, forced, NULL, out_branch));
    mr_status status = branch_prepare(e, *out_branch);
    if (!status) return MR_OK;
    branch_destroy(e, *out_branch);
    *out_branch = NULL;
    return status;
}

mr_status branch_follow(const mr_explore_subject *subject, const plan *forced,
                        mr_explore_value *out_value, bool *out_followed) {
    mr_program *program = NULL;
    bool strayed = false;
    mr_status status = record_unlimited(subject, forced, &program, out_value, NULL, NULL, &strayed);
    *out_followed = !status && !strayed && mr_program_count(program) == forced->until;
    mr_program_release(program);
    return status;
}

void branch_destroy(explorer *e, branch *b) {
    if (!b) return;
    for (size_t i = 0; i < b->children.count; i++) branch_destroy(e, b->children.items[i]);
    mr_vec_free(&b->children);
    branch_close_player(b);
    order_close(&b->order);
    for (uint32_t i = 0; i < b->count && b->told; i++) {
        free(b->told[i].command);
        free(b->told[i].timed);
        free(b->told[i].step);
    }
    free(b->told);
    for (size_t i = 0; i < b->parts.count; i++) free(b->parts.items[i].bytes);
    mr_vec_free(&b->parts);
    for (size_t i = 0; i < b->variants.count; i++) {
        mr_buffer_free(&b->variants.items[i].text);
        mr_vec_free(&b->variants.items[i].order);
    }
    mr_vec_free(&b->variants);
    mr_vec_free(&b->turns);
    mr_vec_free(&b->queries);
    plan_free(&b->own.plan);
    mr_buffer_free(&b->own.value);
    mr_program_release(b->program);
    free(b->classes);
    free(b->may_miss);
    free(b->breaks_at);
    free(b->conflicts);
    free(b->known);
    ready_close(&b->ready);
    free(b->ruled);
    free(b->moments);
    free(b);
    e->branches--;
}

/* ---- who touches the same bytes: conflict.c */

static void fill_row(branch *b, uint32_t n) {
    const order_node *nodes = b->order.nodes.items;
    uint64_t *row = b->conflicts + (size_t)n * b->order.words_in_set;
    memset(row, 0, b->order.words_in_set * sizeof *row);
    bool conflict = false;
    for (uint32_t m = 0; m < n && nodes[m].item < nodes[n].item; m++) {
        if (!m || nodes[m].item != nodes[m - 1].item || nodes[m].parts != nodes[m - 1].parts)
            conflict = branch_conflict(b, m, n);
        if (conflict) row[m / 64] |= (uint64_t)1 << m % 64;
    }
    b->known[n] = !b->order.aliases || b->clean;
}

void branch_find_conflicts(branch *b, size_t first, size_t last) {
    if (last >= b->count) last = b->count - 1;
    if (!b->count || first > last) return;
    for (uint32_t n = b->order.first_node[first]; n < b->order.first_node[last + 1]; n++)
        if (!b->known[n]) fill_row(b, n);
}
