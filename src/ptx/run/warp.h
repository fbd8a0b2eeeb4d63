/* The running state: a run has one block at a time, a block its warps, a warp its paths.
 *
 * A path is a set of lanes at one instruction. A warp has one path until a branch sends its lanes to different places.
 * Then each set is a path, and a join waits where they meet again, at the immediate post-dominator. A join is complete
 * when all lanes that it expects have arrived; lanes that exit are expected no more. A call is a join, too: at the
 * instruction after it, for the lanes that return. Only one path of a warp runs at a time; its state lies in the warp.
 *
 * Easiest to break: a live lane is in exactly one path, or has arrived at exactly one join. A join in the chain of a
 * path expects all lanes of that path. */
#ifndef MR_PTX_RUN_WARP_H
#define MR_PTX_RUN_WARP_H

#include "ptx/code.h"
#include "ptx/module.h"

typedef struct ptx_frame ptx_frame;
typedef struct ptx_join ptx_join;
typedef struct ptx_block_run ptx_block_run;
typedef struct ptx_run_state ptx_run_state;

/* The registers of a call. */
struct ptx_frame {
    char *registers; /* routine->frame_bytes, 64-byte aligned */
    const ptx_routine *routine;
    ptx_frame *caller;
    const ptx_call_code *call; /* NULL: the kernel */
    uint32_t local_base;       /* of its variables in local memory */
    uint32_t depth;
    ptx_frame *next_free;
};

struct ptx_join {
    const ptx_code *code;
    ptx_frame *frame;  /* in which the lanes go on */
    ptx_frame *callee; /* of a call: the frame that goes with this join; else NULL */
    uint32_t expected, arrived;
    ptx_join *outer;
};

typedef enum {
    PTX_PATH_READY,
    PTX_PATH_AT_BARRIER,
    /* at an instruction of the warp (.sync) that waits for lanes of other paths */
    PTX_PATH_AT_SYNC,
} ptx_path_state;

typedef struct {
    const ptx_code *code;
    uint32_t mask;
    ptx_path_state state;
    ptx_frame *frame;
    ptx_join *join;
    uint32_t barrier; /* at a barrier: which, then `code` is that of the barrier */
} ptx_path;

typedef enum {
    PTX_WARP_READY,
    PTX_WARP_BLOCKED, /* all its paths wait */
    PTX_WARP_DONE,
    PTX_WARP_FAILED, /* run->failure says why */
    PTX_WARP_PAUSED, /* it may go on, but it is the turn of another */
} ptx_warp_state;

/* spin.h: the memory that a warp polls. */
typedef struct {
    const ptx_code *poll;       /* that asks; NULL: none, or the warp has changed something since */
    uint64_t state;             /* the lanes' state at the last poll */
    const ptx_code *low, *high; /* the codes since then lie between them */
    uint32_t fresh;             /* how often in a row the lanes were in another state */
    bool is_idle;               /* nothing has changed from one time to the next */
} ptx_repeat;

struct ptx_warp {
    char *area[PTX_AREAS]; /* of operands; area[PTX_AREA_FRAME] is that of the path that runs */

    /* the path that runs */
    uint32_t active;
    ptx_frame *frame;
    ptx_join *join;

    uint32_t alive;   /* lanes that have not exited */
    uint32_t present; /* lanes that the block has */
    uint32_t carry;   /* of .cc instructions: a bit for each lane */
    bool gathered;    /* the lanes of an instruction of the warp have come together */
    ptx_warp_state state;
    int64_t slice, budget; /* of this slice: all, and left */
    uint64_t executed;     /* before the current slice */
    /* slices since paths changed: a spin that waits for lanes of its own warp */
    uint64_t since_join;

    bool is_probed;       /* spin.h: the next slice is short and watched */
    ptx_repeat repeat;    /* spin.h; only where the block is counted */
    uint32_t idle_slices; /* in a row in which it only waited for others */

    ptx_path paths[PTX_LANES]; /* those that do not run now; the last is taken first */
    uint32_t path_count;

    char *local; /* local memory: rows of 16 bytes for each of 32 lanes */
    /* for each byte of a lane: the lanes that have written it; only where follows_unset */
    uint32_t *local_set;
    uint32_t local_capacity; /* bytes of a lane */
    uint32_t local_used;     /* the most since the block began */

    ptx_frame *first_frame; /* of the kernel */
    uint32_t number;        /* in the block */
    ptx_block_run *block;
    ptx_run_state *run;
    char *vectors; /* area[PTX_AREA_WARP] */
};

typedef struct {
    uint32_t arrived;     /* threads */
    uint32_t wanted;      /* 0: all that have not exited */
    uint32_t ones, zeros; /* of barrier.red: threads whose predicate was true, or false */
    bool open;
    const ptx_code *first; /* for messages: the code of the first warp that arrived */
    uint64_t warps[16];    /* whose lanes took part */
} ptx_barrier;

/* The block that runs. */
struct ptx_block_run {
    uint64_t linear;
    uint32_t index[3];
    char *shared;
    uint8_t *shared_unset; /* one bit a byte, 1: not written; only where follows_unset */
    uint32_t shared_bytes;
    uint32_t shared_unset_left; /* bytes; 0 without checks */
    uint32_t alive;             /* threads */
    uint32_t open_barriers;
    ptx_barrier barriers[PTX_BARRIERS];
};

/* One range of the launch's memory that the run has used. */
typedef struct {
    mr_ptx_range range;
    bool told;      /* will_write */
    bool may_write; /* told, and not constant memory */
} ptx_known_range;

struct ptx_run_state {
    const mr_ptx_launch *launch;
    const mr_ptx_module *module;
    const ptx_routine *routine;
    mr_status failure;
    bool checks;        /* launch->check */
    bool follows_unset; /* and launch->unset_read is set */
    bool *told_unset;   /* by ptx_memory_code.index */
    bool tells;         /* accesses are told to a watch or a profile */

    ptx_block_run block;
    ptx_warp *warps;
    uint32_t warp_count, threads;
    char *launch_area;
    char *params; /* a copy, aligned */

    ptx_known_range **last; /* by memory access: the range that it used last; never NULL */
    MR_VEC(ptx_known_range *) ranges; /* all that were used */
    ptx_known_range nowhere;

    ptx_frame **free_frames; /* by function */
    ptx_join *free_joins;
    MR_VEC(void *) owned; /* chunks of frames and joins */

    uint64_t clock;            /* instructions executed by all warps */
    uint64_t polls, changes;   /* spin.h */
    const uint64_t *values;    /* the values of the store that is being reported; NULL: unknown */
    struct ptx_counts *counts; /* profile.h: of this run, by code; NULL: nothing is counted */
    bool is_counted;           /* the block that runs */
    uint64_t *local_taken;     /* bytes of local memory that all runs of this call have */
};

/* A vector, or a predicate, that an operand names. */
#define PTX_AT(type, warp, operand)                                                                \
    ((type *)(void *)((warp)->area[(operand)&3] + ((operand) & ~(uint32_t)3)))

/* Types of lanes: one piece of memory is read as any of them. */
typedef uint8_t __attribute__((may_alias)) ptx_u8;
typedef uint16_t __attribute__((may_alias)) ptx_u16;
typedef uint32_t __attribute__((may_alias)) ptx_u32;
typedef uint64_t __attribute__((may_alias)) ptx_u64;
typedef int8_t __attribute__((may_alias)) ptx_s8;
typedef int16_t __attribute__((may_alias)) ptx_s16;
typedef int32_t __attribute__((may_alias)) ptx_s32;
typedef int64_t __attribute__((may_alias)) ptx_s64;
typedef float __attribute__((may_alias)) ptx_f32;
typedef double __attribute__((may_alias)) ptx_f64;

static inline uint32_t ptx_lane_count(uint32_t mask) {
    return mask == PTX_ALL ? PTX_LANES : (uint32_t)__builtin_popcount(mask);
}

static inline uint32_t ptx_predicate(const ptx_warp *warp, ptx_place_of operand) {
    return *PTX_AT(const ptx_u32, warp, operand);
}
static inline void ptx_set_predicate(ptx_warp *warp, ptx_place_of operand, uint32_t value,
                                     uint32_t mask) {
    ptx_u32 *p = PTX_AT(ptx_u32, warp, operand);
    *p = (*p & ~mask) | (value & mask);
}

#endif
