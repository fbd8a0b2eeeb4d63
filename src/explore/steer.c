/* The choosers of the exploration: see steer.h. Easiest to break: the steps before an item must run before the item has
 * any effect. In a run of the function they run when an observer is asked to permit the item (`may`). The recorder has
 * read memory before that. */
#include "explore/steer.h"

#include <stdlib.h>
#include <string.h>

#include "model/backend.h"

/* ---- offers, in the order in which they were made */

static void take_out(mr_device_step *items, size_t *count, size_t i, mr_device_step *out_step) {
    *out_step = items[i];
    --*count;
    memmove(items + i, items + i + 1, (*count - i) * sizeof *items);
}

static void withdraw_from(mr_device_step *items, size_t *count, const void *work) {
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        if (items[i].work != work) items[kept++] = items[i];
    *count = kept;
}

static size_t find(const mr_device_step *items, size_t count, const mr_command *command) {
    size_t i = 0;
    while (i < count && items[i].command != command) i++;
    return i;
}

/* ---- for a player */

static bool player_offer(mr_chooser *chooser, const mr_device_step *step) {
    steer_player *s = (steer_player *)chooser;
    return mr_vec_push(&s->offers, *step);
}

static bool take_wanted(steer_player *s, mr_device_step *out_step) {
    if (s->next == s->wanted_count) return false;
    size_t i = find(s->offers.items, s->offers.count, s->wanted[s->next]);
    if (i == s->offers.count) return false;
    take_out(s->offers.items, &s->offers.count, i, out_step);
    s->next++;
    return true;
}

static bool take_any(steer_player *s, mr_device_step *out_step) {
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < s->offers.count; i++)
            if (pass || s->allowed(s->context, s->offers.items[i].command)) {
                take_out(s->offers.items, &s->offers.count, i, out_step);
                s->went(s->context, out_step->command);
                return true;
            }
    return false;
}

static bool player_take(mr_chooser *chooser, const mr_moment *moment, mr_device_step *out_step) {
    steer_player *s = (steer_player *)chooser;
    if (moment->point <= MR_CHOICE_SUBMIT) return false;
    if (take_wanted(s, out_step)) return true;
    return moment->point == MR_CHOICE_WAIT && take_any(s, out_step);
}

static void player_withdraw(mr_chooser *chooser, const void *work) {
    steer_player *s = (steer_player *)chooser;
    withdraw_from(s->offers.items, &s->offers.count, work);
}

static void player_clear(mr_chooser *chooser) {
    ((steer_player *)chooser)->offers.count = 0;
}

static void player_destroy(mr_chooser *chooser) {
    mr_vec_free(&((steer_player *)chooser)->offers);
    free(chooser);
}

/* For an allocation this chooses only whether it sees complete frees of other streams. The other policies of R30 depend
 * on the order alone. */
static bool is_asked(mr_open_choice what) {
    return what != MR_OPEN_REUSE_EVENT && what != MR_OPEN_REUSE_WAIT;
}

static bool player_decide(mr_chooser *chooser, mr_open_choice what, const mr_command *command,
                          bool usual) {
    const steer_player *s = (const steer_player *)chooser;
    (void)command;
    return s->answered && is_asked(what) ? s->answer : usual;
}

static size_t player_saved_size(const mr_chooser *chooser) {
    const steer_player *s = (const steer_player *)chooser;
    return sizeof s->offers.count + s->offers.count * sizeof *s->offers.items;
}

static void player_save(const mr_chooser *chooser, void *out_copy) {
    const steer_player *s = (const steer_player *)chooser;
    memcpy(out_copy, &s->offers.count, sizeof s->offers.count);
    if (s->offers.count)
        memcpy((char *)out_copy + sizeof s->offers.count, s->offers.items,
               s->offers.count * sizeof *s->offers.items);
}

/* The vector never shrinks, so its earlier contents fit. */
static void player_load(mr_chooser *chooser, const void *copy) {
    steer_player *s = (steer_player *)chooser;
    memcpy(&s->offers.count, copy, sizeof s->offers.count);
    if (s->offers.count)
        memcpy(s->offers.items, (const char *)copy + sizeof s->offers.count,
               s->offers.count * sizeof *s->offers.items);
}

mr_status steer_player_create(uint32_t grain, steer_player **out_steer) {
    steer_player *s = *out_steer = calloc(1, sizeof *s);
    if (!s) return mr_no_memory("for a chooser");
    s->base = (mr_chooser){.name = "explorer",
                           .whole = grain < 2,
                           .slices = grain,
                           .offer = player_offer,
                           .take = player_take,
                           .withdraw = player_withdraw,
                           .clear = player_clear,
                           .destroy = player_destroy,
                           .decide = player_decide,
                           .saved_size = player_saved_size,
                           .save = player_save,
                           .load = player_load};
    return MR_OK;
}

/* ---- for a run of the function */

/* The item that the host is at. */
static uint32_t present(const steer_script *s) {
    return s->recorder ? (uint32_t)mr_recorder_count(s->recorder) : UINT32_MAX;
}

/* Usually the one after the last that was looked up. */
static uint32_t item_of(steer_script *s, const mr_command *command) {
    size_t low = s->next_submitted, high = s->submitted.count;
    bool is_next = low < high && s->submitted.items[low].seq == command->seq;
    if (!is_next) low = 0;
    else high = low;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->submitted.items[middle].seq < command->seq) low = middle + 1;
        else high = middle;
    }
    s->next_submitted = low + 1;
    if (low < s->submitted.count && s->submitted.items[low].seq == command->seq)
        return s->submitted.items[low].item;
    return UINT32_MAX;
}

static bool script_offer(mr_chooser *chooser, const mr_device_step *step) {
    steer_script *s = (steer_script *)chooser;
    return mr_vec_push(&s->offers, *step);
}

static bool is_planned(const steer_script *s) {
    return s->next < s->plan->steps.count && s->plan->steps.items[s->next].at <= present(s);
}

static bool take_planned(steer_script *s, mr_device_step *out_step) {
    uint32_t command = s->plan->steps.items[s->next].command;
    for (size_t i = 0; i < s->offers.count; i++)
        if (item_of(s, s->offers.items[i].command) == command) {
            take_out(s->offers.items, &s->offers.count, i, out_step);
            s->next++;
            return true;
        }
    return false;
}

/* The oldest: what was submitted first. */
static bool take_oldest(steer_script *s, mr_device_step *out_step) {
    size_t oldest = 0;
    if (!s->offers.count) return false;
    for (size_t i = 1; i < s->offers.count; i++)
        if (s->offers.items[i].command->seq < s->offers.items[oldest].command->seq) oldest = i;
    take_out(s->offers.items, &s->offers.count, oldest, out_step);
    return true;
}

/* After the plan's end the host waits for as little as possible, and each query finds all work done, so that polling
 * loops end. */
static bool take_next(steer_script *s, const mr_moment *moment, mr_device_step *out_step) {
    if (moment->point == MR_CHOICE_LOOK || moment->point == MR_CHOICE_SUBMIT) return false;
    if (is_planned(s) && !s->strayed) {
        if (take_planned(s, out_step)) return true;
        if (moment->point != MR_CHOICE_WAIT) return false; /* this item has not submitted it yet */
        s->strayed = true;
    }
    if (moment->point == MR_CHOICE_WAIT) return take_oldest(s, out_step);
    if (moment->point != MR_CHOICE_QUERY || present(s) < s->plan->until) return false;
    return take_oldest(s, out_step);
}

/* After the plan's end: the first host, which also goes on without a chooser. */
static uint32_t script_choose(mr_host_chooser *hosts, const mr_host_choice *choice) {
    steer_script *s = (steer_script *)((char *)hosts - offsetof(steer_script, hosts));
    uint32_t number = (uint32_t)s->turns.count, who = 0;
    for (uint32_t i = 0; i < choice->count && s->plan->eager; i++)
        if (!(choice->waits >> i & 1)) return i;
    if (s->next_turn < s->plan->turns.count && s->plan->turns.items[s->next_turn].number == number)
        who = s->plan->turns.items[s->next_turn++].who;
    if (who >= choice->count) {
        s->strayed = true;
        who = 0;
    }
    if (!mr_vec_push(&s->turns, ((host_turn){present(s), *choice}))) s->strayed = true;
    return who;
}

static bool script_take(mr_chooser *chooser, const mr_moment *moment, mr_device_step *out_step) {
    steer_script *s = (steer_script *)chooser;
    if (!take_next(s, moment, out_step)) return false;
    plan_step step = {present(s), item_of(s, out_step->command)};
    if (out_step->command->kind == MR_COMMAND_HOST_FUNCTION && !mr_vec_push(&s->functions, step))
        s->strayed = true;
    if (s->taken && !mr_vec_push(&s->taken->steps, step)) s->strayed = true;
    return true;
}

static void script_withdraw(mr_chooser *chooser, const void *work) {
    steer_script *s = (steer_script *)chooser;
    withdraw_from(s->offers.items, &s->offers.count, work);
}

static void script_clear(mr_chooser *chooser) {
    ((steer_script *)chooser)->offers.count = 0;
}

static void script_destroy(mr_chooser *chooser) {
    steer_script *s = (steer_script *)chooser;
    if (s->gone) *s->gone = true;
    steer_script_detach(s);
    mr_vec_free(&s->offers);
    mr_vec_free(&s->submitted);
    mr_vec_free(&s->functions);
    mr_vec_free(&s->turns);
    mr_vec_free(&s->queries);
    free(s);
}

static bool script_decide(mr_chooser *chooser, mr_open_choice what, const mr_command *command,
                          bool usual) {
    steer_script *s = (steer_script *)chooser;
    (void)command;
    s->stages |= what == MR_OPEN_H2D_ASYNC;
    if (s->next_answer == s->plan->answers.count || !is_asked(what)) return usual;
    const plan_answer *a = &s->plan->answers.items[s->next_answer];
    if (a->at != present(s)) return usual;
    return a->yes;
}

static void let_move(steer_script *s) {
    mr_machine *machine = s->machine;
    while (s->next_answer < s->plan->answers.count &&
           s->plan->answers.items[s->next_answer].at < present(s))
        s->next_answer++;
    if (!is_planned(s) || s->strayed || machine->host_function.running || machine->lost) return;
    mr_error_destroy(machine->backend->host_access(machine)); /* R49: a later call finds it */
}

static steer_script *steer_of(mr_observer *observer) {
    return (steer_script *)((char *)observer - offsetof(steer_script, observer));
}

const mr_host_ask *steer_ask_at(const task_queries *queries, uint32_t item) {
    size_t low = 0, high = queries->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (queries->items[middle].at < item) low = middle + 1;
        else high = middle;
    }
    bool is_there = low < queries->count && queries->items[low].at == item;
    return is_there ? &queries->items[low].ask : NULL;
}

static mr_status script_may(mr_observer *observer, const mr_command *command) {
    steer_script *s = steer_of(observer);
    const mr_host_ask *asks = s->machine->hosts.asks;
    let_move(s);
    if (asks && mr_command_is(command, MR_TRAIT_QUERY) &&
        !mr_vec_push(&s->queries, ((task_query){present(s), *asks})))
        return mr_no_memory("to explore schedules");
    if (mr_command_is(command, MR_TRAIT_LAUNCH) && !s->machine->host_function.running) {
        /* Observers are asked about all members of a meeting before the first one is submitted. */
        struct submitted one = {command->seq, present(s) + command->member};
        if (!mr_vec_push(&s->submitted, one)) return mr_no_memory("to explore schedules");
    }
    return MR_OK;
}

static void script_did(mr_observer *observer, const mr_command *command, bool host_waited) {
    (void)observer, (void)command, (void)host_waited;
}

static void script_before(mr_observer *observer) {
    let_move(steer_of(observer));
}

mr_status steer_script_create(const plan *forced, bool *out_gone, steer_script **out_steer) {
    steer_script *s = *out_steer = calloc(1, sizeof *s);
    if (!s) return mr_no_memory("for a chooser");
    *out_gone = false;
    s->gone = out_gone;
    s->plan = forced;
    s->base = (mr_chooser){.name = "explorer",
                           .whole = forced->grain < 2,
                           .slices = forced->grain,
                           .offer = script_offer,
                           .take = script_take,
                           .withdraw = script_withdraw,
                           .clear = script_clear,
                           .destroy = script_destroy,
                           .decide = script_decide};
    s->hosts.choose = script_choose;
    return MR_OK;
}

mr_status steer_script_attach(steer_script *s, mr_machine *machine, const mr_recorder *recorder) {
    s->recorder = recorder;
    s->observer = (mr_observer){.name = "explorer",
                                .everything = true,
                                .may = script_may,
                                .did = script_did,
                                .before = script_before};
    MR_TRY(mr_observer_add(machine, &s->observer));
    s->machine = machine;
    machine->hosts.chooser = &s->hosts;
    return MR_OK;
}

void steer_script_detach(steer_script *s) {
    static const plan none = {.grain = 1};
    /* until the machine gets another chooser it may still ask this one for steps */
    s->plan = &none;
    s->taken = NULL;
    s->gone = NULL;
    if (s->machine) {
        mr_observer_remove(s->machine, &s->observer);
        s->machine->hosts.chooser = NULL;
    }
    s->machine = NULL;
    s->recorder = NULL;
}
