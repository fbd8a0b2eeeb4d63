/* Runs a command on the CPU: on this thread, and on the threads of the pool if there is enough work. */
#include "ops/body.h"

#include "base/parallel.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

/* Work is measured in bytes moved or floating-point operations, whichever are more. So much is worth waking a thread
 * for, and so much may pass between two looks at Ctrl-C (some hundredths of a second). */
static const double PIECE_OF_WORK = 256 * 1024, PORTION = 256e6;

/* One loop over several threads. Those may fail at once; which of them does so first is chance, so the failure
 * that is kept is the one of the first item. */
typedef struct {
    const mr_command *command;
    void *state;
    int64_t first;
    pthread_mutex_t lock; /* guards the rest */
    int64_t failed_at;
    mr_status failure;
} job;

static void keep_failure(job *j, int64_t at, mr_status failure) {
    pthread_mutex_lock(&j->lock);
    mr_status other = failure;
    if (!j->failure || at < j->failed_at) {
        other = j->failure;
        j->failure = failure;
        j->failed_at = at;
    }
    pthread_mutex_unlock(&j->lock);
    mr_error_destroy(other);
}

static void run_piece(void *context, int64_t first, int64_t end) {
    job *j = context;
    mr_status status =
        j->command->u.op.row->run(j->command, j->state, j->first + first, j->first + end);
    if (status) keep_failure(j, first, status);
}

static mr_status run_on_threads(const mr_command *command, void *state, int64_t first, int64_t end,
                                int64_t grain) {
    job j = {.command = command, .state = state, .first = first, .lock = PTHREAD_MUTEX_INITIALIZER};
    mr_parallel_for(end - first, grain, run_piece, &j);
    pthread_mutex_destroy(&j.lock);
    return j.failure;
}

static bool brings_threads(const mr_command *command) {
    const mr_op_family *family = command->u.op.row->family;
    return family->brings_threads && family->brings_threads(command);
}

static double work_of_item(const mr_command *command) {
    mr_cost cost;
    command->u.op.row->cost(command, &cost);
    double work = cost.flops > cost.bytes ? cost.flops : cost.bytes;
    return work / (double)command->u.op.row->items(command);
}

static mr_status run_portion(const mr_command *command, void *state, int64_t first, int64_t end,
                             double item) {
    double work = item * (double)(end - first);
    if (work < 2 * PIECE_OF_WORK || mr_parallel_threads() == 1 || brings_threads(command))
        return command->u.op.row->run(command, state, first, end);
    return run_on_threads(command, state, first, end, (int64_t)(PIECE_OF_WORK / item) + 1);
}

/* How many items make a portion; at least 1. */
static int64_t portion_of(const mr_command *command, double item, int64_t end) {
    double own = command->u.op.row->family->portion, most = (own > 0 ? own : PORTION) / (item + 1);
    return most < 1 ? 1 : most < (double)end ? (int64_t)most : end;
}

mr_status mr_op_run_items(const mr_command *command, void *state, int64_t *io_first, int64_t end,
                          bool may_stop) {
    mr_machine *machine = command->machine;
    if (*io_first >= end) return MR_OK;
    double item = end - *io_first > 1 ? work_of_item(command) : 0;
    int64_t portion = portion_of(command, item, end);
    while (*io_first < end) {
        int64_t stop = end - *io_first <= portion ? end : *io_first + portion;
        MR_TRY(run_portion(command, state, *io_first, stop, item));
        *io_first = stop;
        if (stop < end && may_stop && machine->hooks.interrupted &&
            machine->hooks.interrupted(machine->hooks.context))
            return mr_fail(MR_CODE_INTERRUPTED, "interrupted while computing %s", command->name);
    }
    return MR_OK;
}

int64_t mr_op_state_bytes(const mr_command *command) {
    const mr_op *row = command->u.op.row;
    return row->state_bytes ? row->state_bytes(command) : 0;
}

void *mr_op_state_alloc(int64_t bytes) {
    size_t size = ((size_t)bytes + MR_STATE_ALIGNMENT - 1) & ~(size_t)(MR_STATE_ALIGNMENT - 1);
    return aligned_alloc(MR_STATE_ALIGNMENT, size);
}

mr_status mr_op_begin(const mr_command *command, void **out_state) {
    const mr_op *row = command->u.op.row;
    int64_t bytes = mr_op_state_bytes(command);
    *out_state = NULL;
    if (bytes) {
        *out_state = mr_op_state_alloc(bytes);
        if (!*out_state)
            return mr_fail(MR_CODE_OUT_OF_MEMORY,
                           "%s: the host has no memory for %" PRId64 " bytes of partial results",
                           command->name, bytes);
    }
    if (row->begin) row->begin(command, *out_state);
    return MR_OK;
}

void mr_op_finish(const mr_command *command, void *state) {
    const mr_op *row = command->u.op.row;
    if (row->finish) row->finish(command, state);
}

void mr_op_fail(const mr_command *command, void *state) {
    const mr_op *row = command->u.op.row;
    if (row->fail) row->fail(command, state);
}

mr_status mr_op_run_now(const mr_command *command) {
    void *state;
    int64_t first = 0;
    MR_TRY(mr_op_begin(command, &state));
    mr_status status =
        mr_op_run_items(command, state, &first, command->u.op.row->items(command), true);
    if (!status) mr_op_finish(command, state);
    else mr_op_fail(command, state);
    free(state);
    return status;
}
