/* The duration of a launch on the virtual GPU, from counts of its own blocks. It is known only while the launch runs: a
 * sample of its blocks is counted, once for each shape and each set of arguments of a kernel. */
#ifndef MR_OPS_KERNEL_TIME_H
#define MR_OPS_KERNEL_TIME_H

#include "ops/kernel.h"

/* a power of two; the last launches of a kernel with more shapes and arguments have no time */
#define KERNEL_TIMES 512

/* The times known of one kernel of a code. */
typedef struct mr_kernel_timing {
    struct {
        uint64_t key; /* 0: none */
        double ns;
    } * known;              /* by the key's low bits, or the next free place; NULL: none yet */
    uint32_t count;         /* of them */
    uint64_t sampled;       /* key of the launch that is being counted, or 0 */
    mr_ptx_profile *sample; /* its counts so far; or NULL */
} mr_kernel_timing;

/* Whether blocks of the command are still to be counted. They must then run on one thread: the counts are not locked,
 * and which blocks are counted must not depend on which thread comes first. */
bool mr_kernel_time_samples(const mr_command *command);
/* If blocks [first, *io_end) must be counted: a new profile for them, and *io_end is lowered to a sufficient number.
 * NULL: they are not counted. */
mr_ptx_profile *mr_kernel_time_begin(const mr_command *command, int64_t first, int64_t *io_end);
/* They have run. Takes `counts`, and adds them to `too`, if it is not NULL. */
void mr_kernel_time_end(const mr_command *command, mr_ptx_profile *counts, mr_ptx_profile *too);

/* The nanoseconds of the whole launch, once some of it has run; 0: not known. A launch that is carried out again on
 * another machine takes as long as the first time. */
double mr_kernel_time_ns(const mr_command *command);

#endif
