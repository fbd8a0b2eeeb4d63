/* Looks for races inside one launch. Two accesses of different threads to the same byte race if
 * at least one is a write and nothing orders them. Atomic accesses in a scope that holds both
 * threads do not race with each other. Exact for the run at hand, whatever order blocks and warps
 * ran in.
 *
 * The interpreter tells each access before it is carried out, and each barrier when it is complete. One object serves
 * one launch, whose blocks may run on several threads at once: so the calls take locks or use atomics. */
#ifndef MR_PTX_WATCH_WATCH_H
#define MR_PTX_WATCH_WATCH_H

#include <stdatomic.h>

#include "ptx/ptx.h"

typedef enum {
    PTX_WEAK,
    PTX_VOLATILE,
    PTX_RELAXED,
    PTX_ACQUIRE,
    PTX_RELEASE,
    PTX_ACQ_REL,
    PTX_SEQ_CST
} ptx_order;
typedef enum {
    PTX_SCOPE_NONE,
    PTX_SCOPE_BLOCK,
    PTX_SCOPE_CLUSTER,
    PTX_SCOPE_DEVICE,
    PTX_SCOPE_SYSTEM
} ptx_scope;

/* One load, store or atomic of a warp. Lanes access `bytes` each at their addresses. */
typedef struct {
    uint64_t block; /* linear */
    uint32_t warp;  /* in the block; thread = 32 * warp + lane, x fastest */
    uint32_t mask;  /* lanes that take part */
    /* PTX_GLOBAL or PTX_SHARED: generic addresses are resolved; local memory is not told */
    ptx_space space;
    /* 32; global: the address; shared: the offset in the block's shared memory */
    const uint64_t *address;
    uint32_t bytes; /* of each lane, a vector's parts together */
    uint8_t access; /* MR_PTX_READS | MR_PTX_WRITES */
    /* atom, red; or a strong load or store (relaxed and above). Volatile counts as strong anyway */
    bool atomic;
    ptx_order order;
    ptx_scope scope;
    /* of a store or what an atomic wrote / NULL: for reads; 32, zero-extended; lets two writes of
     * the same value be told apart from others in the report */
    const uint64_t *value;
    const ptx_instruction *instruction;
    /* Facts that the caller has about the addresses of the mask's lanes; they save a look at them. */
    bool is_row;  /* lane i + 1 accesses the `bytes` bytes after those of lane i */
    bool is_same; /* all lanes access one address */
} ptx_watched;

typedef struct {
    uint64_t block;
    uint32_t warp, lane;
    uint8_t access;
    bool atomic;
    const ptx_instruction *instruction;
} ptx_race_side;

/* How far apart two threads are. */
typedef enum { PTX_APART_LANES, PTX_APART_WARPS, PTX_APART_BLOCKS } ptx_apart;

typedef struct {
    ptx_space space;
    uint64_t address;            /* of the first byte */
    uint32_t bytes;              /* that both access there */
    ptx_race_side first, second; /* as they ran */
    bool same_value;             /* both wrote the same bytes: CUDA still calls it a race */
    uint64_t count;              /* further pairs of the same two instructions */
    uint64_t least, end;         /* the addresses of all pairs lie between */
    ptx_apart apart, most_apart; /* the threads of this pair; those of any pair that is counted */
    /* a sentence with the operation that would order all of these pairs; static */
    const char *advice;
} ptx_race;

/* `blocks`, `threads`: of the launch; `threads` at most 1024. NULL: memory is out. */
mr_ptx_watch *mr_ptx_watch_create(const mr_ptx_module *module, uint64_t blocks, uint32_t threads);
void mr_ptx_watch_destroy(mr_ptx_watch *watch); /* accepts NULL */
/* Why it has stopped looking before the end (memory is out, ...): a static sentence. NULL: it has not. Its findings
 * until then are valid; a launch never fails because of it. */
const char *mr_ptx_watch_stopped(const mr_ptx_watch *watch);

/* Two threads accessed the same bytes by strong accesses that do not race, one of them wrote, and no barrier orders the
 * two: their order may decide values. Atomic operations among themselves do not count (access/outcome.h judges them),
 * unless a thread relies on the order by one (acquire). The barrier of the grid does not count. */
bool mr_ptx_watch_order_matters(const mr_ptx_watch *watch);

/* A block begins (again): the records of its shared memory and barriers are cleared. */
void ptx_watch_block(mr_ptx_watch *watch, uint64_t block, uint32_t shared_bytes);
void ptx_watch_block_done(mr_ptx_watch *watch, uint64_t block);
void ptx_watch_access(mr_ptx_watch *watch, const ptx_watched *access);
/* All threads of the block (`warps` NULL), or of some warps (barrier with a count; bit w of warps[w / 64]), have come
 * to a barrier and go on. All that they did before is ordered before all that they do from now on. */
void ptx_watch_barrier(mr_ptx_watch *watch, uint64_t block, const uint64_t *warps,
                       uint32_t warp_count);
/* The lanes of `mask` have come together (bar.warp.sync, and any .sync instruction of the warp counts, too, as it
 * orders memory only for bar.warp.sync: tell only that one). */
void ptx_watch_warp_sync(mr_ptx_watch *watch, uint64_t block, uint32_t warp, uint32_t mask);
void ptx_watch_fence(mr_ptx_watch *watch, uint64_t block, uint32_t warp, uint32_t mask,
                     ptx_order order, ptx_scope scope);

/* bar.arrive at barrier `barrier` (0..15): the warp goes on at once. Its accesses so far come
 * before those of the warps that wait there, once ptx_watch_arrived (after ptx_watch_barrier) has
 * said that the barrier is complete. */
void ptx_watch_arrive(mr_ptx_watch *watch, uint64_t block, uint32_t warp, uint32_t barrier);
void ptx_watch_arrived(mr_ptx_watch *watch, uint64_t block, uint32_t barrier, const uint64_t *warps,
                       uint32_t warp_count);

/* cp.async: the lanes have begun to copy to shared memory; the write has been told before. Until a lane waits for its
 * copy, an access to the bytes races, also one of this lane. ptx_watch_commit makes a group of a lane's copies, and
 * ptx_watch_wait ends all groups but its last `most` ones; PTX_WAIT_ALL: all copies. */
#define PTX_WAIT_ALL UINT64_MAX
void ptx_watch_copy(mr_ptx_watch *watch, const ptx_watched *access);
void ptx_watch_commit(mr_ptx_watch *watch, uint64_t block, uint32_t warp, uint32_t mask);
void ptx_watch_wait(mr_ptx_watch *watch, uint64_t block, uint32_t warp, uint32_t mask,
                    uint64_t most);

/* The order of the reports decides which write a strong read has seen. Blocks of one launch may run on several threads.
 * So a strong access to global memory is told and carried out between these two calls; else another thread may come in
 * between. The lanes of a warp count as carried out in ascending order. */
void ptx_watch_hold(mr_ptx_watch *watch);
void ptx_watch_let_go(mr_ptx_watch *watch);

/* From now on each global access to the `bytes` bytes at `address` is marked in marks[0 .. bytes): how the byte was
 * accessed. `marks` must live as long as the watch. `is_shared`: with other devices, so that only scope .sys is atomic
 * there. False: memory is out. Set it before the launch. */
enum { PTX_MARK_READ = 1, PTX_MARK_WRITE = 2, PTX_MARK_UPDATE = 8 }; /* atomic */
bool mr_ptx_watch_mark(mr_ptx_watch *watch, uint64_t address, uint64_t bytes, bool is_shared,
                       _Atomic uint8_t *marks);
void mr_ptx_watch_unmark(mr_ptx_watch *watch); /* takes the last one back */

/* The races found so far: one for each pair of instructions and space, the first that ran. */
uint32_t mr_ptx_watch_race_count(const mr_ptx_watch *watch);
const ptx_race *mr_ptx_watch_race(const mr_ptx_watch *watch, uint32_t i);
/* "race in kernel `k`: thread (3,0,0) of block (0,0,0) writes shared memory s[3] at t.cu:14, and thread (4,0,0) reads
 * it at t.cu:15; nothing orders the two"; returns `out`. */
const char *mr_ptx_race_text(const mr_ptx_watch *watch, const ptx_race *race,
                             const mr_ptx_launch *launch, char *out, size_t size);

#endif
