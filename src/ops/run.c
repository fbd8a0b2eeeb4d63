/* Runs an action at once: on this thread, and on the pool's where there is enough to do. */
#include "ops/blas.h"
#include "ops/body.h"

#include "base/parallel.h"

/* Bytes moved or floating-point operations that are worth waking a thread for. */
static const double PIECE_OF_WORK = 256 * 1024;

typedef struct {
    const mr_action *action;
    void *state;
    int64_t first;
} job;

static void run_piece(void *context, int64_t first, int64_t end) {
    const job *j = context;
    j->action->u.op.row->run(j->action, j->state, j->first + first, j->first + end);
}

/* CBLAS has threads of its own. Asking opens the library, so only what is large asks. */
static bool brings_threads(const mr_action *action) {
    return action->u.op.row->family == MR_FAMILY_MATMUL &&
           mr_dtype_category(action->operands[0].tensor->dtype) == 2 && mr_blas_open();
}

void mr_op_run_items(const mr_action *action, void *state, int64_t first, int64_t end) {
    const mr_op *row = action->u.op.row;
    int64_t count = end - first;
    if (count <= 0) return;
    double work = 0; /* of these items */
    if (count > 1 && mr_parallel_threads() > 1) {
        mr_cost cost;
        row->cost(action, &cost);
        work = (cost.flops > cost.bytes ? cost.flops : cost.bytes) * (double)count /
               (double)row->items(action);
    }
    if (work < 2 * PIECE_OF_WORK || brings_threads(action)) {
        row->run(action, state, first, end);
    } else {
        job j = {action, state, first};
        mr_parallel_for(count, (int64_t)((double)count * (PIECE_OF_WORK / work)) + 1, run_piece, &j);
    }
}

mr_status mr_op_run_now(const mr_action *action) {
    const mr_op *row = action->u.op.row;
    void *state = NULL;
    if (row->begin) MR_TRY(row->begin(action, &state));
    mr_op_run_items(action, state, 0, row->items(action));
    if (row->finish) row->finish(action, state);
    return MR_OK;
}
