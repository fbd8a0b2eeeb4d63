/* Delays at random: see stress.h. An observer that submits work of its own when it is told of a command. Easiest to break:
 * it is told of that, too. */
#include "explore/stress.h"

#include <stdlib.h>

#include "model/observer.h"
#include "ops/call.h"

#define MOST_STREAMS 64
#define SHORTEST_NS  1000

struct mr_stress {
    mr_observer observer;
    mr_machine *machine;
    uint64_t state, longest;
    bool busy;
    mr_stream *streams[MOST_STREAMS]; /* met so far; a reference each, also of closed ones */
    uint32_t count;
};

/* splitmix64 */
static uint64_t draw(mr_stress *s) {
    uint64_t z = s->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* As likely a short one as a long one. */
static uint64_t draw_length(mr_stress *s) {
    uint64_t length = SHORTEST_NS << draw(s) % 16;
    length += draw(s) % length;
    return length < s->longest ? length : s->longest;
}

static void meet(mr_stress *s, mr_stream *stream) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->streams[i] == stream) return;
    if (s->count == MOST_STREAMS) return;
    mr_stream_retain(stream);
    s->streams[s->count++] = stream;
}

static void delay(mr_stress *s, mr_stream *stream, mr_site where) {
    if (stream->closed || stream->epoch != s->machine->epoch) return;
    if (s->machine->deferred_error)
        return; /* of a host function: the script's next call is to raise it */
    mr_caller caller = {.machine = s->machine, .where = where, .name = "delay"};
    s->busy = true;
    mr_error_destroy(
        mr_spin(&caller, stream, draw_length(s))); /* a later call finds it, too (R49) */
    s->busy = false;
}

/* Streams that are idle begin their next work at different times, and those that work are late. */
static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    mr_stress *s = (mr_stress *)((char *)observer - offsetof(mr_stress, observer));
    (void)host_waited;
    if (s->busy || s->machine->in_host_function || s->machine->lost) return;
    if (command->kind == MR_COMMAND_STREAM_CREATE) meet(s, command->stream);
    if (mr_command_is(command, MR_TRAIT_LAUNCH)) {
        meet(s, command->stream);
        mr_stream *stream = draw(s) & 1 ? command->stream : s->streams[draw(s) % s->count];
        if (draw(s) & 1) delay(s, stream, command->where);
    } else if (mr_command_kinds[command->kind].after != MR_AFTER_NOTHING) {
        for (uint32_t i = 0; i < s->count; i++)
            if (draw(s) & 1) delay(s, s->streams[i], command->where);
    }
}

mr_status mr_stress_begin(mr_machine *machine, uint64_t seed, uint64_t longest_ns,
                          mr_stress **out_stress) {
    mr_stress *s = *out_stress = calloc(1, sizeof *s);
    if (!s) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for delays");
    s->observer = (mr_observer){.name = "stress", .did = did};
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
    for (uint32_t i = 0; i < s->count; i++) mr_stream_release(s->streams[i]);
    free(s);
}
