#include "collective/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/fiber.h"
#include "collective/calls.h"
#include "model/backend.h"
#include "model/hosts.h"

typedef enum { NOT_STARTED, RUNS, PARKED, GAVE_WAY, ENDED } rank_state;

/* The state of a host while another one runs. */
typedef struct {
    mr_device *device;
    /* current on each device; one reference each while the host does not run */
    mr_stream **streams;
    uint32_t epoch; /* of these */
    uint64_t seed, draws;
    uint64_t clocks[2]; /* of a simulator: the host's clock, and its device's */
    mr_host_looks looks;
    uint32_t depth; /* of groups */
} host;

typedef struct {
    struct mr_ranks *ranks;
    uint32_t number;
    rank_state state;
    bool waits; /* it lets others run before a wait */
    mr_fiber *fiber;
    host host;
    mr_status refusal; /* of its call, while it was parked; NULL: none */
    mr_status status;
} rank;

typedef struct mr_ranks {
    mr_collectives *c;
    const mr_rank_functions *functions;
    uint32_t count;
    rank *current;     /* NULL: the scheduler */
    rank *turn;        /* whose clocks run; usually `current` */
    mr_status failure; /* the error with which every parked rank is woken */
    rank *culprit;     /* the rank with that error; NULL: a deadlock */
    rank *first;       /* the first rank that ended by an error */
    rank *next;        /* the rank chosen to go on; NULL: not yet chosen */
    mr_comm *world[MR_MEETING_MOST];
    rank ranks[MR_MEETING_MOST];
} ranks;

uint32_t mr_ranks_current(const mr_collectives *c) {
    if (c->world) return c->own_host - 1;
    return c->ranks && c->ranks->current ? c->ranks->current->number : MR_MEETING_MOST;
}

uint32_t mr_ranks_count(const mr_collectives *c) {
    if (c->world) return c->own_comm->clique->size;
    return c->ranks ? c->ranks->count : 1;
}

mr_status mr_ranks_separated(const mr_collectives *c) {
    if (c->world) return mr_world_separated(c);
    return c->ranks && c->ranks->failure ? mr_error_copy(c->ranks->failure) : MR_OK;
}

mr_comm *mr_ranks_world(const mr_collectives *c) {
    if (c->world) return c->own_comm;
    return c->ranks->world[c->ranks->current->number];
}

/* ---- hosts */

static mr_status host_open(const mr_collectives *c, host *h) {
    h->streams = calloc((size_t)c->machine->device_count, sizeof(mr_stream *));
    return h->streams ? MR_OK : mr_no_memory("for ranks");
}

static void host_close(const mr_collectives *c, host *h) {
    for (int i = 0; i < c->machine->device_count && h->streams; i++)
        mr_stream_release(h->streams[i]);
    free(h->streams);
}

static void keep_stream(host *h, int device, mr_stream *stream) {
    mr_stream_retain(stream);
    mr_stream_release(h->streams[device]);
    h->streams[device] = stream;
}

static void save_host(const mr_collectives *c, host *h) {
    const mr_machine *machine = c->machine;
    const mr_simulator *simulator = machine->backend->simulator;
    h->device = machine->current_device;
    for (int i = 0; i < machine->device_count; i++) keep_stream(h, i, machine->devices[i]->current);
    h->epoch = machine->epoch;
    h->seed = machine->random.seed;
    h->draws = machine->random.draws;
    h->looks = machine->host.looks;
    h->depth = c->depth;
    if (simulator) simulator->clocks(c->machine, h->clocks);
}

static uint16_t rank_of(const rank *self) {
    return self ? (uint16_t)(self->number + 1) : 0;
}

/* If another rank has closed the stream, or reset the machine, the default stream becomes current, as at the end of
 * mr.with. */
static void load_host(mr_collectives *c, const host *h) {
    mr_machine *machine = c->machine;
    const mr_simulator *simulator = machine->backend->simulator;
    for (int i = 0; i < machine->device_count && h->epoch == machine->epoch; i++) {
        mr_stream *stream = h->streams[i];
        mr_error_destroy(mr_stream_set_current(stream->closed ? stream->device->legacy : stream));
    }
    mr_machine_set_device(machine, h->device);
    machine->random.seed = h->seed;
    machine->random.draws = h->draws;
    mr_observers_host_is(machine, rank_of(c->ranks ? c->ranks->current : NULL));
    machine->host.looks = h->looks;
    c->depth = h->depth;
    if (simulator) simulator->set_clocks(machine, h->clocks);
}

const mr_stream *mr_ranks_stream(const mr_collectives *c, uint32_t number) {
    const ranks *r = c->ranks;
    const mr_device *device = c->machine->current_device;
    const rank *asked = r && number < r->count ? &r->ranks[number] : NULL;
    if (!asked || asked == r->current) return device->current;
    device = asked->host.device;
    const mr_stream *stream = asked->host.streams[device->index];
    return stream->closed ? device->legacy : stream;
}

/* A collective is submitted by the rank that came last. Each host pays for its own part. */
static void turn(mr_collectives *c, uint32_t number) {
    ranks *r = c->ranks;
    const mr_simulator *simulator = c->machine->backend->simulator;
    if (!simulator || !r->turn || rank_of(r->turn) == number) return;
    simulator->clocks(c->machine, r->turn->host.clocks);
    r->turn = &r->ranks[number - 1];
    simulator->set_clocks(c->machine, r->turn->host.clocks);
}

static const mr_hosts fibers = {.turn = turn};

/* ---- one rank */

static void run_rank(void *context) {
    rank *self = context;
    self->status = self->ranks->functions->run(self->ranks->functions->context, self->number);
}

/* Called by the scheduler; returns when the rank parks, gives way or ends. */
static void go_on(ranks *r, rank *self) {
    self->state = RUNS;
    r->next = NULL;
    r->current = r->turn = self;
    load_host(r->c, &self->host);
    if (r->functions->enter) r->functions->enter(r->functions->context, self->number);
    bool has_ended = mr_fiber_enter(self->fiber);
    save_host(r->c, &self->host);
    r->current = NULL;
    if (has_ended) self->state = ENDED;
    else if (self->state == RUNS) self->state = PARKED;
}

static bool has_calls(const mr_collectives *c, const rank *self) {
    for (size_t i = 0; i < c->calls.count; i++)
        if (c->calls.items[i].host == rank_of(self)) return true;
    return false;
}

/* ---- who goes on */

static bool may_go_on(const ranks *r, const rank *self) {
    if (self->state == NOT_STARTED || self->state == RUNS || self->state == GAVE_WAY) return true;
    return self->state == PARKED && (r->failure || !has_calls(r->c, self));
}

/* The next rank to run, in turn from rank `first` on: without a chooser, the first that can go on. NULL: none can. */
static rank *choose(ranks *r, uint32_t first, mr_site where) {
    mr_host_choice choice = {.where = where};
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t k = (first + i) % r->count;
        if (!may_go_on(r, &r->ranks[k])) continue;
        choice.waits |= (uint64_t)r->ranks[k].waits << choice.count;
        choice.numbers[choice.count++] = k;
    }
    if (!choice.count) return NULL;
    return &r->ranks[choice.numbers[mr_host_choose(r->c->machine, &choice)]];
}

/* Lets the chooser run another rank first. */
static void let_others(ranks *r, rank *self, mr_site where) {
    rank *next = choose(r, self->number, where);
    if (next != self || r->functions->each_turn) {
        r->next = next;
        self->state = GAVE_WAY;
        mr_fiber_leave(self->fiber);
    }
    self->waits = false;
}

static void give_way(void *context, mr_site where) {
    ranks *r = context;
    rank *self = r->current;
    if (!self || r->c->machine->host_function.running) return;
    self->waits = true;
    let_others(r, self, where);
}

/* A refusal by the checker leaves no trace: the ranks of that collective get the error, and all of them can go on.
 * Their calls are dropped now, as another rank may call again before they have been woken. */
static void refuse(ranks *r, const rank *self, const mr_error *error) {
    uint64_t refused = 0;
    for (size_t i = 0; i < r->c->calls.count; i++)
        if (r->c->calls.items[i].refused) refused |= (uint64_t)1 << (r->c->calls.items[i].host - 1);
    for (uint32_t k = 0; k < r->count; k++) {
        if (!(refused >> k & 1) || &r->ranks[k] == self) continue;
        r->ranks[k].refusal = mr_error_copy(error);
        mr_collectives_drop(r->c, 0, k + 1);
    }
}

static mr_status take_refusal(rank *self) {
    mr_status refusal = self->refusal;
    self->refusal = MR_OK;
    return refusal;
}

mr_status mr_ranks_settle(mr_collectives *c) {
    ranks *r = c->ranks;
    rank *self = r->current;
    if (r->failure) return mr_error_copy(r->failure);
    mr_status status = mr_collectives_settle(c);
    if (status && status->code == MR_CODE_HAZARD) {
        refuse(r, self, status);
        return status;
    }
    if (status) { /* the other ranks wait for this one */
        r->failure = mr_error_copy(status);
        r->culprit = self;
        return status;
    }
    bool has_met = !has_calls(c, self); /* it came last: the others can go on, too */
    while (has_calls(c, self) && !r->failure) mr_fiber_leave(self->fiber);
    if (self->refusal) return take_refusal(self);
    if (has_met && c->machine->hosts.give_way) let_others(r, self, (mr_site){0});
    return has_calls(c, self) ? mr_error_copy(r->failure) : MR_OK; /* else it was submitted */
}

/* ---- deadlocks */

static mr_status deadlock(const ranks *r) {
    uint64_t ended = 0;
    for (uint32_t k = 0; k < r->count; k++)
        if (r->ranks[k].state == ENDED) ended |= (uint64_t)1 << k;
    return mr_hosts_deadlock(r->c, r->count, ended);
}

/* ---- all of them */

/* A rank that ends by an error leaves the others without a peer. */
static void note_end(ranks *r, rank *self) {
    if (self->state != ENDED || !self->status) return;
    if (!r->first) r->first = self;
    if (r->failure) return;
    r->failure = mr_fail(self->status->code, "rank %u has ended by an error: %s", self->number,
                         self->status->message);
    r->culprit = self;
}

static void run_all(ranks *r) {
    uint32_t from = 0;
    for (uint32_t left = r->count; left;) {
        rank *self = r->next ? r->next : choose(r, from, (mr_site){0});
        if (!self) {
            r->failure = deadlock(r);
            from = 0;
            continue;
        }
        go_on(r, self);
        note_end(r, self);
        left -= self->state == ENDED;
        from = (self->number + 1) % r->count;
    }
}

/* The state of a new process, except for the clock and the seed. */
static mr_status make_host(const mr_collectives *c, const host *outer, mr_device *device, host *h) {
    MR_TRY(host_open(c, h));
    h->device = device;
    for (int i = 0; i < c->machine->device_count; i++)
        keep_stream(h, i, c->machine->devices[i]->legacy);
    h->epoch = outer->epoch;
    h->seed = outer->seed;
    h->draws = outer->draws;
    memcpy(h->clocks, outer->clocks, sizeof h->clocks);
    return MR_OK;
}

static mr_status make_ranks(ranks *r, const host *outer) {
    mr_device *const *devices = r->c->machine->devices;
    MR_TRY(mr_comms_create(r->c, devices, r->count, "world", r->world));
    for (uint32_t k = 0; k < r->count; k++) {
        rank *self = &r->ranks[k];
        *self = (rank){.ranks = r, .number = k};
        MR_TRY(make_host(r->c, outer, devices[k], &self->host));
        self->fiber = mr_fiber_new(run_rank, self);
        if (!self->fiber) return mr_no_memory("for the stack of rank %u", k);
    }
    return MR_OK;
}

/* The host goes on when the last rank has ended. */
static void join_clocks(const ranks *r, host *outer) {
    for (uint32_t k = 0; k < r->count; k++)
        for (int i = 0; i < 2; i++)
            if (outer->clocks[i] < r->ranks[k].host.clocks[i])
                outer->clocks[i] = r->ranks[k].host.clocks[i];
}

/* The error of a deadlock or a mismatch is given to all ranks, so the order in which they continue does not matter. */
static const rank *lowest(const ranks *r) {
    for (uint32_t k = 0; k < r->count; k++)
        if (r->ranks[k].status) return &r->ranks[k];
    return NULL;
}

/* The error of the rank that failed first, not of the ranks that lost their peer by that; unless it has caught its
 * own. */
static mr_status first_error(const ranks *r, mr_ranks_failure *out_failure) {
    bool is_deadlock = r->failure && !r->culprit;
    bool is_mismatch = r->failure && r->failure->code == MR_CODE_COLLECTIVE_MISMATCH;
    const rank *first = r->culprit && r->culprit->status ? r->culprit : r->first;
    if (is_deadlock || is_mismatch) first = lowest(r);
    if (!first) return MR_OK;
    *out_failure = (mr_ranks_failure){first->number, is_deadlock};
    return mr_error_copy(first->status);
}

static mr_status check(const mr_collectives *c, const mr_rank_functions *functions) {
    if (mr_collectives_have_ranks(c))
        return mr_fail(MR_CODE_NOT_PERMITTED,
                       "spawn: a rank cannot start ranks of its own: run a script that calls "
                       "mr.dist.spawn without --ranks, or call the function itself");
    if (c->depth) return mr_fail(MR_CODE_NOT_PERMITTED, "spawn: not inside mr.nccl.group");
    if (functions->count >= 1 && (int)functions->count <= c->machine->device_count) return MR_OK;
    return mr_fail(
        MR_CODE_INVALID_ARGUMENT,
        "spawn: %u ranks need as many devices, and this machine has %d: " MR_MORE_DEVICES,
        functions->count, c->machine->device_count, functions->count, functions->count);
}

static mr_status run_world(ranks *r, host *outer, mr_ranks_failure *out_failure) {
    mr_collectives *c = r->c;
    save_host(c, outer);
    c->ranks = r;
    memset(c->last, 0, sizeof c->last);
    c->hosts = &fibers;
    if (c->machine->hosts.chooser) {
        c->machine->hosts.give_way = give_way;
        c->machine->hosts.context = r;
    }
    mr_status status = make_ranks(r, outer);
    if (!status) {
        run_all(r);
        join_clocks(r, outer);
        status = first_error(r, out_failure);
    }
    c->ranks = NULL;
    c->hosts = NULL;
    c->machine->hosts.give_way = NULL;
    load_host(c, outer);
    if (r->functions->enter) r->functions->enter(r->functions->context, MR_MEETING_MOST);
    return status;
}

mr_status mr_ranks_run(mr_collectives *c, const mr_rank_functions *functions,
                       mr_ranks_failure *out_failure) {
    MR_TRY(mr_machine_ready(c->machine));
    MR_TRY(check(c, functions));
    ranks *r = calloc(1, sizeof *r);
    if (!r) return mr_no_memory("for ranks");
    r->c = c;
    r->functions = functions;
    r->count = functions->count;
    host outer = {0};
    mr_status status = host_open(c, &outer);
    if (!status) status = run_world(r, &outer, out_failure);
    host_close(c, &outer);
    for (uint32_t k = 0; k < r->count; k++) {
        mr_fiber_free(r->ranks[k].fiber);
        host_close(c, &r->ranks[k].host);
        mr_error_destroy(r->ranks[k].refusal);
        mr_error_destroy(r->ranks[k].status);
        mr_comm_release(r->world[k]);
    }
    mr_error_destroy(r->failure);
    free(r);
    return status;
}
