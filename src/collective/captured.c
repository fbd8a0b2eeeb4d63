/* Calls of collectives in graphs.
 *
 *     c:all_reduce(x)      on a stream that captures
 *        |  group.c        collects and checks the call, as always
 *        v
 *     capture              each call of the group becomes a node: a command with the call's operands, and a
 *        |                 captured call (model/meeting.h). Nothing is matched between ranks, which capture apart.
 *        v
 *     g:launch()           src/graph submits the steps of the launch in order.
 *        |  launch.c       mr_captured_call.launch gets the nodes of a group, with the streams of their lanes
 *        v
 *     group.c              the calls are made again, in a group of their own: they are checked, matched, and wait for
 *                          other ranks, as if the script called them here. So a communicator's operations are serial
 *                          also over launches, and a call may meet one that is in no graph.
 *
 * Easiest to break: nothing of a launch may be submitted between the calls of one group, as the group may wait for
 * other ranks. src/graph/lower.c sees to that. */
#include <stdlib.h>

#include "collective/captured.h"
#include "ops/collective.h"

static void drop(mr_captured_call *base) {
    mr_comm_release(((captured_call *)base)->comm);
    free(base);
}

/* Operands may differ, as in other nodes. */
static bool same(const mr_command *a, const mr_command *b) {
    const mr_meeting *x = a->meeting, *y = b->meeting;
    const captured_call *of_a = captured_of(a), *of_b = captured_of(b);
    return x->what == y->what && x->redop == y->redop && x->root == y->root &&
           x->members[0].in == y->members[0].in && x->members[0].out == y->members[0].out &&
           of_a->comm == of_b->comm && of_a->way == of_b->way &&
           of_a->base.place == of_b->base.place && of_a->base.count == of_b->base.count;
}

mr_status mr_collectives_are_captured(const mr_collectives *c, bool *out_are) {
    const pending_call *live = NULL, *captured = NULL;
    for (size_t i = 0; i < c->calls.count; i++) {
        const pending_call *call = &c->calls.items[i];
        if (call->host != c->machine->rank) continue;
        if (call->ask.stream->capture) captured = call;
        else live = call;
    }
    *out_are = captured != NULL;
    if (!captured || !live) return MR_OK;
    char text[100];
    return mr_fail(MR_CODE_CAPTURE_UNSUPPORTED,
                   "%s: %s is not capturing, but the stream of another call in this group is: "
                   "either all streams of a group are captured, or none",
                   live->name, mr_stream_describe(live->ask.stream, text, sizeof text));
}

static mr_status new_captured(const mr_collectives *c, const pending_call *call, uint32_t place,
                              uint32_t count, mr_meeting **out_meeting) {
    const mr_collective_call *ask = &call->ask;
    mr_meeting *meeting = *out_meeting = mr_meeting_new(1, 0);
    captured_call *one = meeting ? calloc(1, sizeof *one) : NULL;
    if (!one) {
        mr_meeting_release(meeting);
        return mr_no_memory("for a collective");
    }
    *one = (captured_call){
        .base = {place, count, c->launch, same, drop}, .comm = ask->comm, .way = ask->way};
    mr_comm_retain(ask->comm);
    meeting->captured = &one->base;
    meeting->what = ask->what;
    meeting->redop = ask->redop;
    meeting->root = ask->root;
    mr_clique_describe(ask->comm->clique, meeting->title, sizeof meeting->title);
    meeting->members[0] = (mr_meeting_member){.rank = ask->comm->rank,
                                              .host = (uint16_t)call->host,
                                              .out = ask->out ? 0 : MR_MEETING_NONE,
                                              .in = !ask->in   ? MR_MEETING_NONE
                                                    : ask->out ? 1
                                                               : 0};
    return MR_OK;
}

static mr_status capture_one(const mr_collectives *c, const pending_call *call, uint32_t place,
                             uint32_t count) {
    const mr_collective_call *ask = &call->ask;
    mr_caller caller = {.machine = ask->comm->clique->machine, .where = call->where};
    mr_meeting *meeting;
    mr_command *command;
    MR_TRY(new_captured(c, call, place, count, &meeting));
    mr_status status = mr_command_create(&caller, MR_COMMAND_OP, ask->stream, call->name,
                                         (ask->in != NULL) + (ask->out != NULL), &command);
    if (status) {
        mr_meeting_release(meeting);
        return status;
    }
    const mr_meeting_member *member = &meeting->members[0];
    command->u.op.row = &mr_collective_op;
    command->meeting = meeting;
    if (ask->out) mr_command_set_operand(command, (uint32_t)member->out, ask->out, MR_WRITE);
    if (ask->in) mr_command_set_operand(command, (uint32_t)member->in, ask->in, MR_READ);
    return mr_command_submit(command);
}

mr_status mr_collectives_capture(mr_collectives *c) {
    uint32_t count = 0, place = 0, host = c->machine->rank;
    if (!mr_collectives_have_ranks(c)) MR_TRY(mr_collectives_match(c));
    for (size_t i = 0; i < c->calls.count; i++) count += c->calls.items[i].host == host;
    for (size_t i = 0; i < c->calls.count; i++) {
        const pending_call *call = &c->calls.items[i];
        if (call->host == host) MR_TRY(capture_one(c, call, place++, count));
    }
    return MR_OK;
}
