/* Independent races, explored apart: private to this folder.
 *
 * n independent pairs have 2^n classes of schedules. Where their effects do not meet (groups.h), each group of races is
 * searched alone, while all other races run in the order of submission. The number of schedules is then the sum over
 * the groups. Each combination of the groups' results is an outcome: the bytes of the submitted order, overlaid with
 * the bytes that each group changed. Its number of classes is the product of those of its parts.
 *
 * Such an outcome is claimed for schedules that were never run, so it is done only where it is proved. The host must
 * see the same in all of them: no item fails, asks how far a device is, or has a function run. No value may depend on
 * which memory an allocation gets, and all accesses must be known. If a group's search meets anything else, its results
 * are discarded, and all races are explored together.
 *
 * The host may read bytes that a race changes, if it reads the same ones in all schedules of each group. A byte depends
 * on one group at most, so the host reads them in each combination, too. If it reads others, the function may go on in
 * another way for each value, and may then have other races. So the groups that the host reads are searched first.
 *
 * A schedule of one group carries out the slice of it: what its commands change, and what that is computed from. The
 * rest of the value has the bytes of the submitted order, which is carried out once before all groups. */
#ifndef MR_EXPLORE_APART_H
#define MR_EXPLORE_APART_H

#include "explore/groups.h"
#include "explore/state.h"

/* `late` was submitted after `early`. */
typedef struct {
    uint32_t late, early, group;
} apart_pair;

/* The result of a group alone. */
typedef struct {
    size_t outcome;     /* of the result */
    uint64_t classes;   /* of the group's schedules that lead there */
    uint64_t *reversed; /* by pair: whether the later one goes first, in the simplest of them */
} apart_outcome;

typedef struct {
    MR_VEC(apart_outcome) outcomes; /* the first one is that of the submitted order */
    uint64_t races, schedules;
    bool begun;
    bool looks; /* the host reads bytes that depend on it */
} apart_group;

typedef struct apart apart;
struct apart {
    groups groups;
    /* now: the group that is searched; the races of other groups run as submitted; NO_GROUP: all do */
    uint32_t count, now;
    uint32_t tried;    /* groups that have been searched */
    bool failed;       /* the search met something that forbids combining */
    bool looks;        /* the host reads bytes that depend on a race */
    bool returns;      /* the function's value depends on a race */
    bool may_go_wrong; /* a race may decide whether a command fails, or which bytes it touches */
    bool shares;       /* apart_prove_unseen: a tensor may get memory that others still read */
    bool alone;        /* apart_try_alone: results are not combined, so nothing is forbidden */
    apart_group *group;
    MR_VEC(apart_pair) pairs;
    bool *left_out;  /* by item: the slice of `now` does without */
    mr_buffer base;  /* the value of the submitted order */
    uint16_t *owner; /* by byte of it: the group that may change it, + 1; 0: none */
    MR_VEC(struct apart_place {
        uint32_t group;
        size_t place;
    })
    places; /* by outcome of the result: its index among the outcomes of a group */
};

/* ---- apart_explore.c */

/* Explores the races of the branch apart, if that is allowed; its order is known. *out_done: the search is finished, or
 * out of time; false: races are not explored apart, and the result is unchanged. */
mr_status apart_explore(explorer *e, branch *b, bool *out_done);

/* Called when the search of all races has run out of its time. Searches each group alone in the rest of the budget; the
 * host may read other values there. New outcomes are added to the result. */
mr_status apart_try_alone(explorer *e, branch *b);

/* Whether no effect of the branch's races can be observed. The host reads no value that depends on them, the function's
 * value does not contain one, and they cannot make a command fail. Then all schedules have one outcome. Unlike the
 * other proofs this one allows memory that is freed while it is read: such reads count as races. */
mr_status apart_prove_unseen(explorer *e, branch *b, bool *out_proved);

/* ---- apart.c: what a search asks and tells */

/* Whether a search tries both orders of an unordered pair. Otherwise the pair runs as submitted. */
bool apart_decides(explorer *e, branch *b, uint32_t late, uint32_t early);
/* Reports that the search met a case that the proof does not cover. False: races are not explored apart. */
bool apart_fails(explorer *e);
/* A schedule has come to its end with this value, which is completed; that of the submitted order becomes `base`.
 * `decided`: pairs on its way; `overtaken` as everywhere. */
mr_status apart_count(explorer *e, const branch *b, const plan *schedule, uint32_t overtaken,
                      size_t decided, mr_buffer *value, size_t text_size);

/* ---- apart_groups.c */

/* Fills an empty `a`, except the outcomes. It has no group if there are no independent races, or too many. */
mr_status apart_find_groups(explorer *e, branch *b, apart *a);

/* ---- slice.c: items that a group's schedules do without, and the owners of the value's bytes */

mr_status slice_find(apart *a, const branch *b); /* of the group `now`, into left_out */
/* `base` is known. Sets a->failed where the value has other bytes than the parts of the branch say. */
mr_status slice_find_owners(apart *a, const branch *b);
/* A value after a schedule of the slice: bytes that the group does not own become those of `base`. */
void slice_complete(apart *a, mr_buffer *value, size_t text_size);

/* ---- combine.c: all groups have been searched */

/* Replaces the outcomes of the result by those of all combinations, if these are not too many. */
mr_status combine_outcomes(explorer *e, branch *b, const apart *a);

#endif
