/* Runs an action at once: on this thread, and on the pool's where there is enough to do. */
#include "ops/blas.h"
#include "ops/body.h"

#include "base/parallel.h"

/* Work is measured in bytes moved or floating-point operations, whichever are more: of these, what is
 * worth waking a thread for, and what may pass between two looks at Ctrl-C (some hundredths of a second;
 * a matrix product does far more in that time, and is slow when cut up). */
static const double PIECE_OF_WORK = 256 * 1024, PORTION = 256e6, PORTION_OF_MATMUL = 8e9;

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

static double work_of_item(const mr_action *action) {
    mr_cost cost;
    action->u.op.row->cost(action, &cost);
    double work = cost.flops > cost.bytes ? cost.flops : cost.bytes;
    return work / (double)action->u.op.row->items(action);
}

static void run_portion(const mr_action *action, void *state, int64_t first, int64_t end,
                        double item) {
    double work = item * (double)(end - first);
    if (work < 2 * PIECE_OF_WORK || mr_parallel_threads() == 1 || brings_threads(action)) {
        action->u.op.row->run(action, state, first, end);
    } else {
        job j = {action, state, first};
        mr_parallel_for(end - first, (int64_t)(PIECE_OF_WORK / item) + 1, run_piece, &j);
    }
}

/* How many items make a portion; at least 1. */
static int64_t portion_of(const mr_action *action, double item, int64_t end) {
    bool matmul = action->u.op.row->family == MR_FAMILY_MATMUL;
    double most = (matmul ? PORTION_OF_MATMUL : PORTION) / (item + 1);
    return most < 1 ? 1 : most < (double)end ? (int64_t)most : end;
}

mr_status mr_op_run_items(const mr_action *action, void *state, int64_t *io_first, int64_t end,
                          bool may_stop) {
    mr_machine *machine = action->machine;
    if (*io_first >= end) return MR_OK;
    double item = end - *io_first > 1 ? work_of_item(action) : 0;
    int64_t portion = portion_of(action, item, end);
    while (*io_first < end) {
        int64_t stop = end - *io_first <= portion ? end : *io_first + portion;
        run_portion(action, state, *io_first, stop, item);
        *io_first = stop;
        if (stop < end && may_stop && machine->interrupted &&
            machine->interrupted(machine->hook_context))
            return mr_fail(MR_CODE_INTERRUPTED, "interrupted while computing %s", action->name);
    }
    return MR_OK;
}

mr_status mr_op_run_now(const mr_action *action) {
    const mr_op *row = action->u.op.row;
    void *state = NULL;
    int64_t first = 0;
    if (row->begin) MR_TRY(row->begin(action, &state));
    mr_status status = mr_op_run_items(action, state, &first, row->items(action), true);
    if (row->finish) row->finish(action, state);
    return status;
}
