/* Launches of graphs that hold calls: see captured.c. */
#include <stdlib.h>

#include "collective/captured.h"

static mr_tensor *operand_of(const mr_command *node, int16_t at) {
    return at == MR_MEETING_NONE ? NULL : node->operands[at].tensor;
}

static mr_status call_again(mr_collectives *c, const mr_caller *caller,
                            const mr_launched_call *call, bool begun) {
    const mr_command *node = call->node;
    const mr_meeting *meeting = node->meeting;
    pending_call one = {.ask = {.comm = captured_of(node)->comm,
                                .what = meeting->what,
                                .way = captured_of(node)->way,
                                .redop = meeting->redop,
                                .root = meeting->root,
                                .in = operand_of(node, meeting->members[0].in),
                                .out = operand_of(node, meeting->members[0].out),
                                .stream = call->stream},
                        .where = node->where,
                        .name = node->name,
                        .host = c->machine->rank,
                        .node = node,
                        .launched = caller->where,
                        .launch = begun ? MR_LAUNCH_REST : MR_LAUNCH_FIRST};
    return mr_collective_collect(c, &one);
}

static mr_status launch(const mr_caller *caller, const mr_launched_call *calls, uint32_t count,
                        bool begun) {
    const mr_clique *clique = captured_of(calls[0].node)->comm->clique;
    mr_collectives *c = clique->owner;
    mr_status status = MR_OK;
    if (!c) return mr_fail(MR_CODE_INVALID_HANDLE, "launch: the graph's communicators are gone");
    if (c->depth)
        return mr_fail(MR_CODE_NOT_PERMITTED,
                       "launch: the graph has collectives, which are in no stream before "
                       "mr.nccl.group has ended: launch it before or after the group");
    size_t first = mr_collectives_begin(c);
    for (uint32_t i = 0; i < count && !status; i++)
        status = call_again(c, caller, &calls[i], begun || i);
    if (!status) return mr_collectives_end(c);
    mr_collectives_cancel(c, first);
    return status;
}

mr_status mr_collectives_new(mr_machine *machine, mr_collectives **out_collectives) {
    mr_collectives *c = *out_collectives = calloc(1, sizeof *c);
    if (!c) return mr_no_memory("for communicators");
    c->machine = machine;
    c->launch = launch;
    return MR_OK;
}
