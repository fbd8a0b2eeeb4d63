/* The error when no rank can go on: what each rank waits for, and what to change. */
#include "collective/calls.h"

#define NONE MR_MEETING_MOST

/* Ranks of a communicator, as ranks of the world. */
static uint64_t ranks_of(const mr_clique *clique, uint64_t members) {
    uint64_t found = 0;
    for (; members; members &= members - 1)
        found |= (uint64_t)1 << mr_clique_host(clique, (uint32_t)__builtin_ctzll(members));
    return found;
}

/* The call in which a rank waits, and the ranks that it waits for, as bits. No call: it does not wait. */
typedef struct {
    const pending_call *call;
    uint64_t missing;
} stand;

static stand stand_of(mr_collectives *c, uint32_t number) {
    for (size_t i = 0; i < c->calls.count; i++) {
        const pending_call *call = &c->calls.items[i];
        if (call->host == number + 1)
            return (stand){call, ranks_of(call->ask.comm->clique, mr_collectives_missing(c, i))};
    }
    return (stand){0};
}

void mr_host_tell(mr_collectives *c, uint32_t number, mr_buffer *out) {
    const stand s = stand_of(c, number);
    char title[120], place[MR_COLLECTIVE_PLACE];
    if (!s.call) return;
    mr_buffer_printf(out, "%s rank %u waits in `%s`", out->size ? ";" : "", number, s.call->name);
    if (s.call->where.file)
        mr_buffer_printf(out, " at %s", mr_collective_place(s.call, place, sizeof place));
    mr_buffer_printf(out, ", in %s, for ",
                     mr_clique_describe(s.call->ask.comm->clique, title, sizeof title));
    if (s.missing) mr_ranks_tell(s.missing, out);
    else mr_buffer_puts(out, "an earlier operation of the communicator");
    if (s.missing == (uint64_t)1 << number) mr_buffer_puts(out, " (itself)");
}

/* ---- why */

/* The cause: a rank that waits for one that has ended, or a circle of ranks. */
typedef struct {
    /* the rank that waits for an ended one; NONE: it is a circle */
    uint32_t waits;
    uint32_t ended; /* with it */
    /* the kinds of calls in which the circle waits; `several` communicators */
    bool sends, receives, collects, several;
    uint32_t size; /* ranks of the circle */
} cause;

static uint32_t lowest(uint64_t ranks) {
    return ranks ? (uint32_t)__builtin_ctzll(ranks) : NONE;
}

/* Each rank waits for the next one, so from some rank on they form a circle. */
static void follow_circle(const stand *stands, cause *out) {
    uint32_t at = 0;
    const mr_clique *clique = NULL;
    while (at < NONE && !stands[at].missing) at++;
    for (uint32_t i = 0; i < NONE && at < NONE; i++) at = lowest(stands[at].missing);
    for (uint64_t seen = 0; at < NONE && !(seen >> at & 1); at = lowest(stands[at].missing)) {
        const pending_call *call = stands[at].call;
        seen |= (uint64_t)1 << at;
        if (!call) return;
        out->size++;
        out->sends |= call->ask.way == MR_PEER_SEND;
        out->receives |= call->ask.way == MR_PEER_RECV;
        out->collects |= !call->ask.way;
        out->several |= clique && clique != call->ask.comm->clique;
        clique = call->ask.comm->clique;
    }
}

static cause find_cause(const stand *stands, uint32_t count, uint64_t ended) {
    cause found = {.waits = NONE};
    for (uint32_t k = 0; k < count && found.waits == NONE; k++)
        if (stands[k].missing & ended)
            found = (cause){.waits = k, .ended = lowest(stands[k].missing & ended)};
    if (found.waits == NONE) follow_circle(stands, &found);
    return found;
}

static const char *rule_of(const stand *stands, const cause *why) {
    if (why->waits != NONE) return stands[why->waits].call->ask.way ? "R66" : "R62";
    bool messages = why->sends || why->receives;
    if (messages && !why->collects) return "R66";
    return why->several && !messages ? "R64" : "R62";
}

/* ---- what to change */

/* Names the call that the rank has not made, and its last call. */
static void tell_ended(const mr_collectives *c, const pending_call *waiting, uint32_t rank,
                       mr_buffer *out) {
    static const char *const peers[] = {[MR_PEER_SEND] = "recv", [MR_PEER_RECV] = "send"};
    const pending_call last = {.where = c->last[rank].where, .launched = c->last[rank].launched};
    char title[120], place[MR_COLLECTIVE_PLACE];
    mr_buffer_printf(out, " without its `%s` in %s",
                     waiting->ask.way ? peers[waiting->ask.way] : waiting->name,
                     mr_clique_describe(waiting->ask.comm->clique, title, sizeof title));
    if (c->last[rank].name)
        mr_buffer_printf(out, ": its last call was `%s` at %s", c->last[rank].name,
                         mr_collective_place(&last, place, sizeof place));
    else mr_buffer_puts(out, ": it has called no collective");
}

static void tell_remedy_of_ended(const stand *stands, const cause *why, mr_buffer *out) {
    static const char *const calls[] = {[MR_PEER_NONE] = "make this call, too",
                                        [MR_PEER_SEND] = "receive this message",
                                        [MR_PEER_RECV] = "send this message"};
    mr_buffer_printf(out, ". Let rank %u %s, or rank %u leave its call out", why->ended,
                     calls[stands[why->waits].call->ask.way], why->waits);
}

static const char *remedy_of(const cause *why) {
    if (why->size == 1)
        return ". A message to the rank itself needs its send and its recv in one "
               "mr.nccl.group(function() ... end)";
    if (why->sends && !why->collects)
        return ". Put the send and the recv of each rank in one mr.nccl.group(function() ... end)";
    if (why->receives && !why->collects)
        return ". Each waits to receive before it sends: let one of them send first";
    if (why->several && !why->sends && !why->receives)
        return ". All ranks must use the communicators in the same order";
    return ". All ranks must call the same operations in the same order";
}

mr_status mr_hosts_deadlock(mr_collectives *c, uint32_t count, uint64_t ended) {
    mr_buffer text = {0};
    stand stands[MR_MEETING_MOST] = {{0}};
    for (uint32_t k = 0; k < count; k++) stands[k] = stand_of(c, k);
    cause why = find_cause(stands, count, ended);
    for (uint32_t k = 0; k < count; k++) mr_host_tell(c, k, &text);
    if (ended) {
        mr_buffer_puts(&text, "; ");
        mr_ranks_tell(ended, &text);
        mr_buffer_puts(&text, ended & (ended - 1) ? " have ended" : " has ended");
    }
    if (why.waits != NONE) {
        if (ended & (ended - 1)) mr_buffer_printf(&text, ", rank %u", why.ended);
        tell_ended(c, stands[why.waits].call, why.ended, &text);
    }
    if (why.waits != NONE) tell_remedy_of_ended(stands, &why, &text);
    else mr_buffer_puts(&text, remedy_of(&why));
    mr_status status = mr_fail(MR_CODE_NO_PEER, "deadlock of the ranks (%s):%s",
                               rule_of(stands, &why), text.data ? text.data : "");
    mr_buffer_free(&text);
    return status;
}
