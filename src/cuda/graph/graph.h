/* Shared by graph.c and capture.c. */
#ifndef MR_CUDA_GRAPH_H
#define MR_CUDA_GRAPH_H

#include "cuda/launch/kernels.h"

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

#endif
