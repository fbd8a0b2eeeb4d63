/* The known progress of each stream, and the end of its structure: used after waits. This file never waits. */
#include "cuda/wait/wait.h"

static void mark_done(cuda_stream *s, uint64_t seq) {
    if (seq > s->done_seq) s->done_seq = seq;
    if (s->holds && s->done_seq >= s->last_seq) mr_cuda_hold_release(s);
}

/* The legacy stream has waited for all that was in blocking streams before (R3). */
void mr_cuda_stream_done(cuda_stream *stream, uint64_t seq) {
    mark_done(stream, seq);
    if (!stream->gathers || stream->closed) return;
    for (cuda_stream *s = stream->device->first; s; s = s->next)
        if (s->gathered) mark_done(s, seq);
}

void mr_cuda_stream_idle(cuda_stream *stream) {
    mark_done(stream, stream->last_seq);
    if (!stream->gathers) return;
    for (cuda_stream *s = stream->device->first; s; s = s->next)
        if (s->gathered) mark_done(s, s->last_seq);
}

void mr_cuda_stream_release(cuda_stream *stream) {
    if (--stream->refs) return;
    mr_cuda_trail_forget(stream);
    mr_slab_free(&stream->device->machine->streams, stream);
}

void mr_cuda_stream_shut(cuda_stream *s) {
    if (s->closed) return;
    if (s->previous) s->previous->next = s->next;
    else s->device->first = s->next;
    if (s->next) s->next->previous = s->previous;
    else s->device->last = s->previous;
    s->closed = true;
    s->stream = NULL;
}

/* The default streams are there in every context. */
void mr_cuda_stream_forget(cuda_stream *stream) {
    stream->done_seq = stream->last_seq;
    if (stream->handle == CU_STREAM_LEGACY || stream->handle == CU_STREAM_PER_THREAD) return;
    mr_cuda_stream_shut(stream);
    if (!stream->foreign) mr_cu.StreamDestroy(stream->handle);
}
