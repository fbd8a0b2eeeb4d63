/* Bars that are drawn: the spans of a lane on an axis that has only so many places (columns of a terminal, pixels). No
 * two bars share a place: spans too short for one of their own are one bar together. */
#ifndef MR_TRACE_BARS_H
#define MR_TRACE_BARS_H

#include "base/vec.h"
#include "trace/draw/lanes.h"

typedef struct {
    int first, width;  /* places */
    uint64_t duration; /* of all of them; not 0 */
} mr_axis;

/* Where a time is; the end of the axis is `first` + `width`. */
int mr_axis_place(const mr_axis *axis, uint64_t time);

typedef struct {
    int first, end; /* places: at least one */
    size_t index;   /* in the lane: of the first span */
    uint32_t count;
    bool is_short, same_name;
    mr_look look;           /* of the longest span */
    uint64_t longest, busy; /* of the spans: the longest, and all of them together */
} mr_bar;
typedef MR_VEC(mr_bar) mr_bars;

/* The bars of one row of a lane. The host's lane has calls that waited or worked, and calls that are long enough for a
 * name. */
mr_status mr_lane_bars(const mr_trace *trace, const mr_lane *lane, int row, const mr_axis *axis,
                       mr_bars *out_bars);

/* Whether span `index` of the lane belongs to that row's bars. */
bool mr_lane_row_has(const mr_trace *trace, const mr_lane *lane, size_t index, int row,
                     const mr_axis *axis);

/* How much of the bar's time its spans take: 1 for one that is a single span. */
double mr_bar_share(const mr_bar *bar, const mr_axis *axis);
/* The same in eighths. */
int mr_bar_coverage(const mr_bar *bar, const mr_axis *axis);

/* "relu_", "relu_ ×3", "7 operations" */
void mr_bar_put_name(mr_buffer *out, const mr_trace *trace, const mr_lane *lane, const mr_bar *bar,
                     bool ascii);

/* The distance of the marks of an axis: 1, 2 or 5 times a power of ten, at least `least`. */
uint64_t mr_axis_step(uint64_t least);
/* The unit for the numbers of an axis of that duration: "ms", and its nanoseconds. */
const char *mr_axis_unit(uint64_t duration, uint64_t *out_nanoseconds);

#endif
