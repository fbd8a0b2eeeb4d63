/* Delays at random: see stress.h. An observer that submits work of its own when it is told of a command. Easiest to
 * break: it is told of its own commands, too. And a query must not show a delay: for the script, a stream whose work is
 * done is idle even if a delay is pending. So an event is recorded before the delays at the end of a stream. If that
 * event is complete when the script asks, the delays end first. */
#include "explore/stress.h"

#include <stdlib.h>

#include "model/backend.h"
#include "model/observer.h"
#include "ops/call.h"

#define MOST_STREAMS 64
#define SHORTEST_NS  1000

typedef struct {
    mr_stream *stream; /* one reference */
    mr_event *before; /* recorded behind the script's work, before the delays; NULL: not yet made */
    bool ends_in_delay;
    /* the script's work was done when the first of these delays came: `before` is not needed */
    bool was_idle;
} met_stream;

struct mr_stress {
    mr_observer observer;
    mr_machine *machine;
    uint64_t state, longest;
    bool busy;
    met_stream streams[MOST_STREAMS]; /* met so far, also closed ones */
    uint32_t count;
};

/* splitmix64 */
static uint64_t draw(mr_stress *s) {
    uint64_t z = s->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Short and long delays are equally likely. */
static uint64_t draw_length(mr_stress *s) {
    uint64_t length = SHORTEST_NS << draw(s) % 16;
    length += draw(s) % length;
    return length < s->longest ? length : s->longest;
}

static met_stream *find(mr_stress *s, const mr_stream *stream) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->streams[i].stream == stream) return &s->streams[i];
    return NULL;
}

static void meet(mr_stress *s, mr_stream *stream) {
    if (s->count == MOST_STREAMS || find(s, stream)) return;
    mr_stream_retain(stream);
    s->streams[s->count++] = (met_stream){.stream = stream};
}

static bool is_usable(const mr_stress *s, const mr_stream *stream) {
    return !stream->closed && stream->epoch == s->machine->epoch;
}

static mr_status mark_end(met_stream *m, const mr_caller *caller) {
    mr_event_options options = {.timing = false};
    if (m->ends_in_delay) return MR_OK;
    MR_TRY(caller->machine->backend->stream_query(m->stream, &m->was_idle));
    m->ends_in_delay = m->was_idle;
    if (m->was_idle) return MR_OK;
    if (!m->before) MR_TRY(mr_event_create(caller, &options, &m->before));
    MR_TRY(mr_event_record(caller, m->before, m->stream));
    m->ends_in_delay = true;
    return MR_OK;
}

static void delay(mr_stress *s, met_stream *m, mr_site where) {
    if (!is_usable(s, m->stream)) return;
    if (s->machine->deferred_error)
        return; /* the error is from a host function: the script's next call must raise it */
    mr_caller caller = {.machine = s->machine, .where = where, .name = "delay"};
    s->busy = true;
    mr_status status = mark_end(m, &caller);
    if (!status) status = mr_spin(&caller, m->stream, draw_length(s));
    mr_error_destroy(status); /* a later call finds it, too (R49) */
    s->busy = false;
}

/* An error is ignored here: the query itself finds it, too. */
static void end_delays(mr_stress *s, const met_stream *m) {
    const mr_backend *backend = s->machine->backend;
    bool done = m->was_idle;
    if (!m->ends_in_delay || !is_usable(s, m->stream)) return;
    if (!done) mr_error_destroy(backend->event_query(m->before, &done));
    if (done) mr_error_destroy(backend->stream_synchronize(m->stream));
}

/* A query of the default stream depends on other streams, too. */
static mr_status may(mr_observer *observer, const mr_command *command) {
    mr_stress *s = (mr_stress *)((char *)observer - offsetof(mr_stress, observer));
    if (command->kind != MR_COMMAND_STREAM_QUERY || s->busy || s->machine->lost) return MR_OK;
    for (uint32_t i = 0; i < s->count; i++) end_delays(s, &s->streams[i]);
    return MR_OK;
}

/* So idle streams begin their next work at different times, and busy streams end late. */
static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    mr_stress *s = (mr_stress *)((char *)observer - offsetof(mr_stress, observer));
    (void)host_waited;
    if (s->busy || s->machine->host_function.running || s->machine->lost) return;
    if (command->kind == MR_COMMAND_STREAM_CREATE) { /* its first work may be late, too */
        meet(s, command->stream);
        met_stream *fresh = find(s, command->stream);
        if (fresh && draw(s) & 1) delay(s, fresh, command->where);
    }
    if (mr_command_is(command, MR_TRAIT_LAUNCH)) {
        meet(s, command->stream);
        met_stream *own = find(s, command->stream);
        if (own) own->ends_in_delay = false;
        met_stream *m = draw(s) & 1 && own ? own : &s->streams[draw(s) % s->count];
        if (draw(s) & 1) delay(s, m, command->where);
    } else if (mr_command_kinds[command->kind].after != MR_AFTER_NOTHING) {
        for (uint32_t i = 0; i < s->count; i++)
            if (draw(s) & 1) delay(s, &s->streams[i], command->where);
    }
}

mr_status mr_stress_begin(mr_machine *machine, uint64_t seed, uint64_t longest_ns,
                          mr_stress **out_stress) {
    mr_stress *s = *out_stress = calloc(1, sizeof *s);
    if (!s) return mr_no_memory("for delays");
    s->observer = (mr_observer){.name = "stress", .may = may, .did = did};
    s->machine = machine;
    s->state = seed;
    s->longest = longest_ns < SHORTEST_NS ? SHORTEST_NS : longest_ns;
    mr_status status = mr_observer_add(machine, &s->observer);
    if (!status) return MR_OK;
    free(s);
    *out_stress = NULL;
    return status;
}

void mr_stress_end(mr_stress *s) {
    if (!s) return;
    mr_observer_remove(s->machine, &s->observer);
    for (uint32_t i = 0; i < s->count; i++) {
        mr_event_release(s->streams[i].before);
        mr_stream_release(s->streams[i].stream);
    }
    free(s);
}
