/* The working memory of graphs: what reductions, sorts and cuBLAS need besides their operands.
 *
 * Outside of graphs a command borrows it from the pool, in the order of its stream. A graph is launched many times with
 * the addresses of its capture. So the memory is allocated while it is captured, on a stream that does not capture, and
 * is given back with the graph. Commands of one lane of the capture follow each other in each launch, and share it.
 *
 * Easiest to break: nothing here may be given to a stream that captures, as it would become a node. */
#include "cuda/graph/graph.h"
#include "cuda/objects/objects.h"

static mr_status open_stream(cuda_graph_memory *memory) {
    if (memory->stream) return MR_OK;
    MR_CUDA_TRY(memory->device,
                mr_cu.StreamCreateWithPriority(&memory->stream, CU_STREAM_NON_BLOCKING, 0),
                "graph");
    return MR_OK;
}

/* The smallest that is large enough. Blocks without a lane are in use for good. */
static cuda_graph_block *find(const cuda_graph_memory *memory, CUstream lane, uint64_t bytes) {
    cuda_graph_block *best = NULL;
    for (size_t i = 0; i < memory->blocks.count && lane; i++) {
        cuda_graph_block *b = &memory->blocks.items[i];
        if (b->in_use || b->lane != lane || b->bytes < bytes) continue;
        if (!best || b->bytes < best->bytes) best = b;
    }
    return best;
}

static mr_status borrow(cuda_graph_memory *memory, CUstream lane, uint64_t bytes,
                        CUdeviceptr *out_address) {
    cuda_graph_block *found = find(memory, lane, bytes);
    if (found) {
        found->in_use = true;
        *out_address = found->address;
        return MR_OK;
    }
    cuda_graph_block added = {.bytes = bytes ? bytes : 1, .lane = lane, .in_use = true};
    if (!mr_vec_reserve_one(&memory->blocks)) return mr_no_memory("for the memory of a graph");
    MR_TRY(open_stream(memory));
    MR_CUDA_TRY(memory->device,
                mr_cu.MemAllocFromPoolAsync(&added.address, added.bytes, memory->device->pool,
                                            memory->stream),
                "graph: %llu bytes of working memory", (unsigned long long)added.bytes);
    memory->blocks.items[memory->blocks.count++] = added;
    *out_address = added.address;
    return MR_OK;
}

static void give_back(cuda_graph_memory *memory, CUdeviceptr address) {
    for (size_t i = 0; i < memory->blocks.count; i++)
        if (memory->blocks.items[i].address == address) memory->blocks.items[i].in_use = false;
}

void mr_cuda_graph_memory_begin(cuda_graph_memory *memory, cuda_device *device) {
    cuda_kernels *kernels = device->kernels;
    *memory = (cuda_graph_memory){.device = device, .borrow = borrow, .give_back = give_back};
    kernels->captured = memory;
}

mr_status mr_cuda_graph_memory_end(cuda_graph_memory *memory) {
    cuda_device *device = memory->device;
    CUresult result = CUDA_SUCCESS;
    ((cuda_kernels *)device->kernels)->captured = NULL;
    if (!memory->stream) return MR_OK;
    memory->ready = mr_cuda_event_take(device);
    if (memory->ready) result = mr_cu.EventRecord(memory->ready, memory->stream);
    mr_cu.StreamDestroy(memory->stream); /* its pending work is still carried out */
    memory->stream = NULL;
    if (!memory->ready) return mr_fail(MR_CODE_OUT_OF_MEMORY, "graph: the driver has no event");
    MR_CUDA_TRY(device, result, "graph");
    return MR_OK;
}

/* The reclaim stream comes after each closed stream. */
void mr_cuda_graph_memory_free(cuda_graph_memory *memory, const cuda_stream *last) {
    cuda_device *device = memory->device;
    if (memory->ready) {
        mr_cu.StreamWaitEvent(device->reclaim, memory->ready, 0);
        mr_cuda_event_give(device, memory->ready);
        memory->ready = NULL;
    }
    if (memory->blocks.count && last && !last->closed)
        mr_error_destroy(mr_cuda_reclaim_after(device, device, last->handle));
    while (memory->blocks.count)
        mr_cu.MemFreeAsync(mr_vec_pop(&memory->blocks).address, device->reclaim);
    mr_vec_free(&memory->blocks);
    memory->draws = 0;
}
