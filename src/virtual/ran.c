/* Tells the observers that a part of a command has been carried out: the moment `ran` of observer.h. */
#include "model/observer.h"
#include "virtual/state.h"

/* All its predecessors were done, so it waited for an engine. */
static void hold_by_engine(mr_run *run, const work *w, uint64_t holder) {
    run->holder = holder;
    if (!vgpu_of(w->command->machine)->chooser->timed) run->held_by = MR_CAUSE_CHOOSER;
    else if (run->engine == MR_ENGINE_SM) run->held_by = MR_CAUSE_MULTIPROCESSORS;
    else if (run->engine != MR_ENGINE_NONE) run->held_by = MR_CAUSE_COPY_ENGINE;
    else run->held_by = MR_CAUSE_HOST; /* a host function: it runs when the host waits (R46) */
}

void mr_virtual_tell_ran(const work *w, uint64_t begin, uint64_t end, uint32_t part, uint32_t parts,
                         bool last, uint64_t holder) {
    mr_run run = {.ready = w->time,
                  .begin = begin,
                  .end = end,
                  .engine = mr_engine_of(w->command),
                  .part = part,
                  .parts = parts,
                  .last = last,
                  .blocks = w->body && w->body->engine == ENGINE_SM ? w->body->blocks : 0,
                  .held_by = w->held_by,
                  .holder = w->holder};
    if (begin > w->time) hold_by_engine(&run, w, holder);
    mr_observers_ran(w->command->machine, w->command, &run);
}
