/* Inside src/ops and src/cuda: the tensors between which a command of the INDEX family moves elements, for both
 * backends.
 *
 * There is one *position* for each element that is moved. Each position has three parts. The first is an element of the
 * plain side: the result of gather, the source of scatter_add_. The second is an element of the index. The third is a
 * line of the chosen side, from which the index picks one element: the input of gather, the tensor that scatter_add_
 * adds to. */
#ifndef MR_OPS_INDEX_H
#define MR_OPS_INDEX_H

#include "ops/op.h"

enum { MR_SIDE_PLAIN, MR_SIDE_INDEX, MR_SIDE_CHOSEN, MR_SIDES };

typedef struct {
    const mr_tensor *tensor[MR_SIDES]; /* PLAIN is NULL where a number is written */
    int ndim;                          /* of the positions; at least 1 */
    int along;                         /* the dim of the positions in which the index goes on */
    int64_t shape[MR_MAX_DIMS];
    int64_t stride[MR_SIDES][MR_MAX_DIMS]; /* over the positions, in elements */
    int64_t step;                          /* from one choice to the next, in elements */
    int64_t size;                          /* choices: the index is from 1 to this */
} mr_indexing;

/* The action of a row of the family: `body`. */
typedef enum { MR_INDEX_PICK, MR_INDEX_SET, MR_INDEX_ADD } mr_index_action;
typedef struct {
    mr_index_action action;
    /* the index has a dim of its own, or several, and counts for all of the others
     * (index_select) */
    bool flat;
} mr_index_body;

extern const mr_index_body mr_index_index_select, mr_index_embedding, mr_index_gather,
    mr_index_scatter, mr_index_scatter_add, mr_index_index_add;

void mr_indexing_of(const mr_command *command, mr_indexing *out);

/* The first value of an index that is not from 1 to `size`; false: there is none. */
bool mr_index_find_bad(const mr_tensor *index, int64_t size, int64_t *out_at, int64_t *out_value);

/* The error of an index that is out of range, with `code`; `at` counts positions of the index in row-major order, from
 * 0. */
mr_status mr_index_fail(mr_code code, const char *name, const mr_tensor *index, int64_t at,
                        int64_t value, const mr_tensor *chosen, int64_t size);

#endif
