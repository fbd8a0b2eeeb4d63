/* Matching: which calls belong together (R62, R63, R66), and their meetings.
 *
 * All meetings of a settlement are found before the first is submitted. */
#include "base/text.h"
#include "collective/calls.h"
#include "model/event.h"
#include "model/observer.h"
#include "ops/collective.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NOBODY UINT32_MAX

/* The calls of one meeting, as indices into the list: by rank of the clique; NOBODY: none. A settlement has a list of
 * these. */
typedef struct {
    mr_clique *clique;
    bool exchange;
    uint32_t calls[MR_MEETING_MOST]; /* exchange: the first of each rank that it connects */
    size_t first;                    /* the call that came first */
} round_of_calls;

typedef MR_VEC(round_of_calls) round_list;

typedef struct {
    mr_collectives *c;
    round_list rounds;
    uint32_t *peer; /* by call: of a send or recv, the matching one */
    uint64_t *late; /* by call: ranks that may still come, as bits */
} matching;

static pending_call *call_at(const matching *m, size_t i) {
    return &m->c->calls.items[i];
}

static const char *place_of(const pending_call *call, char *out, size_t size) {
    if (call->where.file) snprintf(out, size, "%.120s:%d", call->where.file, call->where.line);
    else snprintf(out, size, "?");
    return out;
}

static uint64_t bit(uint32_t rank) {
    return (uint64_t)1 << rank;
}

/* ---- collectives */

/* What two ranks' calls of one round differ in; false: nothing. */
static bool find_difference(const pending_call *a, const pending_call *b, char *in_a, char *in_b,
                            size_t size) {
    const mr_collective_call *x = &a->ask, *y = &b->ask;
    *in_a = *in_b = 0;
    if (x->what != y->what) {
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
    char title[100], place_a[160], place_b[160];
    const mr_comm *x = a->ask.comm, *y = b->ask.comm;
    return mr_fail(
        MR_CODE_COLLECTIVE_MISMATCH,
        "%s: the ranks do not match (R62): rank %u submits %s (%s), and rank %u %s (%s). "
        "All ranks must submit the same operations in the same order",
        mr_clique_describe(x->clique, title, sizeof title), mr_clique_rank(x->clique, x->rank),
        in_a, place_of(a, place_a, sizeof place_a), mr_clique_rank(y->clique, y->rank), in_b,
        place_of(b, place_b, sizeof place_b));
}

static mr_status check_round(const matching *m, const round_of_calls *round) {
    const pending_call *first = call_at(m, round->first);
    char a[96], b[96];
    for (uint32_t k = 0; k < round->clique->size; k++) {
        if (round->calls[k] == NOBODY) continue;
        const pending_call *other = call_at(m, round->calls[k]);
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
    char comm[120], place[160];
    mr_buffer who = {0};
    mr_ranks_tell(late, &who);
    mr_status status =
        mr_fail(MR_CODE_NO_PEER,
                "%s: `%s` by %s (%s) would wait for ever: %s %s no call in this group (R63). "
                "Submit the calls of all ranks in one mr.nccl.group(function() ... end)",
                first->name, first->name, mr_comm_describe(first->ask.comm, comm, sizeof comm),
                place_of(first, place, sizeof place), who.data ? who.data : "others",
                late & (late - 1) ? "have" : "has");
    mr_buffer_free(&who);
    return status;
}

/* The round that the collective at call `i` belongs to: of each rank, the first that is in none yet. Ranks that have
 * none yet are late, and all later collectives of the clique wait for this one. */
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
    char comm[120], place[160];
    bool sends = call->ask.way == MR_PEER_SEND;
    return mr_fail(MR_CODE_NO_PEER,
                   "%s: `%s` by %s (%s) would wait for ever: rank %u has no matching %s in this "
                   "group (R66). Put both into one mr.nccl.group(function() ... end)",
                   call->name, call->name, mr_comm_describe(call->ask.comm, comm, sizeof comm),
                   place_of(call, place, sizeof place), call->ask.root, sends ? "recv" : "send");
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

static bool is_message(const pending_call *call) {
    return call->ask.way && call->is_ready;
}

/* NCCL carries out all messages of a rank in a group at once: where one of them has no peer yet, all are late. */
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
        char place[160], comm[120];
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: %s has a %s on another stream in this group (%s): use one stream, or "
                       "another group",
                       call->name, mr_comm_describe(call->ask.comm, comm, sizeof comm), other->name,
                       place_of(other, place, sizeof place));
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

/* Ranks that messages connect meet: joins the rounds that the two ranks of send `i` are in. */
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

/* ---- meetings */

static void sort_rounds(round_list *rounds) {
    for (size_t i = 1; i < rounds->count; i++) {
        round_of_calls moved = rounds->items[i];
        size_t at = i;
        for (; at && rounds->items[at - 1].first > moved.first; at--)
            rounds->items[at] = rounds->items[at - 1];
        rounds->items[at] = moved;
    }
}

/* All operations of a communicator run one after the other, whatever streams they are on. */
static mr_status follow_last(const pending_call *call) {
    const mr_comm *comm = call->ask.comm;
    mr_stream *stream = call->ask.stream;
    mr_caller caller = {.machine = comm->clique->machine, .where = call->where};
    if (!comm->last || comm->last == stream) return MR_OK;
    mr_observers_host_is(caller.machine, (uint16_t)call->host);
    return mr_stream_wait_event_as(&caller, stream, comm->done, MR_MEETING_ORDER);
}

/* A record right behind each operation. One that were made when the next operation comes would also stand for what the
 * script has submitted to the stream meanwhile, and would hide that nothing orders that. */
static mr_status note_last(const pending_call *call) {
    mr_comm *comm = call->ask.comm;
    mr_stream *stream = call->ask.stream;
    mr_caller caller = {.machine = comm->clique->machine, .where = call->where};
    mr_event_options options = {0};
    mr_observers_host_is(caller.machine, (uint16_t)call->host);
    if (!comm->done) MR_TRY(mr_event_create(&caller, &options, &comm->done));
    mr_stream_retain(stream);
    mr_stream_release(comm->last);
    comm->last = stream;
    return mr_event_record_as(&caller, comm->done, stream, MR_MEETING_ORDER);
}

static mr_status new_command(const pending_call *call, mr_meeting *meeting, uint32_t member,
                             uint32_t operands, const char *name, mr_command **out_command) {
    const mr_collective_call *ask = &call->ask;
    mr_caller caller = {.machine = ask->comm->clique->machine, .where = call->where};
    MR_TRY(mr_command_create(&caller, MR_COMMAND_OP, ask->stream, name, operands, out_command));
    mr_command *command = *out_command;
    command->u.op.row = &mr_collective_op;
    command->meeting = meeting;
    command->member = member;
    meeting->refs++;
    meeting->members[member] = (mr_meeting_member){.rank = ask->comm->rank,
                                                   .host = (uint16_t)call->host,
                                                   .out = MR_MEETING_NONE,
                                                   .in = MR_MEETING_NONE};
    return MR_OK;
}

/* The result first, as in every operation. */
static mr_status make_member(const pending_call *call, mr_meeting *meeting, uint32_t member,
                             mr_command **out_command) {
    const mr_collective_call *ask = &call->ask;
    uint32_t used = 0;
    MR_TRY(new_command(call, meeting, member, (ask->in != NULL) + (ask->out != NULL), call->name,
                       out_command));
    mr_meeting_member *place = &meeting->members[member];
    if (ask->out) {
        place->out = (int16_t)used;
        mr_command_set_operand(*out_command, used++, ask->out, MR_WRITE);
    }
    if (ask->in) {
        place->in = (int16_t)used;
        mr_command_set_operand(*out_command, used++, ask->in, MR_READ);
    }
    return MR_OK;
}

static bool is_of(const matching *m, const round_of_calls *round, size_t i, uint32_t rank) {
    const mr_collective_call *ask = &call_at(m, i)->ask;
    return is_message(call_at(m, i)) && ask->comm->clique == round->clique &&
           ask->comm->rank == rank;
}

/* One command for all messages of a rank. */
static mr_status make_messenger(const matching *m, const round_of_calls *round, uint32_t rank,
                                mr_meeting *meeting, uint32_t member, int16_t *operand_of,
                                mr_command **out_command) {
    uint32_t count = 0, used = 0;
    bool sends = false, receives = false;
    for (size_t i = 0; i < m->c->calls.count; i++) {
        if (!is_of(m, round, i, rank)) continue;
        count++;
        if (call_at(m, i)->ask.way == MR_PEER_SEND) sends = true;
        else receives = true;
    }
    const char *name = !receives ? "send" : !sends ? "recv" : "send and recv";
    MR_TRY(new_command(call_at(m, round->calls[rank]), meeting, member, count, name, out_command));
    for (size_t i = 0; i < m->c->calls.count; i++) {
        if (!is_of(m, round, i, rank)) continue;
        const mr_collective_call *ask = &call_at(m, i)->ask;
        operand_of[i] = (int16_t)used;
        mr_command_set_operand(*out_command, used++, ask->in ? ask->in : ask->out,
                               ask->in ? MR_READ : MR_WRITE);
    }
    return MR_OK;
}

static void fill_messages(const matching *m, const round_of_calls *round, const uint32_t *member_of,
                          const int16_t *operand_of, mr_meeting *meeting) {
    meeting->message_count = 0;
    for (size_t i = 0; i < m->c->calls.count; i++) {
        const mr_collective_call *ask = &call_at(m, i)->ask;
        uint32_t rank = ask->comm->rank;
        if (ask->way != MR_PEER_SEND || !is_of(m, round, i, rank) || round->calls[rank] == NOBODY)
            continue;
        meeting->messages[meeting->message_count++] = (mr_message){.from = member_of[rank],
                                                                   .to = member_of[ask->root],
                                                                   .in = operand_of[i],
                                                                   .out = operand_of[m->peer[i]]};
    }
}

static mr_status make_exchange(const matching *m, const round_of_calls *round, mr_meeting *meeting,
                               mr_command **commands) {
    uint32_t member_of[MR_MEETING_MOST], member = 0;
    int16_t *operand_of = malloc((m->c->calls.count + 1) * sizeof *operand_of);
    mr_status status = operand_of ? MR_OK : mr_no_memory("for a collective");
    for (uint32_t rank = 0; rank < round->clique->size && !status; rank++) {
        if (round->calls[rank] == NOBODY) continue;
        member_of[rank] = member;
        status = make_messenger(m, round, rank, meeting, member, operand_of, &commands[member]);
        member++;
    }
    if (!status) fill_messages(m, round, member_of, operand_of, meeting);
    free(operand_of);
    return status;
}

static mr_status make_collective(const matching *m, const round_of_calls *round,
                                 mr_meeting *meeting, mr_command **commands) {
    const mr_collective_call *ask = &call_at(m, round->first)->ask;
    meeting->what = ask->what;
    meeting->redop = ask->redop;
    meeting->root = ask->root;
    for (uint32_t k = 0; k < meeting->size; k++)
        MR_TRY(make_member(call_at(m, round->calls[k]), meeting, k, &commands[k]));
    return MR_OK;
}

/* Each host pays for its own calls. */
static void take_turn(mr_collectives *c, uint32_t host) {
    if (c->hosts) c->hosts->turn(c, host);
}

/* A rank in another process does that for its own calls. */
static bool is_far(const matching *m, const pending_call *call) {
    return m->c->world && call->host != m->c->own_host;
}

static mr_status follow_all(const matching *m, const round_of_calls *round) {
    mr_status status = MR_OK;
    for (uint32_t k = 0; k < round->clique->size && !status; k++) {
        if (round->calls[k] == NOBODY || is_far(m, call_at(m, round->calls[k]))) continue;
        take_turn(m->c, call_at(m, round->calls[k])->host);
        status = follow_last(call_at(m, round->calls[k]));
    }
    return status;
}

static mr_status note_all(const matching *m, const round_of_calls *round) {
    mr_status status = MR_OK;
    for (uint32_t k = 0; k < round->clique->size; k++) {
        if (round->calls[k] == NOBODY || is_far(m, call_at(m, round->calls[k]))) continue;
        take_turn(m->c, call_at(m, round->calls[k])->host);
        status = mr_error_first(status, note_last(call_at(m, round->calls[k])));
    }
    return status;
}

/* The commands of one meeting on their way. */
typedef struct {
    mr_collectives *c;
    mr_meeting *meeting;
    uint32_t size, own;                    /* `own`: NOBODY in one process */
    mr_command *commands[MR_MEETING_MOST]; /* by member */
    uint32_t hosts[MR_MEETING_MOST];
    uint32_t order[MR_MEETING_MOST]; /* members in the order of their submission */
} submission;

static mr_status before_member(void *context, uint32_t i) {
    submission *s = context;
    if (i == 1 && s->own != NOBODY) {
        take_turn(s->c, s->hosts[s->own]);
        MR_TRY(s->c->hosts->meet(s->c, s->meeting, s->commands, s->hosts, s->own));
    }
    take_turn(s->c, s->hosts[s->order[i]]);
    return MR_OK;
}

/* The member of this process goes first: when it begins, its bytes are known. */
static void find_order(const matching *m, const round_of_calls *round, submission *s) {
    s->own = NOBODY;
    for (uint32_t k = 0; k < round->clique->size; k++) {
        if (round->calls[k] == NOBODY) continue;
        const pending_call *call = call_at(m, round->calls[k]);
        s->hosts[s->size] = call->host;
        if (m->c->world && !is_far(m, call)) s->own = s->size;
        s->size++;
    }
    uint32_t used = 0;
    if (s->own != NOBODY) s->order[used++] = s->own;
    for (uint32_t k = 0; k < s->size; k++)
        if (k != s->own) s->order[used++] = k;
}

static mr_status submit_all(const matching *m, const round_of_calls *round, submission *s) {
    mr_command *commands[MR_MEETING_MOST];
    mr_meeting *meeting = s->meeting;
    uint32_t own = s->own;
    mr_meeting_find_sources(meeting);
    meeting->last = s->order[s->size - 1];
    for (uint32_t i = 0; i < s->size; i++) {
        commands[i] = s->commands[s->order[i]];
        meeting->members[i].far = own != NOBODY && i != own;
    }
    mr_status status = mr_command_submit_together(commands, s->size, before_member, s);
    bool is_submitted = meeting->members[s->order[0]].command && !round->clique->machine->lost;
    if (is_submitted) status = mr_error_first(status, note_all(m, round));
    return status;
}

static mr_status submit_round(const matching *m, const round_of_calls *round) {
    mr_clique *clique = round->clique;
    submission s = {.c = m->c};
    uint64_t number = ++clique->operations;
    find_order(m, round, &s);
    if (m->c->world && s.own == NOBODY) return MR_OK; /* other ranks meet */
    MR_TRY(follow_all(m, round));
    s.meeting = mr_meeting_new(s.size, round->exchange ? (uint32_t)m->c->calls.count : 0);
    if (!s.meeting) return mr_no_memory("for a collective");
    s.meeting->what = MR_COLLECTIVE_EXCHANGE;
    mr_clique_describe(clique, s.meeting->title, sizeof s.meeting->title);
    s.meeting->number = number;
    s.meeting->link = clique->link;
    mr_status status = round->exchange ? make_exchange(m, round, s.meeting, s.commands)
                                       : make_collective(m, round, s.meeting, s.commands);
    if (!status) status = submit_all(m, round, &s);
    else
        for (uint32_t k = 0; k < s.size; k++) mr_command_release(s.commands[k]);
    mr_meeting_release(s.meeting);
    return status;
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
        if (call->submitted) mr_collective_forget(call);
        else c->calls.items[kept++] = *call;
    }
    c->calls.count = kept;
}

mr_status mr_collectives_settle(mr_collectives *c) {
    matching m;
    mr_status status = open_matching(&m, c);
    if (!status) status = match(&m);
    /* The last rank that came submits the calls of all, each as its own host's. */
    uint16_t host = c->machine->rank;
    for (size_t i = 0; i < m.rounds.count && !status; i++)
        status = submit_round(&m, &m.rounds.items[i]);
    mr_observers_host_is(c->machine, host);
    take_turn(c, host);
    close_matching(&m);
    forget_submitted(c);
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
