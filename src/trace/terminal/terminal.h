/* The drawing of one trace on a terminal, private to this folder: terminal.c draws the lanes into a grid,
 * write.c writes the grid and the lists below it. */
#ifndef MR_TRACE_TERMINAL_H
#define MR_TRACE_TERMINAL_H

#include "trace/draw/bars.h"
#include "trace/terminal/grid.h"

#define MR_MOST_LISTED  8  /* names, gaps; of gaps at most 9: each has a digit */
#define MR_MOST_ENTRIES 64 /* names that are kept to choose those that are listed */

/* Operations of one line of the script, or the gaps before them: something for the lists below the lanes. */
typedef struct {
    const mr_span *span;
    const mr_lane *lane;
    uint64_t count, time;
} mr_terminal_entry;

typedef struct {
    mr_terminal_entry items[MR_MOST_ENTRIES];
    int count;
    uint64_t left_out;
} mr_terminal_entries;

typedef struct {
    const mr_trace *trace;
    mr_lanes lanes;
    mr_grid grid;
    int *lane_row; /* the grid's row of each lane */
    mr_axis axis;  /* columns */
    bool looks[MR_LOOK_COUNT], has_gap, has_arrow, has_merged, has_race, has_missing;
    mr_terminal_entries names, gaps; /* what did not fit */
} mr_terminal_view;

/* Axis, lanes and arrows into the grid of a view whose other members are set; fills in the data of the legend and the
 * lists. */
mr_status mr_terminal_draw(mr_terminal_view *v);

/* The style of a colour of 256, where there are colours. */
mr_style mr_terminal_color(const mr_terminal_view *view, int color);

#endif
