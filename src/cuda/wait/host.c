/* Host functions (R46): only the Lua thread may run Lua. So a stream that reaches a host function signals
 * this and stops until the Lua thread has run the function, at its next wait or query (turn.c). Nothing here waits:
 * room.c sees to it that there is room for one more. */
#include <stdlib.h>

#include "cuda/wait/wait.h"

struct cuda_call {
    cuda_call *next;           /* in cuda->calls */
    const mr_command *command; /* one reference owned, as of the stream */
    cuda_stream *stream;
    uint64_t mark; /* cuda->submissions at its own */
    cuda_turn turn;
};

/* ---- submission */

mr_status mr_cuda_host_add(cuda_stream *stream, const mr_command *command) {
    cuda_machine *cuda = stream->device->machine;
    cuda_call *call = malloc(sizeof *call);
    if (!call) return mr_no_memory("for a host function");
    *call = (cuda_call){.command = command, .stream = stream, .mark = cuda->submissions};
    mr_status status = mr_cuda_turn_enqueue(stream, &call->turn);
    if (status) {
        free(call);
        return status;
    }
    stream->refs++;
    mr_command_retain(command);
    *cuda->calls_end = call;
    cuda->calls_end = &call->next;
    return MR_OK;
}

uint64_t mr_cuda_host_behind(const cuda_machine *cuda) {
    return cuda->submissions - cuda->calls->mark;
}

/* ---- running */

/* Takes it out of the machine. */
static cuda_call take(cuda_machine *cuda, cuda_call **link) {
    cuda_call *call = *link, taken = *call;
    *link = call->next;
    if (!call->next) cuda->calls_end = link;
    free(call);
    return taken;
}

/* Its stream goes on, and nothing of it stays. */
static void finish(cuda_call *call) {
    mr_cuda_turn_end(call->stream, &call->turn);
    mr_command_release(call->command);
    mr_cuda_stream_release(call->stream);
}

static cuda_call **first_that_has_come(cuda_machine *cuda) {
    cuda_call **link = &cuda->calls;
    while (*link && !mr_cuda_turn_has_come(&(*link)->turn)) link = &(*link)->next;
    return link;
}

void mr_cuda_host_run(cuda_machine *cuda) {
    mr_machine *machine = cuda->machine;
    if (machine->host_function.running) return;
    for (cuda_call **link; *(link = first_that_has_come(cuda));) {
        cuda_call call = take(cuda, link);
        mr_machine_run_host_function(machine, call.command);
        finish(&call);
    }
}

/* One at a time from the front: destroying a command may close its stream, and come back here. */
void mr_cuda_host_abandon(cuda_machine *cuda) {
    while (cuda->calls) {
        cuda_call call = take(cuda, &cuda->calls);
        finish(&call);
    }
}

uint64_t mr_cuda_host_number(const cuda_call *call) {
    return call->command->seq;
}

cuda_stream *mr_cuda_host_stream(const cuda_call *call) {
    return call->stream;
}
