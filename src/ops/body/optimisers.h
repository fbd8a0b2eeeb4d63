/* Inside src/ops only: the `body` of a row of family OPTIMISE. optimise.c has them. */
#ifndef MR_OPS_BODY_OPTIMISERS_H
#define MR_OPS_BODY_OPTIMISERS_H

#include "ops/table.h"

typedef struct mr_optimiser mr_optimiser;
#define X(name, ...) extern const mr_optimiser mr_optimiser_##name;
MR_OPTIMISE_TABLE(X)
#undef X

#endif
