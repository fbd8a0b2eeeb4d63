/* The bytes that a kernel accesses, in the form for callers: through each parameter by any launch, and by one
 * launch. */
#ifndef MR_PTX_ACCESS_EXTENTS_H
#define MR_PTX_ACCESS_EXTENTS_H

#include "ptx/read/tree.h"

enum { MR_PTX_READS = 1, MR_PTX_WRITES = 2 };

/* The accesses through it that any launch may make. Conservative: an unknown access counts as both, and `reason` then
 * says why in a few words, with the line. */
typedef struct {
    uint8_t access;   /* MR_PTX_READS | MR_PTX_WRITES; 0: not used as a pointer */
    bool known;       /* false: the inference gave up; access is both */
    ptx_type element; /* the type of the loads and stores, PTX_NO_TYPE if they differ */
    const char *reason;
} mr_ptx_param_access;
/* Why an extent is more than what is accessed for certain. */
typedef enum {
    MR_PTX_CERTAIN, /* every byte is accessed in every run of the launch that ends */
    MR_PTX_GAPS,
    MR_PTX_INDEX,
    MR_PTX_CONDITION,
    MR_PTX_LOOP,
    MR_PTX_ARITHMETIC,
    MR_PTX_CHOSEN,
    MR_PTX_KEPT,
    MR_PTX_SIZE,
} mr_ptx_reason;

enum { MR_PTX_EXTENT_DIMS = 2 };

/* Bytes of one launch, relative to the pointer's value that it may access in one way. The extents of a pointer together
 * are never less than what the launch accesses; one without a reason is never more, either. */
typedef struct {
    uint32_t param;
    uint32_t offset; /* of the pointer in the parameter: not 0 only in a struct */
    uint8_t access;
    bool is_atomic; /* by atomic instructions only, of scope .gpu or .sys; access is both then */
    bool is_system; /* all of them are of scope .sys */
    mr_ptx_reason reason;
    int64_t first, end; /* INT64_MIN, INT64_MAX: not bounded */
    /* Without a reason: where between `first` and `end`: `run` bytes at each place of a grid with these dims, inner
     * ones first, whose places do not overlap. */
    int64_t run;
    uint32_t dim_count;
    struct {
        int64_t count, stride;
    } dims[MR_PTX_EXTENT_DIMS];
} mr_ptx_extent;
/* A launch that is yet to be made. */
typedef struct {
    uint32_t grid[3], block[3];
    const void *params; /* the numbers among the arguments */
    /* The offsets in `params` of pointers to memory; none is NULL. The bytes there are not read. Eight bytes that are
     * not named here are a number. */
    const uint32_t *pointers;
    uint32_t pointer_count;
} mr_ptx_plan;

#endif
