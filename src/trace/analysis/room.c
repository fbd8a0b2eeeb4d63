/* Whether the engines have room for a trace whose operations have moved: see mr_trace_replan_fits.
 *
 * A replan takes over the order in which operations had an engine, and how long each took. That stays right for those
 * that moved together, and for those that never share an engine. Two kernels share none if the multiprocessors are as
 * many as the blocks of all that run at the time. */
#include <stdlib.h>

#include "trace/analysis/replan.h"

typedef struct {
    int64_t begin, end, shift;
    const mr_span *span;
} piece;

static int by_begin(const void *a, const void *b) {
    const piece *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->span < y->span ? -1 : x->span > y->span;
}

static bool one_engine(const mr_trace_facts *facts, const mr_span *a, const mr_span *b) {
    bool kernel_a = a->engine == MR_ENGINE_SM || a->engine == MR_ENGINE_COPY_DEVICE;
    bool kernel_b = b->engine == MR_ENGINE_SM || b->engine == MR_ENGINE_COPY_DEVICE;
    if (a->device != b->device && a->engine != MR_ENGINE_COPY_PEER &&
        b->engine != MR_ENGINE_COPY_PEER)
        return false;
    if (kernel_a || kernel_b) return kernel_a && kernel_b;
    return a->engine == b->engine || facts->copy_engines < 3;
}

/* Whether there is room for `list[i]` beside the pieces under way when it began: `active` has those before it that have
 * not ended. */
static bool has_room(const mr_trace_facts *facts, const piece *list, size_t i, const size_t *active,
                     size_t count) {
    const mr_span *span = list[i].span;
    bool moved_apart = false, unknown = !span->blocks;
    bool kernel = span->engine == MR_ENGINE_SM || span->engine == MR_ENGINE_COPY_DEVICE;
    uint64_t blocks = span->blocks;
    for (size_t k = 0; k < count; k++) {
        const piece *other = &list[active[k]];
        if (!one_engine(facts, span, other->span)) continue;
        moved_apart |= other->shift != list[i].shift;
        unknown |= !other->span->blocks;
        blocks += other->span->blocks;
        if (!kernel && other->shift != list[i].shift) return false;
    }
    return !moved_apart || (!unknown && blocks <= (uint64_t)facts->sm_count);
}

static bool all_have_room(const mr_trace_facts *facts, piece *list, size_t count, size_t *active) {
    size_t running = 0;
    if (count) qsort(list, count, sizeof *list, by_begin);
    for (size_t i = 0; i < count; i++) {
        size_t left = 0;
        for (size_t k = 0; k < running; k++)
            if (list[active[k]].end > list[i].begin) active[left++] = active[k];
        running = left;
        if (!has_room(facts, list, i, active, running)) return false;
        active[running++] = i;
    }
    return true;
}

/* Lists the pieces that may run before `last` begins: with `now`, at their new times; else at the old ones. */
static size_t list_pieces(const mr_trace_replan *r, uint32_t last, bool now, piece *out) {
    const mr_trace *trace = mr_trace_replan_trace(r);
    const mr_span *spans = mr_trace_spans(trace);
    size_t count = 0;
    for (uint32_t i = 0; i < mr_trace_count(trace); i++) {
        const mr_span *span = &spans[i];
        if (!span->ran || span->engine == MR_ENGINE_NONE) continue;
        bool gone = mr_trace_replan_is_gone(r, i);
        int64_t was = (int64_t)span->begin, length = (int64_t)(span->end - span->begin);
        int64_t begin = gone ? was : mr_trace_replan_begin(r, i);
        if (was > (int64_t)spans[last].begin && begin > mr_trace_replan_begin(r, last)) continue;
        if (now && gone) continue;
        /* A removed span has moved away from all. */
        int64_t at = now ? begin : was, shift = gone ? INT64_MIN : begin - was;
        out[count++] = (piece){at, at + length, shift, span};
    }
    return count;
}

static int64_t shift_of(const mr_trace_replan *r, uint32_t i) {
    return mr_trace_replan_begin(r, i) - (int64_t)mr_trace_spans(mr_trace_replan_trace(r))[i].begin;
}

static int64_t ready_shift_of(const mr_trace_replan *r, uint32_t i) {
    return mr_trace_replan_ready(r, i) - (int64_t)mr_trace_spans(mr_trace_replan_trace(r))[i].ready;
}

/* The operation that is ready first has an engine first. So an operation that waited for an engine must have moved as
 * far as the one that held the engine. Both must have moved as far as the moments at which they were ready. */
static bool keeps_turns(const mr_trace_replan *r, uint32_t last) {
    const mr_trace *trace = mr_trace_replan_trace(r);
    const mr_span *spans = mr_trace_spans(trace);
    for (uint32_t i = 0; i < mr_trace_count(trace); i++) {
        const mr_span *span = &spans[i];
        bool engine =
            span->held_by == MR_CAUSE_MULTIPROCESSORS || span->held_by == MR_CAUSE_COPY_ENGINE;
        if (!span->ran || !engine || mr_trace_replan_is_gone(r, i)) continue;
        if (span->begin > spans[last].begin &&
            mr_trace_replan_ready(r, i) > mr_trace_replan_begin(r, last))
            continue;
        if (span->holder == MR_TRACE_NONE || mr_trace_replan_is_gone(r, span->holder)) return false;
        int64_t shift = shift_of(r, i);
        if (shift != ready_shift_of(r, i) || shift != shift_of(r, span->holder) ||
            shift != ready_shift_of(r, span->holder))
            return false;
    }
    return true;
}

mr_status mr_trace_replan_fits(const mr_trace_replan *r, uint32_t span, bool *out_fits) {
    const mr_trace *trace = mr_trace_replan_trace(r);
    const mr_trace_facts *facts = mr_trace_facts_of(trace);
    size_t count = mr_trace_count(trace);
    piece *list = malloc((count + 1) * sizeof *list);
    size_t *active = malloc((count + 1) * sizeof *active);
    *out_fits = false;
    bool ok = list && active;
    if (ok)
        *out_fits = keeps_turns(r, span) &&
                    all_have_room(facts, list, list_pieces(r, span, false, list), active) &&
                    all_have_room(facts, list, list_pieces(r, span, true, list), active);
    free(list);
    free(active);
    return ok ? MR_OK : mr_no_memory("to look at a trace");
}
