/* The bars that are drawn: see bars.h. */
#include "trace/draw/bars.h"

#include <string.h>

#include "base/text.h"

int mr_axis_place(const mr_axis *axis, uint64_t time) {
    if (time >= axis->duration) return axis->first + axis->width;
    return axis->first + (int)((double)time / (double)axis->duration * axis->width);
}

uint64_t mr_axis_step(uint64_t least) {
    uint64_t decade = 1;
    while (10 * decade < least) decade *= 10;
    return decade >= least       ? decade
           : 2 * decade >= least ? 2 * decade
           : 5 * decade >= least ? 5 * decade
                                 : 10 * decade;
}

const char *mr_axis_unit(uint64_t duration, uint64_t *out_nanoseconds) {
    static const struct {
        uint64_t nanoseconds;
        const char *name;
    } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
    int i = 0;
    while (i < 3 && duration < units[i].nanoseconds) i++;
    *out_nanoseconds = units[i].nanoseconds;
    return units[i].name;
}

static const mr_span *span_at(const mr_trace *trace, const mr_lane *lane, size_t i) {
    return &mr_trace_spans(trace)[lane->spans[i]];
}

static bool same_name(const mr_trace *trace, const mr_lane *lane, size_t a, size_t b) {
    return strcmp(span_at(trace, lane, a)->name, span_at(trace, lane, b)->name) == 0;
}

#define LEAST_CALL 8 /* places: of a call with a bar of its own, in which its name has room */

static bool is_short(const mr_axis *axis, uint64_t length) {
    return (double)length * axis->width < (double)axis->duration;
}

bool mr_lane_row_has(const mr_trace *trace, const mr_lane *lane, size_t index, int row,
                     const mr_axis *axis) {
    if (lane->stream != MR_TRACE_NONE) return lane->rows[index] == row;
    const mr_span *span = span_at(trace, lane, index);
    return mr_look_on_host(span) != MR_LOOK_HOST_CALL ||
           !is_short(axis, (span->returned - span->call) / LEAST_CALL);
}

static bool can_join(const mr_bar *bar, const mr_bar *next, int axis_end) {
    if (next->is_short && next->first < bar->end) return true;
    if (next->is_short && bar->is_short && next->first == bar->end) return true;
    return bar->end >= axis_end; /* no place is left */
}

static bool add(const mr_trace *trace, const mr_lane *lane, mr_bar next, int axis_end,
                mr_bars *out) {
    mr_bar *last = out->count ? &out->items[out->count - 1] : NULL;
    if (!last || !can_join(last, &next, axis_end)) {
        if (last && next.first < last->end) next.first = last->end;
        if (next.end <= next.first) next.end = next.first + 1;
        return mr_vec_push(out, next);
    }
    last->same_name = last->same_name && same_name(trace, lane, last->index, next.index);
    last->count++;
    last->busy += next.busy;
    if (next.end > last->end) last->end = next.end;
    if (next.longest > last->longest) {
        last->longest = next.longest;
        last->look = next.look;
    }
    return true;
}

mr_status mr_lane_bars(const mr_trace *trace, const mr_lane *lane, int row, const mr_axis *axis,
                       mr_bars *out_bars) {
    bool on_host = lane->stream == MR_TRACE_NONE;
    int axis_end = axis->first + axis->width;
    for (size_t i = 0; i < lane->count; i++) {
        const mr_span *span = span_at(trace, lane, i);
        if (!mr_lane_row_has(trace, lane, i, row, axis)) continue;
        uint64_t begin = on_host ? span->call : span->begin;
        uint64_t end = on_host ? span->returned : span->end;
        int first = mr_axis_place(axis, begin), last = mr_axis_place(axis, end);
        mr_bar bar = {
            .index = i, .count = 1, .same_name = true, .longest = end - begin, .busy = end - begin};
        bar.is_short = is_short(axis, end - begin);
        bar.first = first < axis_end ? first : axis_end - 1;
        bar.end = last > bar.first && !bar.is_short ? last : bar.first + 1;
        bar.look = on_host ? mr_look_on_host(span) : mr_look_of(span);
        if (!add(trace, lane, bar, axis_end, out_bars)) {
            mr_vec_free(out_bars);
            return mr_no_memory("to draw a trace of %zu operations", mr_trace_count(trace));
        }
    }
    return MR_OK;
}

double mr_bar_share(const mr_bar *bar, const mr_axis *axis) {
    double whole = (double)(bar->end - bar->first) * (double)axis->duration / axis->width;
    double share = (double)bar->busy / whole;
    return bar->count == 1 || share > 1 ? 1 : share;
}

int mr_bar_coverage(const mr_bar *bar, const mr_axis *axis) {
    return (int)(8 * mr_bar_share(bar, axis) + 0.5);
}

void mr_bar_put_name(mr_buffer *out, const mr_trace *trace, const mr_lane *lane, const mr_bar *bar,
                     bool ascii) {
    if (!bar->same_name) {
        mr_buffer_printf(out, "%u operations", bar->count);
        return;
    }
    mr_text_put(out, span_at(trace, lane, bar->index)->name);
    if (bar->count > 1) mr_buffer_printf(out, " %s%u", ascii ? "x" : "×", bar->count);
}
