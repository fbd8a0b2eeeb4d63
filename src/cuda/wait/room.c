/* The Lua thread must never block inside the driver while a host function is pending. So the submissions after it are
 * counted, over all streams. Before there are more than the driver accepts without blocking, the backend waits for the
 * oldest host function; this wait runs host functions and can be interrupted. All work before the oldest function was
 * submitted earlier and waits for no host function, so the stream does reach it. */
#include "cuda/wait/wait.h"

mr_status mr_cuda_host_submit(const mr_command *command) {
    cuda_stream *stream = command->stream->impl;
    cuda_machine *cuda = stream->device->machine;
    while (cuda->calls && !mr_cuda_turn_is_free(stream)) MR_TRY(mr_cuda_wait_call(cuda));
    MR_TRY(mr_cuda_use(stream->device));
    return mr_cuda_host_add(stream, command);
}

mr_status mr_cuda_host_limit(cuda_machine *cuda) {
    cuda->submissions++;
    while (cuda->calls && mr_cuda_host_behind(cuda) > MOST_BEHIND) MR_TRY(mr_cuda_wait_call(cuda));
    return MR_OK;
}
