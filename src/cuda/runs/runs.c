/* When commands ran: notes each command that is submitted, and tells the observers once its times are known.
 *
 * The times come from CUPTI, which measures on the device, or, where CUPTI cannot be used, from an event in front of
 * each command and one after it. Both give them later, so a command waits in a list until then. A command may be
 * several calls of the driver (a reduction in two kernels): it is told of when all of them are over, as one run.
 *
 * Starting and ending CUPTI waits for the devices. A start waits for them before, as a call of a script may. An end may
 * be a finalizer's, so it is put off until they are idle (cuda->give_up_runs).
 *
 * Easiest to break: nothing here may cost anything, or call the driver, while cuda->runs is NULL. */
#include "cuda/runs/source.h"
#include "cuda/wait/wait.h"

#include <stdlib.h>
#include <string.h>

/* After this many commands the known times are read, so that memory is bounded in a program that never flushes. */
#define COLLECT_EACH 4096

/* ---- telling */

static void drop_first(cuda_runs *runs, size_t count) {
    if (!count) return;
    runs->list.count -= count;
    runs->first += count;
    memmove(runs->list.items, runs->list.items + count, runs->list.count * sizeof(cuda_run));
}

static void drop(cuda_runs *runs, cuda_run *run) {
    runs->source->drop(runs, run);
    mr_name_release(run->own_name);
    run->own_name = NULL;
    run->told = true;
}

static void tell(cuda_runs *runs, cuda_run *run) {
    mr_machine *machine = runs->cuda->machine;
    uint64_t opened = runs->cuda->opened_ns;
    mr_command abridged = {.refs = 1,
                           .kind = run->kind,
                           .seq = run->seq,
                           .machine = machine,
                           .where = run->where,
                           .name = run->name,
                           .own_name = run->own_name};
    abridged.operands = abridged.inline_operands;
    if (run->kind == MR_COMMAND_COPY) {
        abridged.u.copy.direction = run->direction;
        abridged.u.copy.bytes = run->bytes;
    }
    uint64_t begin = run->begin > opened ? run->begin - opened : 0;
    uint64_t end = run->end > opened ? run->end - opened : 0;
    mr_run told = {.ready = begin,
                   .begin = begin,
                   .end = end > begin ? end : begin,
                   .engine = run->engine,
                   .parts = 1,
                   .last = true};
    mr_observers_ran(machine, &abridged, &told);
}

/* A call that gave the device nothing has no record. So a command counts as over if a flush finds no more of it than
 * the flush before. */
static bool is_over(const cuda_run *run, bool flushed) {
    if (run->seen >= run->calls) return run->seen > 0;
    return flushed && run->seen > 0 && run->seen == run->seen_earlier;
}

static void collect(cuda_runs *runs, bool flush) {
    runs->source->collect(runs, flush);
    size_t told_in_front = 0;
    for (size_t i = 0; i < runs->list.count; i++) {
        cuda_run *run = &runs->list.items[i];
        if (!run->told && is_over(run, flush)) {
            tell(runs, run);
            drop(runs, run);
        }
        if (flush) run->seen_earlier = run->seen;
        if (run->told && told_in_front == i) told_in_front++;
    }
    drop_first(runs, told_in_front);
    runs->collect_at = runs->first + runs->list.count + COLLECT_EACH;
}

/* ---- noting */

static bool is_work(const mr_command *command) {
    bool is_empty = command->kind == MR_COMMAND_COPY && !command->u.copy.bytes;
    return mr_engine_of(command) != MR_ENGINE_NONE && !is_empty;
}

/* Without memory for it, a command is not told of. */
void mr_cuda_run_enter(cuda_runs *runs, const mr_command *command) {
    if (!is_work(command)) return;
    if (runs->first + runs->list.count >= runs->collect_at) collect(runs, false);
    cuda_stream *stream = command->stream->impl;
    cuda_run run = {.seq = command->seq,
                    .kind = command->kind,
                    .where = command->where,
                    .name = command->name,
                    .own_name = mr_name_retain(command->own_name),
                    .device = stream->device,
                    .engine = mr_engine_of(command)};
    if (command->kind == MR_COMMAND_COPY) {
        run.direction = command->u.copy.direction;
        run.bytes = command->u.copy.bytes;
    }
    if (!mr_vec_push(&runs->list, run)) {
        mr_name_release(run.own_name);
        return;
    }
    runs->source->enter(runs, &runs->list.items[runs->list.count - 1], stream);
}

/* A command that failed, or that gave the device nothing, is forgotten. A host function that ran meanwhile submits
 * nothing, so the last one is still this one. */
void mr_cuda_run_leave(cuda_runs *runs, const mr_command *command, bool taken) {
    cuda_run *run = runs->list.count ? &runs->list.items[runs->list.count - 1] : NULL;
    if (!run || run->seq != command->seq) return;
    runs->source->leave(runs, run, command->stream->impl);
    if (taken && run->calls) return;
    drop(runs, run);
    runs->list.count--;
}

/* ---- the slots */

static void destroy(cuda_runs *runs) {
    for (size_t i = 0; i < runs->list.count; i++)
        if (!runs->list.items[i].told) drop(runs, &runs->list.items[i]);
    runs->source->stop(runs);
    mr_vec_free(&runs->list);
    mr_vec_free(&runs->calls);
    free(runs);
}

static mr_status start_source(cuda_runs *runs) {
#if MR_CUDA_HAS_CUPTI
    runs->source = &mr_cuda_runs_by_cupti;
    mr_status status = runs->source->start(runs);
    if (!status || status->code != MR_CODE_NOT_SUPPORTED) return status;
    mr_error_destroy(status);
#endif
    runs->source = &mr_cuda_runs_by_events;
    return runs->source->start(runs);
}

mr_status mr_cuda_runs_start(mr_machine *machine, const char **out_how) {
    cuda_machine *cuda = mr_cuda_of(machine);
    MR_TRY(mr_machine_ready(machine));
    if (!cuda->runs) {
        cuda_runs *runs = calloc(1, sizeof *runs);
        if (!runs) return mr_no_memory("for the times of commands");
        runs->cuda = cuda;
        runs->collect_at = COLLECT_EACH;
        mr_status status = mr_cuda_use(cuda->home);
        if (!status) status = start_source(runs);
        if (status) {
            free(runs);
            return status;
        }
        cuda->runs = runs;
    } else if (cuda->give_up_runs) {
        cuda->give_up_runs = NULL;
        cuda->runs->source->rest(cuda->runs, false);
    }
    cuda->runs->users++;
    *out_how = cuda->runs->source->how;
    return MR_OK;
}

void mr_cuda_runs_flush(mr_machine *machine) {
    cuda_machine *cuda = mr_cuda_of(machine);
    if (cuda->runs) collect(cuda->runs, true);
}

static void drop_all(cuda_runs *runs) {
    for (size_t i = 0; i < runs->list.count; i++)
        if (!runs->list.items[i].told) drop(runs, &runs->list.items[i]);
    drop_first(runs, runs->list.count);
    runs->calls.count = 0;
}

/* Frees the unused objects, if the devices are idle. */
static void give_up(cuda_machine *cuda) {
    if (!mr_cuda_is_idle(cuda)) return;
    destroy(cuda->runs);
    cuda->runs = NULL;
    cuda->give_up_runs = NULL;
}

/* It is called by finalizers, too, so it waits for nothing: a source that would wait rests until the devices are
 * idle. */
void mr_cuda_runs_stop(mr_machine *machine) {
    cuda_machine *cuda = mr_cuda_of(machine);
    cuda_runs *runs = cuda->runs;
    if (!runs) return;
    collect(runs, true);
    if (--runs->users) return;
    if (runs->source->rest && !mr_cuda_is_idle(cuda)) {
        drop_all(runs);
        runs->source->rest(runs, true);
        cuda->give_up_runs = give_up;
        return;
    }
    destroy(runs);
    cuda->runs = NULL;
}

/* The contexts are about to go, and the pending measurements with them. Measuring goes on in the next contexts. */
void mr_cuda_runs_forget(cuda_machine *cuda) {
    cuda_runs *runs = cuda->runs;
    if (!runs) return;
    if (cuda->give_up_runs) {
        mr_cuda_runs_close(cuda);
        return;
    }
    collect(runs, true);
    drop_all(runs);
    if (runs->source->forget) runs->source->forget(runs);
}

void mr_cuda_runs_close(cuda_machine *cuda) {
    if (cuda->runs) destroy(cuda->runs);
    cuda->runs = NULL;
    cuda->give_up_runs = NULL;
}
