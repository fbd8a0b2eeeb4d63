/* Independent races, explored apart: private to this folder.
 *
 * n pairs that have nothing to do with each other have 2^n classes of schedules. Where their effects do not meet
 * (groups.h), each group of races is searched alone, while all other races run in the order of submission. That takes
 * as many schedules as all groups have together. Each combination of what they come to is then an outcome: its bytes
 * are those of the submitted order, with what each group has changed laid over. As many classes lead to it as the
 * product of those of its parts.
 *
 * This says something of schedules that nobody has carried out, so it is done only where it is proved. The host must
 * see the same in all of them: no item fails, asks how far a device is, or has a function run. No value may depend on
 * which memory an allocation gets, and all accesses must be known. Where a group's search meets anything else, all is
 * forgotten, and all races are explored together.
 *
 * The effect of two values on a function does not follow from the effect of each value alone. So nothing is
 * combined where the host reads what depends on a race. */
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
} apart_group;

typedef struct apart apart;
struct apart {
    groups groups;
    uint32_t count, now; /* now: whose races are decided; the others run as submitted */
    uint32_t tried;      /* groups that have been searched */
    bool failed;         /* something has been met that forbids it */
    bool looks;          /* the host reads bytes that depend on a race */
    bool returns;        /* so does the value of the function */
    bool may_go_wrong;   /* a command may fail, or touch other bytes, by what depends on a race */
    bool shares;         /* apart_prove_unseen: a tensor may get memory that others still read */
    bool alone;          /* apart_try_alone: nothing is combined, and all may be met */
    apart_group *group;
    MR_VEC(apart_pair) pairs;
    MR_VEC(struct apart_place {
        uint32_t group;
        size_t place;
    })
    places; /* by outcome of the result: where it is among those of a group */
};

/* ---- apart_explore.c */

/* Tries it, for a branch whose order is known. *out_done: there is nothing left to search, or no time; else nothing has
 * been found. */
mr_status apart_explore(explorer *e, branch *b, bool *out_done);

/* The search of all races has no time left. Tries each group alone, as far as there is time: what is read by the host
 * may differ then. Outcomes that are new are added to the result. */
mr_status apart_try_alone(explorer *e, branch *b);

/* Whether what the races of the branch change reaches nobody. The host reads nothing that depends on them, the value
 * has nothing of it, and no command can fail by it. Then all schedules come to one outcome. Unlike the others it also
 * holds where memory is freed while somebody reads it: these reads count as races, too. */
mr_status apart_prove_unseen(explorer *e, branch *b, bool *out_proved);

/* ---- apart.c: what a search asks and tells */

/* Whether a search tries both orders of a pair that nothing orders. Otherwise it runs as submitted. */
bool apart_decides(explorer *e, branch *b, uint32_t late, uint32_t early);
/* Something was met that is not proved. False: races are not explored apart. */
bool apart_fails(explorer *e);
/* A schedule has come to its end with this value. `decided`: pairs on its way; `overtaken` as everywhere. */
mr_status apart_count(explorer *e, const branch *b, const plan *schedule, uint32_t overtaken,
                      size_t decided, const mr_buffer *value, size_t text_size);

/* ---- apart_groups.c */

/* All but the outcomes, into an empty one. No group: nothing was found, or too much. */
mr_status apart_find_groups(explorer *e, branch *b, apart *a);

/* ---- combine.c: all groups have been searched */

/* The outcomes of the result become those of all combinations, if there are not too many of them. */
mr_status combine_outcomes(explorer *e, branch *b, const apart *a);

#endif
