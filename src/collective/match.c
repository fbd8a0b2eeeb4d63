/* Matching: which calls belong together (R62, R63, R66). meet.c makes meetings of them.
 *
 * All meetings of a settlement are found before the first is submitted. */
#include "base/text.h"
#include "collective/match.h"
#include "model/observer.h"
#include "ops/collective.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *mr_collective_place(const pending_call *call, char *out, size_t size) {
    char launched[170] = "";
    if (call->launched.file)
        snprintf(launched, sizeof launched, ", launched at %.120s:%d", call->launched.file,
                 call->launched.line);
    if (call->where.file)
        snprintf(out, size, "%.120s:%d%s", call->where.file, call->where.line, launched);
    else snprintf(out, size, "?%s", launched);
    return out;
}

static uint64_t bit(uint32_t rank) {
    return (uint64_t)1 << rank;
}

/* ---- collectives */

/* Whether one of the two has another meaning: all three named calls are an all_reduce of one element. */
static bool makes_other(const pending_call *a, const pending_call *b) {
    static const char *const names[] = {MR_COLLECTIVE_GROUP, MR_COLLECTIVE_INIT,
                                        MR_COLLECTIVE_BARRIER};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (mr_collective_is_named(a, names[i]) != mr_collective_is_named(b, names[i])) return true;
    return false;
}

#define SAME_ORDER "All ranks must submit the same operations in the same order"

static bool is_of_one_line(const pending_call *a, const pending_call *b) {
    return a->where.file && b->where.file && a->where.line == b->where.line &&
           strcmp(a->where.file, b->where.file) == 0;
}

/* What to change: calls of one line, or a send and its recv, should agree. */
static const char *remedy_of(const pending_call *a, const pending_call *b) {
    const mr_collective_call *x = &a->ask, *y = &b->ask;
    if (x->what != y->what || makes_other(a, b)) return SAME_ORDER;
    if (!x->way && !is_of_one_line(a, b)) return SAME_ORDER;
    if (mr_collective_count(x) != mr_collective_count(y))
        return "All ranks must give the same number of elements";
    if (mr_collective_dtype(x) != mr_collective_dtype(y))
        return "All ranks must give the same dtype";
    if (mr_collective_reduces(x->what) && x->redop != y->redop)
        return "All ranks must give the same op";
    return x->root != y->root ? "All ranks must give the same root" : SAME_ORDER;
}

/* The difference between two ranks' calls of one round; false: there is none. */
static bool find_difference(const pending_call *a, const pending_call *b, char *in_a, char *in_b,
                            size_t size) {
    const mr_collective_call *x = &a->ask, *y = &b->ask;
    *in_a = *in_b = 0;
    if (x->what != y->what || makes_other(a, b)) {
        snprintf(in_a, size, "%s", a->name);
        snprintf(in_b, size, "%s", b->name);
    } else if (mr_collective_count(x) != mr_collective_count(y)) {
        snprintf(in_a, size, "%s of %" PRId64 " elements", a->name, mr_collective_count(x));
        snprintf(in_b, size, "one of %" PRId64, mr_collective_count(y));
    } else if (mr_collective_dtype(x) != mr_collective_dtype(y)) {
        snprintf(in_a, size, "%s of %s", a->name, mr_dtype_text(mr_collective_dtype(x)));
        snprintf(in_b, size, "one of %s", mr_dtype_text(mr_collective_dtype(y)));
    } else if (mr_collective_reduces(x->what) && x->redop != y->redop) {
        snprintf(in_a, size, "%s with op=\"%s\"", a->name, mr_redop_text(x->redop));
        snprintf(in_b, size, "one with op=\"%s\"", mr_redop_text(y->redop));
    } else if (x->root != y->root) {
        const mr_clique *clique = x->comm->clique;
        snprintf(in_a, size, "%s with root %u", a->name, mr_clique_rank(clique, x->root));
        snprintf(in_b, size, "one with root %u", mr_clique_rank(clique, y->root));
    }
    return *in_a;
}

static mr_status mismatch(const pending_call *a, const pending_call *b, const char *in_a,
                          const char *in_b) {
    char title[100], place_a[MR_COLLECTIVE_PLACE], place_b[MR_COLLECTIVE_PLACE];
    const mr_comm *x = a->ask.comm, *y = b->ask.comm;
    return mr_fail(
        MR_CODE_COLLECTIVE_MISMATCH,
        "%s: the ranks do not match (R62): rank %u submits %s (%s), and rank %u %s (%s). %s",
        mr_clique_describe(x->clique, title, sizeof title), mr_clique_rank(x->clique, x->rank),
        in_a, mr_collective_place(a, place_a, sizeof place_a), mr_clique_rank(y->clique, y->rank),
        in_b, mr_collective_place(b, place_b, sizeof place_b), remedy_of(a, b));
}

/* The error names the lowest rank's call first, whichever rank came first. */
static mr_status check_round(const matching *m, const round_of_calls *round) {
    const pending_call *first = NULL;
    char a[96], b[96];
    for (uint32_t k = 0; k < round->clique->size; k++) {
        if (round->calls[k] == NOBODY) continue;
        const pending_call *other = call_at(m, round->calls[k]);
        if (!first) first = other;
        if (find_difference(first, other, a, b, sizeof a)) return mismatch(first, other, a, b);
    }
    return MR_OK;
}

/* The next collective of `rank` from call `from` on. */
static uint32_t next_of(const matching *m, const mr_clique *clique, uint32_t rank, size_t from) {
    for (size_t i = from; i < m->c->calls.count; i++) {
        const mr_collective_call *ask = &call_at(m, i)->ask;
        const pending_call *call = call_at(m, i);
        if (ask->comm->clique == clique && ask->comm->rank == rank && !ask->way && call->is_ready &&
            !call->submitted)
            return (uint32_t)i;
    }
    return NOBODY;
}

static mr_status nobody_else(const pending_call *first, uint64_t late) {
    char comm[120], place[MR_COLLECTIVE_PLACE];
    mr_buffer who = {0};
    mr_ranks_tell(late, &who);
    mr_status status =
        mr_fail(MR_CODE_NO_PEER,
                "%s: `%s` by %s (%s) would wait for ever: %s %s no call in this group (R63). "
                "Submit the calls of all ranks in one mr.nccl.group(function() ... end)",
                first->name, first->name, mr_comm_describe(first->ask.comm, comm, sizeof comm),
                mr_collective_place(first, place, sizeof place), who.data ? who.data : "others",
                late & (late - 1) ? "have" : "has");
    mr_buffer_free(&who);
    return status;
}

/* Finds the round of the collective at call `i`: the first call of each rank that is in no round yet. Ranks without one
 * are late, and all later collectives of the clique wait for this one. */
static mr_status find_round(matching *m, size_t i) {
    round_of_calls round = {.clique = call_at(m, i)->ask.comm->clique, .first = i};
    uint64_t late = 0;
    for (uint32_t k = 0; k < round.clique->size; k++) {
        round.calls[k] = next_of(m, round.clique, k, i);
        if (round.calls[k] == NOBODY) late |= bit(k);
    }
    MR_TRY(check_round(m, &round));
    if (late && !mr_collectives_have_ranks(m->c)) return nobody_else(call_at(m, i), late);
    for (uint32_t k = 0; k < round.clique->size; k++) {
        if (round.calls[k] == NOBODY) continue;
        m->late[round.calls[k]] = late;
        call_at(m, round.calls[k])->submitted = !late;
    }
    round.clique->is_held = late != 0;
    if (late) return MR_OK;
    return mr_vec_push(&m->rounds, round) ? MR_OK : mr_no_memory("for a collective");
}

/* ---- sends and receives */

static bool is_for(const mr_collective_call *send, const mr_collective_call *recv) {
    return send->comm->clique == recv->comm->clique && send->way == MR_PEER_SEND &&
           recv->way == MR_PEER_RECV && send->root == recv->comm->rank &&
           recv->root == send->comm->rank;
}

static mr_status alone(const pending_call *call) {
    char comm[120], place[MR_COLLECTIVE_PLACE];
    bool sends = call->ask.way == MR_PEER_SEND, itself = call->ask.root == call->ask.comm->rank;
    const char *meaning = !itself ? ""
                          : sends ? "it sends to itself, and "
                                  : "it receives from itself, and ";
    return mr_fail(MR_CODE_NO_PEER,
                   "%s: `%s` by %s (%s) would wait for ever: %srank %u has no matching %s in this "
                   "group (R66). Put both into one mr.nccl.group(function() ... end)",
                   call->name, call->name, mr_comm_describe(call->ask.comm, comm, sizeof comm),
                   mr_collective_place(call, place, sizeof place), meaning, call->ask.root,
                   sends ? "recv" : "send");
}

static mr_status check_pair(const pending_call *send, const pending_call *recv) {
    char a[96], b[96];
    if (send->ask.in->numel != recv->ask.out->numel) {
        snprintf(a, sizeof a, "send of %" PRId64 " elements", send->ask.in->numel);
        snprintf(b, sizeof b, "recv of %" PRId64, recv->ask.out->numel);
    } else if (send->ask.in->dtype != recv->ask.out->dtype) {
        snprintf(a, sizeof a, "send of %s", mr_dtype_text((mr_dtype)send->ask.in->dtype));
        snprintf(b, sizeof b, "recv of %s", mr_dtype_text((mr_dtype)recv->ask.out->dtype));
    } else {
        return MR_OK;
    }
    return mismatch(send, recv, a, b);
}

/* NCCL carries out all messages of a rank in a group at once: if one of them has no peer yet, all are late. */
static bool spread_lateness(matching *m) {
    bool changed = false;
    for (size_t i = 0; i < m->c->calls.count; i++) {
        pending_call *call = call_at(m, i);
        if (!is_message(call) || m->late[i]) continue;
        if (m->peer[i] != NOBODY && m->late[m->peer[i]]) m->late[i] = bit(call->ask.root);
        for (size_t j = 0; j < m->c->calls.count && !m->late[i]; j++)
            if (is_message(call_at(m, j)) && call_at(m, j)->ask.comm == call->ask.comm)
                m->late[i] = m->late[j];
        changed |= m->late[i] != 0;
    }
    return changed;
}

static mr_status find_peers(matching *m) {
    size_t count = m->c->calls.count;
    for (size_t i = 0; i < count; i++) {
        const pending_call *send = call_at(m, i);
        if (!is_message(send) || send->ask.way != MR_PEER_SEND) continue;
        for (size_t j = 0; j < count && m->peer[i] == NOBODY; j++) {
            const pending_call *recv = call_at(m, j);
            if (m->peer[j] != NOBODY || !recv->is_ready || !is_for(&send->ask, &recv->ask))
                continue;
            m->peer[i] = (uint32_t)j;
            m->peer[j] = (uint32_t)i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        const pending_call *call = call_at(m, i);
        if (!is_message(call)) continue;
        if (m->peer[i] == NOBODY && !mr_collectives_have_ranks(m->c)) return alone(call);
        if (m->peer[i] == NOBODY) m->late[i] = bit(call->ask.root);
        else if (call->ask.way == MR_PEER_SEND) MR_TRY(check_pair(call, call_at(m, m->peer[i])));
    }
    while (spread_lateness(m)) continue;
    return MR_OK;
}

/* NCCL carries out all messages of a rank in a group by one kernel. */
static mr_status check_streams(const matching *m, size_t i) {
    const pending_call *call = call_at(m, i);
    for (size_t j = 0; j < i; j++) {
        const pending_call *other = call_at(m, j);
        if (!is_message(other) || other->ask.comm != call->ask.comm) continue;
        if (other->ask.stream == call->ask.stream) continue;
        char place[MR_COLLECTIVE_PLACE], comm[120];
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: %s has a %s on another stream in this group (%s): use one stream, or "
                       "another group",
                       call->name, mr_comm_describe(call->ask.comm, comm, sizeof comm), other->name,
                       mr_collective_place(other, place, sizeof place));
    }
    return MR_OK;
}

static void add_first(round_of_calls *round, uint32_t rank, uint32_t call) {
    if (call < round->calls[rank]) round->calls[rank] = call;
}

static bool connects(const round_of_calls *a, const round_of_calls *b) {
    for (uint32_t k = 0; a->clique == b->clique && k < a->clique->size; k++)
        if (a->calls[k] != NOBODY && b->calls[k] != NOBODY) return true;
    return false;
}

/* Ranks that exchange messages meet: joins the rounds of the two ranks of send `i`. */
static mr_status connect(matching *m, size_t i) {
    const mr_collective_call *ask = &call_at(m, i)->ask;
    round_of_calls joined = {.clique = ask->comm->clique, .exchange = true, .first = i};
    size_t kept = 0;
    for (uint32_t k = 0; k < joined.clique->size; k++) joined.calls[k] = NOBODY;
    add_first(&joined, ask->comm->rank, (uint32_t)i);
    add_first(&joined, ask->root, m->peer[i]);
    for (size_t at = 0; at < m->rounds.count; at++) {
        const round_of_calls *round = &m->rounds.items[at];
        if (!round->exchange || !connects(round, &joined)) {
            m->rounds.items[kept++] = *round;
            continue;
        }
        for (uint32_t k = 0; k < joined.clique->size; k++) add_first(&joined, k, round->calls[k]);
        if (round->first < joined.first) joined.first = round->first;
    }
    m->rounds.count = kept;
    return mr_vec_push(&m->rounds, joined) ? MR_OK : mr_no_memory("for a collective");
}

/* ---- all of them */

static void sort_rounds(round_list *rounds) {
    for (size_t i = 1; i < rounds->count; i++) {
        round_of_calls moved = rounds->items[i];
        size_t at = i;
        for (; at && rounds->items[at - 1].first > moved.first; at--)
            rounds->items[at] = rounds->items[at - 1];
        rounds->items[at] = moved;
    }
}

static mr_status match(matching *m) {
    size_t count = m->c->calls.count;
    for (size_t i = 0; i < count; i++) {
        m->peer[i] = NOBODY;
        m->late[i] = 0;
        call_at(m, i)->ask.comm->clique->is_held = false;
    }
    for (size_t i = 0; i < count; i++) {
        const pending_call *call = call_at(m, i);
        if (!call->ask.way && call->is_ready && !call->submitted &&
            !call->ask.comm->clique->is_held)
            MR_TRY(find_round(m, i));
    }
    MR_TRY(find_peers(m));
    for (size_t i = 0; i < count; i++) {
        if (!is_message(call_at(m, i))) continue;
        MR_TRY(check_streams(m, i));
        if (m->late[i]) continue;
        call_at(m, i)->submitted = true;
        if (call_at(m, i)->ask.way == MR_PEER_SEND) MR_TRY(connect(m, i));
    }
    sort_rounds(&m->rounds);
    return MR_OK;
}

static mr_status open_matching(matching *m, mr_collectives *c) {
    *m = (matching){.c = c,
                    .peer = malloc((c->calls.count + 1) * sizeof *m->peer),
                    .late = malloc((c->calls.count + 1) * sizeof *m->late)};
    return m->peer && m->late ? MR_OK : mr_no_memory("for a collective");
}

static void close_matching(matching *m) {
    free(m->peer);
    free(m->late);
    mr_vec_free(&m->rounds);
}

static void forget_submitted(mr_collectives *c) {
    size_t kept = 0;
    for (size_t i = 0; i < c->calls.count; i++) {
        pending_call *call = &c->calls.items[i];
        if (call->submitted && call->host)
            c->last[call->host - 1] = (made_call){call->name, call->where, call->launched};
        if (call->submitted) mr_collective_forget(call);
        else c->calls.items[kept++] = *call;
    }
    c->calls.count = kept;
}

static bool is_in(const matching *m, const round_of_calls *round, size_t i) {
    const mr_comm *comm = call_at(m, i)->ask.comm;
    uint32_t first = comm->clique == round->clique ? round->calls[comm->rank] : NOBODY;
    if (first == NOBODY) return false;
    return round->exchange ? is_message(call_at(m, i)) : first == i;
}

/* The meetings of these rounds, from `from` on, were not submitted; that of the first one because of an error. */
static void leave_out(matching *m, size_t from) {
    for (size_t k = from; k < m->rounds.count; k++)
        for (size_t i = 0; i < m->c->calls.count; i++) {
            if (!is_in(m, &m->rounds.items[k], i)) continue;
            call_at(m, i)->submitted = false;
            call_at(m, i)->refused = k == from;
        }
}

/* Returns how many of the rounds were submitted, also with an error. */
static size_t meet_all(const matching *m, mr_status *status) {
    for (size_t i = 0; i < m->rounds.count; i++) {
        bool submitted;
        *status = mr_collective_meet(m, &m->rounds.items[i], &submitted);
        if (*status) return i + submitted;
    }
    return m->rounds.count;
}

mr_status mr_collectives_settle(mr_collectives *c) {
    matching m;
    mr_status status = open_matching(&m, c);
    if (!status) status = match(&m);
    /* The rank that comes last submits the calls of all ranks, each for its own host. */
    uint16_t host = c->machine->rank;
    if (status) /* of some calls it was already found where they belong */
        for (size_t i = 0; i < c->calls.count; i++) c->calls.items[i].submitted = false;
    else leave_out(&m, meet_all(&m, &status));
    mr_observers_host_is(c->machine, host);
    mr_collective_take_turn(c, host);
    close_matching(&m);
    forget_submitted(c);
    return status;
}

mr_status mr_collectives_match(mr_collectives *c) {
    matching m;
    mr_status status = open_matching(&m, c);
    if (!status) status = match(&m);
    close_matching(&m);
    return status;
}

uint64_t mr_collectives_missing(mr_collectives *c, size_t call) {
    matching m;
    mr_status status = open_matching(&m, c);
    if (!status) status = match(&m);
    uint64_t late = status ? 0 : m.late[call];
    mr_error_destroy(status);
    close_matching(&m);
    return late;
}
