/* Inside src/ops and src/cuda: where the elements of flip, roll, tril and triu come from. */
#ifndef MR_OPS_MOVE_H
#define MR_OPS_MOVE_H

#include "ops/op.h"

typedef enum { MR_MOVE_FLIP, MR_MOVE_ROLL, MR_MOVE_LOWER, MR_MOVE_UPPER } mr_move_kind;
typedef struct {
    mr_move_kind kind;
} mr_move_body;
extern const mr_move_body mr_move_flip, mr_move_roll, mr_move_tril, mr_move_triu;

/* Element (i, j, ...) of the result is the input's element at `offset` elements from its first, plus the strides times
 * (i, j, ...). Along the dim `rolled` (-1: none) the index is `shift` less, around the end. With `band`, it is 0 unless
 * column - row, of the last two dims, is at most (-1) or at least (1) the `diagonal`. */
typedef struct {
    const mr_tensor *out, *in;
    int64_t offset;
    int64_t stride[MR_MAX_DIMS];
    int rolled;
    int64_t shift; /* from 0 to the dim's size - 1 */
    int band;      /* 0: none */
    int64_t diagonal;
} mr_moving;
void mr_moving_of(const mr_command *command, mr_moving *out);

#endif
