/* Meetings: the commands of calls that belong together, and their submission. match.c has found the calls.
 *
 * Where ranks are processes, the calls of the others have stand-ins on simulated devices (world.h). On real devices
 * NCCL connects the processes: the meeting names the members of the others, which have no commands here. */
#include "base/text.h"
#include "collective/match.h"
#include "model/backend.h"
#include "model/event.h"
#include "model/observer.h"
#include "ops/collective.h"

#include <stdlib.h>

/* Whether it is a call of a rank in another process. */
static bool is_far(const matching *m, const pending_call *call) {
    return m->c->world && call->host != m->c->own_host;
}

/* Whether only the other process has a command for the call. */
static bool is_elsewhere(const matching *m, const pending_call *call) {
    return is_far(m, call) && !m->c->machine->backend->simulator;
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

/* Records an event right after each operation. A record made when the next operation comes would also cover later work
 * of the script on the stream, and would hide a missing order. */
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

static void new_member(const pending_call *call, mr_meeting *meeting, uint32_t member) {
    meeting->members[member] = (mr_meeting_member){.rank = call->ask.comm->rank,
                                                   .host = (uint16_t)call->host,
                                                   .out = MR_MEETING_NONE,
                                                   .in = MR_MEETING_NONE};
}

static mr_status new_command(const pending_call *call, mr_meeting *meeting, uint32_t member,
                             uint32_t operands, const char *name, mr_command **out_command) {
    const mr_collective_call *ask = &call->ask;
    mr_caller caller = {.machine = ask->comm->clique->machine, .where = call->where};
    MR_TRY(mr_command_create(&caller, MR_COMMAND_OP, ask->stream, name, operands, out_command));
    mr_command *command = *out_command;
    command->u.op.row = &mr_collective_op;
    command->node = call->node;
    if (call->node) mr_command_retain(call->node);
    command->launched = call->launched;
    command->launch = call->launch;
    command->meeting = meeting;
    command->member = member;
    meeting->refs++;
    new_member(call, meeting, member);
    return MR_OK;
}

/* The result is operand 0, as in every operation. */
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
    for (size_t i = 0; i < m->c->calls.count && !status; i++) operand_of[i] = MR_MEETING_NONE;
    for (uint32_t rank = 0; rank < round->clique->size && !status; rank++) {
        if (round->calls[rank] == NOBODY) continue;
        const pending_call *call = call_at(m, round->calls[rank]);
        member_of[rank] = member;
        if (is_elsewhere(m, call)) new_member(call, meeting, member);
        else
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
    for (uint32_t k = 0; k < meeting->size; k++) {
        const pending_call *call = call_at(m, round->calls[k]);
        if (is_elsewhere(m, call)) new_member(call, meeting, k);
        else MR_TRY(make_member(call, meeting, k, &commands[k]));
    }
    return MR_OK;
}

/* Each host pays for its own calls. */
void mr_collective_take_turn(mr_collectives *c, uint32_t host) {
    if (c->hosts) c->hosts->turn(c, host);
}

static mr_status follow_all(const matching *m, const round_of_calls *round) {
    mr_status status = MR_OK;
    for (uint32_t k = 0; k < round->clique->size && !status; k++) {
        if (round->calls[k] == NOBODY || is_far(m, call_at(m, round->calls[k]))) continue;
        mr_collective_take_turn(m->c, call_at(m, round->calls[k])->host);
        status = follow_last(call_at(m, round->calls[k]));
    }
    return status;
}

static mr_status note_all(const matching *m, const round_of_calls *round) {
    mr_status status = MR_OK;
    for (uint32_t k = 0; k < round->clique->size; k++) {
        if (round->calls[k] == NOBODY || is_far(m, call_at(m, round->calls[k]))) continue;
        mr_collective_take_turn(m->c, call_at(m, round->calls[k])->host);
        status = mr_error_first(status, note_last(call_at(m, round->calls[k])));
    }
    return status;
}

/* The commands of one meeting during submission. */
typedef struct {
    mr_collectives *c;
    mr_meeting *meeting;
    uint32_t size, own;                    /* `own`: the member of this process; NOBODY: all are */
    mr_command *commands[MR_MEETING_MOST]; /* by member */
    uint32_t hosts[MR_MEETING_MOST];
    uint32_t order[MR_MEETING_MOST]; /* members in the order of their submission */
    uint32_t submitted;              /* how many of these have commands here */
} submission;

static void turn_to_member(void *context, uint32_t i) {
    const submission *s = context;
    mr_collective_take_turn(s->c, s->hosts[s->order[i]]);
}

static mr_status before_member(void *context, uint32_t i) {
    submission *s = context;
    if (i != 1 || s->own == NOBODY) return MR_OK;
    mr_collective_take_turn(s->c, s->hosts[s->own]);
    return s->c->hosts->meet(s->c, s->meeting, s->commands, s->hosts, s->own);
}

/* The member of this process is submitted first: its bytes are known when it begins. */
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
    s->submitted = s->own != NOBODY && !m->c->machine->backend->simulator ? 1 : s->size;
}

static mr_status submit_all(const matching *m, const round_of_calls *round, submission *s,
                            bool *out_submitted) {
    mr_command *commands[MR_MEETING_MOST];
    mr_meeting *meeting = s->meeting;
    uint32_t own = s->own;
    if (s->submitted == s->size)
        mr_meeting_find_sources(meeting); /* otherwise no member here comes after another one */
    meeting->first = s->order[0];
    meeting->last = s->order[s->submitted - 1];
    for (uint32_t i = 0; i < s->size; i++) {
        commands[i] = s->commands[s->order[i]];
        meeting->members[i].far = own != NOBODY && i != own;
    }
    const mr_together together = {turn_to_member, before_member, s};
    mr_status status = mr_command_submit_together(commands, s->submitted, &together);
    *out_submitted = meeting->members[s->order[0]].command && !round->clique->machine->lost;
    if (*out_submitted) status = mr_error_first(status, note_all(m, round));
    return status;
}

mr_status mr_collective_meet(const matching *m, const round_of_calls *round, bool *out_submitted) {
    mr_clique *clique = round->clique;
    submission s = {.c = m->c};
    uint64_t number = ++clique->operations;
    *out_submitted = false;
    find_order(m, round, &s);
    if (m->c->world && s.own == NOBODY) return MR_OK; /* other ranks meet */
    MR_TRY(follow_all(m, round));
    s.meeting = mr_meeting_new(s.size, round->exchange ? (uint32_t)m->c->calls.count : 0);
    if (!s.meeting) return mr_no_memory("for a collective");
    s.meeting->what = MR_COLLECTIVE_EXCHANGE;
    mr_clique_describe(clique, s.meeting->title, sizeof s.meeting->title);
    s.meeting->communicator = clique->id;
    s.meeting->number = number;
    s.meeting->link = clique->link;
    mr_status status = round->exchange ? make_exchange(m, round, s.meeting, s.commands)
                                       : make_collective(m, round, s.meeting, s.commands);
    if (!status) status = submit_all(m, round, &s, out_submitted);
    else
        for (uint32_t k = 0; k < s.size; k++) mr_command_release(s.commands[k]);
    mr_meeting_release(s.meeting);
    return status;
}
