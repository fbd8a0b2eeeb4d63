/* Messages between the processes of a world: see world.h. */
#include "collective/world_parts.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void mr_message_add(mr_buffer *out, uint64_t number) {
    mr_buffer_add(out, (const char *)&number, sizeof number);
}

void mr_message_add_text(mr_buffer *out, const char *text) {
    mr_message_add(out, text ? strlen(text) + 1 : 0);
    if (text) mr_buffer_add(out, text, strlen(text) + 1);
}

uint64_t mr_message_number(message *in) {
    uint64_t number = 0;
    if (in->size - in->at < sizeof number) in->fine = false;
    if (!in->fine) return 0;
    memcpy(&number, in->bytes + in->at, sizeof number);
    in->at += sizeof number;
    return number;
}

const char *mr_message_text(message *in) {
    uint64_t size = mr_message_number(in);
    const char *text = in->bytes + in->at;
    if (!size || size > in->size - in->at || text[size - 1]) {
        in->fine = in->fine && !size;
        return NULL;
    }
    in->at += size;
    return text;
}

mr_status mr_world_send(mr_world *w, uint32_t to, mr_buffer *bytes) {
    if (bytes->failed) {
        mr_buffer_free(bytes);
        return mr_no_memory("for a message to rank %u", to);
    }
    const char *why = w->fabric->send(w->fabric, to, bytes->data, bytes->size);
    *bytes = (mr_buffer){0};
    return why ? mr_fail(MR_CODE_UNKNOWN, "a message to rank %u was not sent: %s", to, why) : MR_OK;
}

void mr_world_tell_failure(mr_world *w, mr_code code, const char *text) {
    for (uint32_t k = 0; k < w->fabric->size; k++) {
        mr_buffer out = {0};
        if (k == w->fabric->rank || w->ended & (uint64_t)1 << k) continue;
        mr_message_add(&out, MESSAGE_FAILED);
        mr_message_add(&out, (uint64_t)code);
        mr_message_add_text(&out, text);
        mr_error_destroy(mr_world_send(w, k, &out));
    }
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Pauses get longer, up to a millisecond, so that waiting ranks leave the processor to working ones. The first tries do
 * not pause, as ranks with devices of their own come within microseconds. */
static void pause_for(unsigned tries) {
    long ns = tries < 400 ? 20000 : 1000000;
    if (tries < 200) sched_yield();
    else nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* The time-out error: names the waiting calls that rank `missing` does not join. */
static mr_status timed_out(mr_world *w, uint32_t missing) {
    mr_buffer text = {0};
    mr_site last = w->last[missing];
    for (uint32_t k = 0; k < w->fabric->size; k++) mr_host_tell(w->c, k, &text);
    mr_buffer_printf(&text, "; rank %u has not come", missing);
    if (last.file)
        mr_buffer_printf(&text, ", and was seen last at %.100s:%d", last.file, last.line);
    mr_status status =
        mr_fail(MR_CODE_NO_PEER, "time-out: rank %u has waited for rank %u for %g s:%s",
                w->fabric->rank, missing, w->timeout, text.data ? text.data : "");
    mr_buffer_free(&text);
    return status;
}

static mr_status read_failure(mr_world *w, message *in) {
    mr_code code = (mr_code)mr_message_number(in);
    const char *text = mr_message_text(in);
    if (!w->failure) w->failure = mr_fail(code, "%s", text ? text : "another rank has failed");
    free(in->bytes);
    in->bytes = NULL;
    return MR_OK;
}

static void set_failure(mr_world *w, void *bytes, size_t size) {
    message in = {.bytes = bytes, .size = size, .fine = true};
    mr_message_number(&in);
    mr_error_destroy(read_failure(w, &in));
}

void mr_world_look(mr_world *w) {
    for (uint32_t k = 0; k < w->fabric->size; k++) {
        early_message one;
        if (k == w->fabric->rank || (w->ended >> k & 1)) continue;
        while (w->fabric->receive(w->fabric, k, &one.bytes, &one.size) == MR_ARRIVAL_MESSAGE) {
            if (*(uint64_t *)one.bytes == MESSAGE_FAILED) {
                set_failure(w, one.bytes, one.size);
            } else if (!mr_vec_push(&w->early[k], one)) {
                free(one.bytes);
                if (!w->failure) w->failure = mr_no_memory("for a message of rank %u", k);
            }
        }
    }
}

/* Messages that came while the host waited for its device go first. */
static mr_arrival take_next(mr_world *w, uint32_t from, void **out_bytes, size_t *out_size) {
    if (!w->early[from].count) return w->fabric->receive(w->fabric, from, out_bytes, out_size);
    early_message *all = w->early[from].items;
    *out_bytes = all[0].bytes;
    *out_size = all[0].size;
    w->early[from].count--;
    memmove(all, all + 1, w->early[from].count * sizeof *all);
    return MR_ARRIVAL_MESSAGE;
}

/* True: the message is what the rank hands over at its end; it is kept until mr_world_gather. */
static bool keep_last(mr_world *w, uint32_t from, void *bytes, size_t size) {
    if (*(uint64_t *)bytes != MESSAGE_LAST) return false;
    free(w->handed[from].bytes);
    w->handed[from] = (early_message){bytes, size};
    return true;
}

mr_status mr_world_receive(mr_world *w, uint32_t from, message *out) {
    mr_machine *machine = w->c->machine;
    double begin = seconds();
    *out = (message){.fine = true};
    for (unsigned tries = 0;; tries++) {
        void *bytes;
        mr_arrival came = take_next(w, from, &bytes, &out->size);
        if (came == MR_ARRIVAL_MESSAGE && keep_last(w, from, bytes, out->size)) continue;
        if (came == MR_ARRIVAL_GONE) w->ended |= (uint64_t)1 << from;
        if (came == MR_ARRIVAL_MESSAGE) out->bytes = bytes;
        if (came != MR_ARRIVAL_NONE) break;
        if (machine->hooks.interrupted && machine->hooks.interrupted(machine->hooks.context))
            return mr_fail(MR_CODE_INTERRUPTED, "interrupted while waiting for rank %u", from);
        if (w->timeout > 0 && seconds() - begin > w->timeout) return timed_out(w, from);
        pause_for(tries);
    }
    if (!out->bytes || *(uint64_t *)(void *)out->bytes != MESSAGE_FAILED) return MR_OK;
    mr_message_number(out);
    return read_failure(w, out);
}

/* ---- ends */

#define PATIENCE 4 /* seconds, where a rank has failed: less than the transport has (mpi.c) */

mr_status mr_world_hand_over(mr_collectives *c, mr_buffer *bytes) {
    mr_buffer out = {0};
    mr_message_add(&out, MESSAGE_LAST);
    if (bytes->size) mr_buffer_add(&out, bytes->data, bytes->size);
    out.failed |= bytes->failed;
    mr_buffer_free(bytes);
    return mr_world_send(c->world, 0, &out);
}

void mr_world_gather(mr_collectives *c, mr_world_handed out[MR_MEETING_MOST]) {
    mr_world *w = c->world;
    bool failed = w->failed || w->failure;
    double timeout = w->timeout;
    mr_status status = MR_OK;
    w->fabric->close(w->fabric, w->failed);
    if (failed && (timeout <= 0 || timeout > PATIENCE)) w->timeout = PATIENCE;
    for (uint32_t k = 1; k < w->fabric->size; k++) {
        while (!status && !(w->ended >> k & 1)) {
            message in;
            status = mr_world_receive(w, k, &in);
            free(in.bytes);
        }
        const early_message *handed = &w->handed[k];
        out[k] = (mr_world_handed){0};
        if (handed->bytes)
            out[k] = (mr_world_handed){(const char *)handed->bytes + sizeof(uint64_t),
                                       handed->size - sizeof(uint64_t)};
    }
    w->timeout = timeout;
    mr_error_destroy(status);
}
