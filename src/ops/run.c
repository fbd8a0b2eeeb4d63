/* Runs an action at once: on this thread, and on the pool's where there is enough to do. */
#include "ops/blas.h"
#include "ops/body.h"

#include "base/parallel.h"

/* Bytes moved or floating-point operations that are worth waking a thread for. */
static const double PIECE_OF_WORK = 256 * 1024;

typedef struct {
    const mr_action *action;
    void *state;
} job;

static void run_piece(void *context, int64_t first, int64_t end) {
    const job *j = context;
    j->action->u.op.row->run(j->action, j->state, first, end);
}

/* CBLAS has threads of its own. */
static bool brings_threads(const mr_action *action) {
    return action->u.op.row->family == MR_FAMILY_MATMUL &&
           mr_dtype_category(action->operands[0].tensor->dtype) == 2 && mr_blas_open();
}

mr_status mr_op_run_now(const mr_action *action) {
    const mr_op *row = action->u.op.row;
    job j = {.action = action};
    if (row->begin) MR_TRY(row->begin(action, &j.state));
    int64_t items = row->items(action);
    if (items > 0) {
        mr_cost cost;
        row->cost(action, &cost);
        double work = cost.flops > cost.bytes ? cost.flops : cost.bytes;
        if (work < 2 * PIECE_OF_WORK || mr_parallel_threads() == 1 || brings_threads(action))
            row->run(action, j.state, 0, items);
        else
            mr_parallel_for(items, (int64_t)((double)items * (PIECE_OF_WORK / work)) + 1, run_piece, &j);
    }
    if (row->finish) row->finish(action, j.state);
    return MR_OK;
}
