/* Pools: graphs that share memory (R44). A block is a storage that several graphs of the pool have, in turn: a later
 * capture takes a block over when no tensor of the script refers to it. For the checker and the backends it is one
 * storage, so launches that nothing orders are races like any others.
 *
 * A tensor's generation is the number of its graph, and a block's is that of the graph that was captured or launched
 * with it last. So a graph's tensors cannot be used after the launch of another graph with the same memory, until their
 * own graph is launched again.
 *
 * Easiest to break: the count of the handles that graphs hold. A block with other handles is still used by the
 * script. */
#include <inttypes.h>
#include <stdlib.h>

#include "graph/state.h"

typedef struct {
    mr_storage *storage; /* one reference */
    uint32_t graphs;     /* that have it */
} block;

struct mr_graph_pool {
    uint32_t refs;
    uint32_t epoch;
    bool capturing;
    mr_device *device;
    mr_stream *memory_stream; /* of all its memory; one reference; NULL: none was allocated */
    MR_VEC(block) blocks;
    MR_VEC(mr_graph *) graphs; /* that exist; each has a reference to the pool */
};

/* The smallest block that the pools of the devices hand out. */
#define LEAST_BYTES 512

mr_status mr_graph_pool_new(const mr_caller *caller, mr_graph_pool **out_pool) {
    *out_pool = NULL;
    MR_TRY(mr_machine_ready(caller->machine));
    mr_graph_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return mr_no_memory("for a pool of graphs");
    pool->refs = 1;
    pool->epoch = caller->machine->epoch;
    pool->device = caller->machine->current_device;
    *out_pool = pool;
    return MR_OK;
}

static void pool_retain(mr_graph_pool *pool) {
    pool->refs++;
}

/* Each graph has a reference, so there are no blocks here. */
void mr_graph_pool_release(mr_graph_pool *pool) {
    if (!pool || --pool->refs) return;
    mr_stream_release(pool->memory_stream);
    mr_vec_free(&pool->blocks);
    mr_vec_free(&pool->graphs);
    free(pool);
}

mr_graph_pool_facts mr_graph_pool_facts_of(const mr_graph_pool *pool) {
    mr_graph_pool_facts facts = {.graphs = (uint32_t)pool->graphs.count,
                                 .allocations = (uint32_t)pool->blocks.count};
    for (size_t i = 0; i < pool->blocks.count; i++) {
        const block *b = &pool->blocks.items[i];
        facts.bytes += b->storage->bytes;
        facts.saved += b->storage->bytes * (b->graphs - 1);
    }
    return facts;
}

mr_device *mr_graph_pool_device(const mr_graph_pool *pool) {
    return pool->device;
}

/* ---- captures */

mr_status mr_graph_pool_check(const mr_capture_options *options, const mr_stream *stream) {
    const mr_graph_pool *pool = options->pool;
    if (!pool) return MR_OK;
    if (options->keeps_memory)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "capture: auto_free=false is not available with a pool, whose graphs use "
                       "the memory in turn: leave it out");
    if (pool->epoch != stream->device->machine->epoch)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "capture: the pool was made before mr.reset(): make another one");
    if (pool->device != stream->device)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "capture: the pool is of device %d, and the stream of device %d: make the "
                       "pool with that device as the current one",
                       pool->device->index, stream->device->index);
    if (!pool->capturing) return MR_OK;
    return mr_fail(MR_CODE_ILLEGAL_STATE, "capture: another capture with this pool is under way: "
                                          "end it first, or use another pool");
}

mr_status mr_graph_pool_begin(mr_graph_pool *pool, mr_graph *graph) {
    if (!pool) return MR_OK;
    if (!mr_vec_push(&pool->graphs, graph)) return mr_no_memory("for one more graph of a pool");
    pool_retain(pool);
    graph->pool = pool;
    pool->capturing = true;
    graph->memory_stream = pool->memory_stream;
    if (graph->memory_stream) mr_stream_retain(graph->memory_stream);
    return MR_OK;
}

void mr_graph_pool_end(mr_graph *graph) {
    if (graph->pool) graph->pool->capturing = false;
}

static uint64_t rounded(uint64_t bytes) {
    uint64_t count = bytes / LEAST_BYTES + (bytes % LEAST_BYTES != 0);
    return count ? count : 1;
}

/* A block of more than twice the size is left to a tensor that needs it. */
static bool fits(const mr_storage *storage, uint64_t bytes) {
    return storage->bytes >= bytes && rounded(storage->bytes) / 2 <= rounded(bytes);
}

mr_storage *mr_graph_pool_find(const mr_graph *graph, uint64_t bytes) {
    const mr_graph_pool *pool = graph->pool;
    mr_storage *best = NULL;
    for (size_t i = 0; pool && i < pool->blocks.count; i++) {
        mr_storage *storage = pool->blocks.items[i].storage;
        bool is_own = storage->generation == (uint32_t)graph->id;
        if (is_own || storage->handles != storage->pool_handles || !fits(storage, bytes)) continue;
        if (!best || storage->bytes < best->bytes) best = storage;
    }
    return best;
}

mr_status mr_graph_pool_reserve(mr_graph *graph) {
    if (!graph->pool || mr_vec_reserve_one(&graph->pool->blocks)) return MR_OK;
    return mr_no_memory("for an allocation of a pool of graphs");
}

static block *block_of(const mr_graph_pool *pool, const mr_storage *storage) {
    for (size_t i = 0; i < pool->blocks.count; i++)
        if (pool->blocks.items[i].storage == storage) return &pool->blocks.items[i];
    return NULL;
}

void mr_graph_pool_add(mr_graph *graph, mr_storage *storage) {
    mr_graph_pool *pool = graph->pool;
    if (!pool) return;
    block *b = block_of(pool, storage);
    if (b) {
        b->graphs++;
        graph->shared_bytes += storage->bytes;
    } else {
        pool->blocks.items[pool->blocks.count++] = (block){.storage = storage, .graphs = 1};
        mr_storage_retain(storage);
        storage->pool = pool;
    }
    if (!pool->memory_stream) {
        pool->memory_stream = storage->stream;
        mr_stream_retain(pool->memory_stream);
    }
    storage->generation = (uint32_t)graph->id;
    storage->freed = storage->recorded_free = false;
}

void mr_graph_pool_hold(const mr_graph *graph, mr_storage *storage) {
    if (graph->pool && storage->pool == graph->pool) storage->pool_handles++;
}

void mr_graph_pool_unhold(const mr_graph *graph, mr_storage *storage) {
    if (graph->pool && storage->pool == graph->pool) storage->pool_handles--;
}

/* ---- launches */

mr_status mr_graph_pool_check_launch(const mr_graph *graph) {
    if (!graph->pool || !graph->memory.count || !graph->pool->capturing) return MR_OK;
    return mr_fail(MR_CODE_ILLEGAL_STATE,
                   "launch: a capture with the pool of this graph is under way: end it first");
}

bool mr_graph_pool_is_own(const mr_graph *graph, const mr_tensor *operand) {
    return graph->pool && operand->storage->pool == graph->pool &&
           operand->generation == (uint32_t)graph->id;
}

mr_status mr_graph_pool_check_operand(const mr_graph *graph, const mr_command *node,
                                      const mr_tensor *operand) {
    const mr_storage *storage = operand->storage;
    if (!storage->pool || !storage->launched || mr_graph_pool_is_own(graph, operand)) return MR_OK;
    if (storage->launched == operand->generation) return MR_OK;
    return mr_fail(MR_CODE_INVALID_HANDLE,
                   "launch: node `%.60s`, captured at %.100s:%d, uses a tensor of graph %" PRIu32
                   ", and graph %" PRIu32
                   " of the same pool has been launched since, with the same "
                   "memory: launch graph %" PRIu32 " again before",
                   node->name, node->where.file ? node->where.file : "?", node->where.line,
                   operand->generation, storage->launched, operand->generation);
}

void mr_graph_pool_launched(const mr_graph *graph, mr_storage *storage) {
    if (!graph->pool) return;
    storage->graph = (void *)graph;
    storage->generation = storage->launched = (uint32_t)graph->id;
}

/* ---- the end of a graph */

void mr_graph_pool_forget(mr_graph *graph) {
    mr_graph_pool *pool = graph->pool;
    for (size_t i = 0; pool && i < pool->graphs.count; i++)
        if (pool->graphs.items[i] == graph) pool->graphs.items[i--] = mr_vec_pop(&pool->graphs);
}

/* A free by the script asks a graph that has the memory (capture_memory.c). */
static mr_graph *another_with(const mr_graph_pool *pool, const mr_storage *storage) {
    for (size_t i = 0; i < pool->graphs.count; i++) {
        mr_graph *graph = pool->graphs.items[i];
        for (size_t k = 0; k < graph->memory.count; k++)
            if (graph->memory.items[k].storage == storage) return graph;
    }
    return NULL;
}

bool mr_graph_pool_leave(mr_graph *graph, mr_storage *storage) {
    mr_graph_pool *pool = graph->pool;
    if (!pool) return true;
    block *b = block_of(pool, storage);
    if (--b->graphs) {
        if (storage->graph == graph) storage->graph = another_with(pool, storage);
        return false;
    }
    *b = mr_vec_pop(&pool->blocks);
    storage->pool = NULL;
    mr_storage_release(storage);
    return true;
}
