/* Counts of a launch, by decoded instruction: the number of executions by warps, the number of lanes, and the cost of
 * its memory accesses on a device. Each run counts for itself; at its end the counts are added to the launch's profile,
 * under a lock. */
#ifndef MR_PTX_RUN_PROFILE_H
#define MR_PTX_RUN_PROFILE_H

#include "ptx/ptx.h"

/* A kind of work that a multiprocessor does in one of its units. */
// clang-format off
#define PTX_CLASSES(X) \
    X(INTEGER, "integer") X(F32, "f32") X(F64, "f64") X(HALF, "half") \
    X(SPECIAL, "special functions") X(CONVERSION, "conversions") \
    X(PREDICATE, "compares and predicates") X(MOVE, "moves") X(GLOBAL, "global memory") \
    X(SHARED, "shared memory") X(LOCAL, "local memory") X(CONSTANT, "constants and parameters") \
    X(ATOMIC, "atomics") X(CONTROL, "control flow") X(BARRIER, "barriers and fences") \
    X(WARP, "warp operations")
// clang-format on

typedef enum {
#define X(name, text) PTX_CLASS_##name,
    PTX_CLASSES(X)
#undef X
        PTX_CLASS_COUNT
} ptx_class;
const char *mr_ptx_class_text(ptx_class which);

typedef struct {
    uint64_t warps;    /* how often a warp issued it, also with a guard that no lane passes */
    uint64_t executed; /* how often at least one lane executed it */
    uint64_t lanes;    /* that executed it, added up; of a branch also those that did not take it */
    uint64_t requests; /* accesses of memory by warps */
    uint64_t cached, banked; /* of them: to global memory, which has sectors; to shared memory */
    uint64_t sectors;        /* of 32 bytes in global or local memory, added up over requests */
    uint64_t least;          /* sectors that the bytes accessed would need at least */
    /* of 128 bytes in global or local memory: passes of the L1 cache, 1 a request at best */
    uint64_t lines;
    uint64_t wavefronts; /* shared memory: passes, 1 a request without conflicts of banks */
    uint64_t bytes;      /* that lanes accessed */
} mr_ptx_counts;

/* Whether a block is counted: the first ones of a kernel, and then one of each group, spread over the group by a hash.
 * So the choice is always the same, and follows no pattern of the grid. */
bool mr_ptx_block_is_counted(const mr_ptx_launch *launch, uint64_t block);

mr_ptx_profile *mr_ptx_profile_create(const mr_ptx_module *module); /* NULL: memory is out */
void mr_ptx_profile_destroy(mr_ptx_profile *profile);
/* Adds the counts of another one of the same module. */
void mr_ptx_profile_add(mr_ptx_profile *to, const mr_ptx_profile *from);
uint64_t mr_ptx_profile_blocks(const mr_ptx_profile *profile);

void mr_ptx_profile_class(const mr_ptx_profile *profile, ptx_class which, mr_ptx_counts *out);

/* For a class: `ld` alone, `st` alone. */
void mr_ptx_profile_moves(const mr_ptx_profile *profile, ptx_class which, mr_ptx_counts *out_loads,
                          mr_ptx_counts *out_stores);

/* Sums of a source line, for each line that was executed, by file and line. */
typedef struct {
    uint32_t file, line; /* the outermost place: of the kernel where functions were inlined */
    mr_ptx_counts counts, loads, stores; /* all instructions; `ld` alone; `st` alone */
} mr_ptx_line;
/* Writes at most `most` lines to `out` in that order and returns how many there are. */
uint32_t mr_ptx_profile_lines(const mr_ptx_profile *profile, mr_ptx_line *out, uint32_t most);

/* All that a warp does one after the other, added up over the warps of the blocks that were counted. */
typedef struct {
    uint64_t instructions;
    uint64_t memory_waits, shared_waits; /* for groups of loads (waits.h) */
    uint64_t warp_operations, barriers;
    /* releases towards the device by one thread, for which the others of its block wait */
    uint64_t arrivals;
    double sleep_ns; /* nanosleep */
    /* passes of atomic operations over the part of memory that has most of them */
    uint64_t hottest_cells;
} mr_ptx_course;
/* False: memory is out. */
bool mr_ptx_profile_course(const mr_ptx_profile *profile, mr_ptx_course *out);
/* For one warp that executes each instruction of the kernel once, those inside of loops and the others. *out_bytes: of
 * global memory, what one of its threads then accesses. */
enum { PTX_STRAIGHT, PTX_LOOPS, PTX_COURSES };
bool mr_ptx_kernel_course(const mr_ptx_kernel *kernel, mr_ptx_course out[PTX_COURSES],
                          uint64_t out_bytes[PTX_COURSES]);

/* Counts of one run: counts.h. */
typedef struct ptx_counts ptx_counts;

#endif
