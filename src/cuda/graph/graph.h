/* The backend's slots for graphs, and what the files of this room share. */
#ifndef MR_CUDA_GRAPH_H
#define MR_CUDA_GRAPH_H

#include "cuda/launch/kernels.h"

mr_status mr_cuda_graph_build(const mr_graph_plan *plan, mr_stream *stream, void **graph);
mr_status mr_cuda_graph_launch(void *graph, mr_stream *stream, const mr_graph_launch *launch);
void mr_cuda_graph_drop(void *graph);

typedef struct {
    cuda_nodes nodes; /* first */
    cuda_device *device;
    CUgraphExec executable; /* NULL: its context is gone */
    cuda_graph_memory memory;
    cuda_stream *last; /* of the last launch; one reference; NULL: none */
} cuda_graph;

/* The driver's graph of the plan, whose commands the graph has; the caller owns it. The memory stays also after a
 * failure. The device is current, and no host function pends. */
mr_status mr_cuda_graph_capture(cuda_graph *g, const mr_graph_plan *plan, mr_stream *stream,
                                CUgraph *out_graph);

/* ---- memory.c: the memory of a graph that is captured: what mr_cuda_borrow gives from `begin` to `end` */

void mr_cuda_graph_memory_begin(cuda_graph_memory *memory, cuda_device *device);
/* No more commands will use its memory; pending work on `stream` becomes `ready`. */
mr_status mr_cuda_graph_memory_end(cuda_graph_memory *memory);
/* Given back after the last launch, which was on that stream (NULL: there was none). */
void mr_cuda_graph_memory_free(cuda_graph_memory *memory, const cuda_stream *last);

#endif
