/* The graph of pending work: its edges, and searches in it. queue.c and the pool decide which edges there
 * are. */
#include "virtual/state.h"

bool mr_virtual_add_edge(vgpu *gpu, work *from, work *to, mr_cause cause) {
    edge *e = mr_slab_alloc(&gpu->edges);
    if (!e) return false;
    *e = (edge){.from = from,
                .to = to,
                .next_out = from->out,
                .cause = (uint8_t)cause,
                .u.next_in = to->in};
    from->out = to->in = e;
    to->unfinished++;
    return true;
}

void mr_virtual_free_edges_in(vgpu *gpu, work *w) {
    for (edge *e = w->in, *next; e; e = next) {
        next = e->u.next_in;
        if (e->from) {
            e->to = NULL; /* still in the predecessor's list, which frees it */
            e->u.guarded = NULL;
        } else {
            mr_slab_free(&gpu->edges, e);
        }
    }
    w->in = NULL;
}

work *mr_virtual_newest_predecessor(const work *w) {
    work *newest = w->before;
    for (const edge *e = w->in; e; e = e->u.next_in)
        if (e->from && (!newest || e->from->command->seq > newest->command->seq)) newest = e->from;
    return newest || !w->command->meeting ? newest : mr_virtual_meet_waits_for(w);
}

#define SEARCH_LIMIT 256

/* Goes back from works that wait for another stream to the works that they wait for. Between two such works a stream
 * only continues its own order, which prior_join skips. */
bool mr_virtual_ordered_after(work *w, const queue *earlier, uint64_t index) {
    vgpu *gpu = w->queue->device->gpu;
    work *stack[SEARCH_LIMIT];
    int depth = 0;
    uint64_t stamp = ++gpu->searches;
    stack[depth++] = w;
    for (int visits = 0; depth && visits < SEARCH_LIMIT; visits++) {
        w = stack[--depth];
        if (w->visited == stamp) continue;
        w->visited = stamp;
        if (w->queue == earlier && w->index >= index) return true;
        for (const edge *e = w->in; e && depth < SEARCH_LIMIT; e = e->u.next_in)
            if (e->from) stack[depth++] = e->from;
        if (w->prior_join_index > w->queue->completed && depth < SEARCH_LIMIT)
            stack[depth++] = w->prior_join;
    }
    return false;
}

queue *mr_virtual_queue_of(const mr_stream *stream) {
    if (stream->impl) return stream->impl;
    vdevice *device = stream->device->impl;
    for (queue *q = device->first; q; q = q->next)
        if (q->stream_id == stream->id) return q;
    return NULL;
}
