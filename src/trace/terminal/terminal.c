/* The lanes of a trace as characters: a bar for each operation, the wait before a bar, arrows from records to the waits
 * that they end. lanes.h decides what is drawn, grid.h assigns columns.
 *
 * Easiest to break: two bars never share a cell. Spans that are too short for a bar of their own
 * share one with their neighbours. It says how many they are. */
#include "base/number.h"
#include "trace/terminal/terminal.h"

#include <inttypes.h>
#include <string.h>

static int column_of(const mr_terminal_view *v, uint64_t time) {
    return mr_axis_place(&v->axis, time);
}

static const mr_span *span_at(const mr_terminal_view *v, const mr_lane *lane, size_t i) {
    return &mr_trace_spans(v->trace)[lane->spans[i]];
}

mr_style mr_terminal_color(const mr_terminal_view *view, int color) {
    return (mr_style){(short)(view->grid.color ? color : -1), -1, false, false};
}

/* ---- bars */

/* Puts `text` into the middle of the columns; a part of it if there is room for some of it. True: all of it is
 * there. */
static bool put_label(mr_terminal_view *v, int row, int first, int end, const char *text,
                      mr_style style, int margin) {
    int width = mr_grid_text_width(&v->grid, text), room = end - first - 2 * margin;
    if (width <= room) {
        int at = first + (end - first - width) / 2;
        for (int i = 1; i <= margin; i++) {
            mr_grid_put(&v->grid, row, at - i, " ", " ", style);
            mr_grid_put(&v->grid, row, at + width - 1 + i, " ", " ", style);
        }
        mr_grid_text(&v->grid, row, at, end, text, style);
        return true;
    }
    if (room < 4 || style.is_dim) return false;
    int at = first + margin;
    for (int i = 1; i <= margin; i++) mr_grid_put(&v->grid, row, at - i, " ", " ", style);
    at = mr_grid_text(&v->grid, row, at, at + room - 1, text, style);
    mr_grid_put(&v->grid, row, at, "…", ".", style);
    for (int i = 1; i <= margin; i++) mr_grid_put(&v->grid, row, at + i, " ", " ", style);
    return false;
}

/* Whether both are of one line of the script. */
static bool is_same_work(const mr_span *a, const mr_span *b) {
    return a->stream == b->stream && a->host == b->host && a->where.line == b->where.line &&
           a->where.file == b->where.file && strcmp(a->name, b->name) == 0;
}

static mr_terminal_entry *find_entry(mr_terminal_entries *list, const mr_span *span) {
    for (int i = 0; i < list->count; i++)
        if (is_same_work(list->items[i].span, span)) return &list->items[i];
    return NULL;
}

/* Notes the bars of a group that could not be named, for the list below. */
static void note_names(mr_terminal_view *v, const mr_lane *lane, int row, const mr_bar *g) {
    uint32_t left = g->count;
    for (size_t i = g->index; left && i < lane->count; i++) {
        const mr_span *span = span_at(v, lane, i);
        bool on_host = lane->stream == MR_TRACE_NONE;
        if (!mr_lane_row_has(v->trace, lane, i, row, &v->axis)) continue;
        left--;
        mr_terminal_entry *e = find_entry(&v->names, span);
        if (!e && v->names.count < MR_MOST_ENTRIES) {
            e = &v->names.items[v->names.count++];
            *e = (mr_terminal_entry){.span = span, .lane = lane};
        }
        if (e) {
            e->count++;
            e->time += on_host ? span->returned - span->call : span->end - span->begin;
        } else v->names.left_out++;
    }
}

static const char *const blocks[] = {"▁", "▁", "▂", "▃", "▄", "▅", "▆", "▇"};
static const char *const dots[] = {".", ".", ".", ":", ":", ":", ":", "+"};

/* A single span fills its cells. Several that are drawn as one fill so much of the cells' height as they take of the
 * time. */
static void fill_cells(mr_terminal_view *v, int row, const mr_bar *g, mr_style full) {
    const mr_look_text *look = &mr_looks[g->look];
    int eighths = mr_bar_coverage(g, &v->axis);
    if (eighths < 8) v->has_merged = true;
    for (int i = g->first; i < g->end; i++) {
        if (eighths < 8)
            mr_grid_put(&v->grid, row, i, blocks[eighths], dots[eighths],
                        mr_terminal_color(v, look->color));
        else
            mr_grid_put(&v->grid, row, i, v->grid.color ? " " : look->fill,
                        v->grid.color ? " " : look->ascii, full);
    }
    v->looks[g->look] = true;
}

static void draw_group(mr_terminal_view *v, const mr_lane *lane, int lane_row, int row,
                       const mr_bar *g, bool touches_next) {
    mr_grid *grid = &v->grid;
    short color = (short)mr_looks[g->look].color;
    bool is_full = mr_bar_coverage(g, &v->axis) == 8;
    mr_style bar = grid->color && is_full ? (mr_style){16, color, false, false} : MR_STYLE_PLAIN;
    fill_cells(v, row, g, bar);

    int end = g->end;
    if (touches_next && is_full && g->end - g->first > 1) {
        end--;
        /* Half a cell, so that two bars do not look like one. */
        mr_grid_uncolor(grid, row, end);
        mr_grid_put(grid, row, end, "▌", "|", mr_terminal_color(v, color));
    }
    mr_buffer name = {0};
    mr_bar_put_name(&name, v->trace, lane, g, v->grid.ascii);
    int margin = !grid->color || !is_full;
    bool is_whole = name.data && put_label(v, row, g->first, end, name.data, bar, margin);
    if (!is_whole || !g->same_name) note_names(v, lane, lane_row, g);
    mr_buffer_free(&name);
}

/* ---- gaps */

static bool same_cause(const mr_trace *trace, const mr_span *a, const mr_span *b) {
    if (a->held_by != b->held_by || (a->holder == MR_TRACE_NONE) != (b->holder == MR_TRACE_NONE))
        return false;
    if (a->holder == MR_TRACE_NONE) return true;
    const mr_span *x = &mr_trace_spans(trace)[a->holder], *y = &mr_trace_spans(trace)[b->holder];
    return x->where.file == y->where.file && x->where.line == y->where.line &&
           x->object == y->object && strcmp(x->name, y->name) == 0;
}

/* The entry of a gap for the list below: gaps with one cause before one line of the script share it. */
static mr_terminal_entry *gap_entry(mr_terminal_view *v, const mr_lane *lane,
                                    const mr_lane_gap *gap) {
    mr_terminal_entry *e = NULL;
    for (int i = 0; i < v->gaps.count && !e; i++) {
        const mr_span *other = v->gaps.items[i].span;
        if (v->gaps.items[i].lane == lane && is_same_work(other, gap->span) &&
            same_cause(v->trace, other, gap->span))
            e = &v->gaps.items[i];
    }
    if (!e && v->gaps.count == MR_MOST_LISTED) {
        v->gaps.left_out++;
        return NULL;
    }
    if (!e) {
        e = &v->gaps.items[v->gaps.count++];
        *e = (mr_terminal_entry){.span = gap->span, .lane = lane};
    }
    e->count++;
    e->time += gap->end - gap->begin;
    return e;
}

static void draw_gap(mr_terminal_view *v, const mr_lane *lane, int row, size_t bar, int from,
                     int end) {
    mr_lane_gap gap = mr_lane_gap_before(v->trace, lane, bar);
    int first = column_of(v, gap.begin);
    if (gap.begin == gap.end) return;
    if (first < from) first = from;
    if (first >= end) return;
    v->has_gap = true;
    for (int i = first; i < end; i++) mr_grid_put(&v->grid, row, i, "┄", ".", MR_STYLE_DIM);

    mr_buffer cause = {0};
    mr_trace_put_cause(&cause, v->trace, gap.span);
    bool is_named = cause.data && put_label(v, row, first, end, cause.data, MR_STYLE_DIM, 1);
    mr_terminal_entry *e = !is_named && end - first > 2 ? gap_entry(v, lane, &gap) : NULL;
    if (e) {
        const char number[] = {(char)('1' + (e - v->gaps.items)), '\0'};
        int middle = first + (end - first - 1) / 2;
        mr_grid_text(&v->grid, row, middle, middle + 1, number, MR_STYLE_PLAIN);
    }
    mr_buffer_free(&cause);
}

/* ---- lanes */

static void put_calls(mr_terminal_view *v, int row, int column, double busy) {
    const mr_look_text *look = &mr_looks[MR_LOOK_HOST_CALL];
    double cell = (double)v->axis.duration / v->axis.width;
    int eighths = (int)(8 * busy / cell + 0.5);
    bool is_dense = eighths >= 2; /* less looks like a mark in any case */
    if (eighths > 7) eighths = 7;
    if (busy < 0 || !mr_grid_is_free(&v->grid, row, column, column + 1)) return;
    mr_grid_put(&v->grid, row, column, is_dense ? blocks[eighths] : look->fill,
                is_dense ? dots[eighths] : look->ascii, mr_terminal_color(v, look->color));
    v->looks[MR_LOOK_HOST_CALL] = true;
    v->has_merged |= is_dense;
}

/* Calls without a bar: a mark where one is, and where they take much of a cell's time, as much of its height. */
static void draw_host_calls(mr_terminal_view *v, const mr_lane *lane, int row) {
    double cell = (double)v->axis.duration / v->axis.width, busy = -1;
    int column = v->axis.first;
    for (size_t i = 0; i < lane->count; i++) {
        const mr_span *span = span_at(v, lane, i);
        if (mr_lane_row_has(v->trace, lane, i, 0, &v->axis)) continue;
        double begin = (double)span->call, end = (double)span->returned;
        for (int first = column_of(v, span->call); column < first; column++, busy = -1)
            put_calls(v, row, column, busy);
        if (busy < 0) busy = 0;
        for (double edge; (edge = (column - v->axis.first + 1) * cell) < end; begin = edge) {
            put_calls(v, row, column++, busy + (begin < edge ? edge - begin : 0));
            busy = 0;
        }
        busy += end - begin;
    }
    put_calls(v, row, column, busy);
}

static mr_status draw_row(mr_terminal_view *v, const mr_lane *lane, int lane_row, int row) {
    mr_bars list = {0};
    MR_TRY(mr_lane_bars(v->trace, lane, lane_row, &v->axis, &list));
    for (size_t i = 0; i < list.count; i++) {
        const mr_bar *g = &list.items[i];
        bool touches_next = i + 1 < list.count && list.items[i + 1].first == g->end;
        int from = i ? list.items[i - 1].end : v->axis.first;
        if (lane->stream != MR_TRACE_NONE) draw_gap(v, lane, row, g->index, from, g->first);
        draw_group(v, lane, lane_row, row, g, touches_next);
    }
    mr_vec_free(&list);
    return MR_OK;
}

static void put_busy(mr_terminal_view *v, const mr_lane *lane, int row) {
    char text[16];
    uint64_t percent =
        v->axis.duration ? (lane->busy * 100 + v->axis.duration / 2) / v->axis.duration : 0;
    snprintf(text, sizeof text, "%3" PRIu64 " %%", percent);
    mr_grid_text(&v->grid, row, v->axis.first + v->axis.width + 1, v->grid.width, text,
                 MR_STYLE_DIM);
}

static mr_status draw_lane(mr_terminal_view *v, const mr_lane *lane) {
    bool on_host = lane->stream == MR_TRACE_NONE;
    int rows = on_host ? lane->count > 0 : lane->row_count;
    mr_style bold = {-1, -1, false, true};
    for (int i = 0; i < rows; i++) {
        int row = mr_grid_row(&v->grid);
        if (i == 0) {
            v->lane_row[lane - v->lanes.items] = row;
            mr_grid_text(&v->grid, row, 0, v->axis.first - 1, lane->label, bold);
            put_busy(v, lane, row);
        }
        if (on_host) draw_host_calls(v, lane, row);
        MR_TRY(draw_row(v, lane, i, row));
    }
    return MR_OK;
}

/* ---- arrows, in the row between two lanes */

static bool can_pass(const mr_terminal_view *v, int row, int step, int to_row, int column) {
    for (; row != to_row; row += step)
        if (!mr_grid_is_free(&v->grid, row, column, column + 1)) {
            bool between = false;
            for (size_t i = 0; i < v->lanes.count && !between; i++)
                between = v->lane_row[i] <= row &&
                          row < v->lane_row[i] + mr_lane_rows(&v->lanes.items[i]);
            if (!between) return false;
        }
    return true;
}

static bool is_lane_row(const mr_terminal_view *v, int row) {
    for (size_t i = 0; i < v->lanes.count; i++)
        if (v->lane_row[i] <= row && row < v->lane_row[i] + mr_lane_rows(&v->lanes.items[i]))
            return true;
    return false;
}

/* From the lane `from` at column `x` to the lane `to` at column `y`, y >= x: along the row beside `from`, then straight
 * after the bars of the lanes between. Not drawn where another arrow is in the way or beside it. */
static void draw_arrow(mr_terminal_view *v, int from, int to, int x, int y) {
    int step = to > from ? 1 : -1;
    int rows = mr_lane_rows(&v->lanes.items[from]);
    int beside = v->lane_row[from] + (step > 0 ? rows : -1);
    int to_row = v->lane_row[to] + (step < 0 ? mr_lane_rows(&v->lanes.items[to]) - 1 : 0);
    mr_style style = mr_terminal_color(v, 244);
    if (y >= v->axis.first + v->axis.width) y = v->axis.first + v->axis.width - 1;
    if (x > y) x = y;
    int left = x > v->axis.first ? x - 1 : x,
        right = y + 2 < v->axis.first + v->axis.width ? y + 2 : y + 1;
    if (!mr_grid_is_free(&v->grid, beside, left, right) ||
        !can_pass(v, beside + step, step, to_row, y))
        return;
    bool is_down = step > 0;
    if (x < y) {
        mr_grid_put(&v->grid, beside, x, is_down ? "╰" : "╭", "`", style);
        for (int i = x + 1; i < y; i++) mr_grid_put(&v->grid, beside, i, "─", "-", style);
        mr_grid_put(&v->grid, beside, y, is_down ? "╮" : "╯", ".", style);
    }
    for (int row = beside + (x < y ? step : 0); row != to_row; row += step)
        if (!is_lane_row(v, row)) mr_grid_put(&v->grid, row, y, "│", "|", style);
    mr_grid_put(&v->grid, to_row - step, y, is_down ? "▼" : "▲", is_down ? "v" : "^", style);
    v->has_arrow = true;
}

/* Those that ended a wait come first: the others find the room that is left. */
static void draw_arrows(mr_terminal_view *v, bool that_held) {
    const mr_span *spans = mr_trace_spans(v->trace);
    for (size_t i = 0; i < mr_trace_count(v->trace); i++) {
        const mr_span *wait = &spans[i];
        if (wait->kind != MR_COMMAND_WAIT || !wait->ran || wait->record == MR_TRACE_NONE) continue;
        const mr_span *record = &spans[wait->record];
        if (!record->ran || record->stream == wait->stream) continue;
        int x = column_of(v, record->end), y = column_of(v, wait->end);
        int from = mr_lanes_stream(&v->lanes, record->stream);
        int to = mr_lanes_stream(&v->lanes, wait->stream);
        if (from < 0 || to < 0 || (x == y) != that_held) continue;
        draw_arrow(v, from, to, x, y);
    }
}

/* ---- races: a mark on both bars, and the edge that is missing */

/* Where a span's bar is: the lane, the row, and the columns of its begin and its end. */
typedef struct {
    int lane, row, first, end;
} bar_place;

static bool find_bar(const mr_terminal_view *v, uint32_t span, bar_place *out) {
    if (span == MR_TRACE_NONE) return false;
    const mr_span *s = &mr_trace_spans(v->trace)[span];
    bool on_host = !s->ran || s->stream == MR_TRACE_NONE;
    int lane = !on_host    ? mr_lanes_stream(&v->lanes, s->stream)
               : s->called ? mr_lanes_host(&v->lanes, v->trace, s)
                           : -1;
    if (lane < 0) return false;
    const mr_lane *l = &v->lanes.items[lane];
    int last = v->axis.first + v->axis.width - 1;
    *out = (bar_place){lane, v->lane_row[lane], column_of(v, on_host ? s->call : s->begin),
                       column_of(v, on_host ? s->returned : s->end)};
    for (size_t i = 0; i < l->count; i++)
        for (int row = 0; !on_host && l->spans[i] == span && row < l->row_count; row++)
            if (mr_lane_row_has(v->trace, l, i, row, &v->axis)) out->row = v->lane_row[lane] + row;
    if (out->first > last) out->first = last;
    if (out->end > last) out->end = last;
    return true;
}

/* From a bar to one of another lane, in broken lines; nothing where something is in the way. The order is missing, so
 * the second bar may be left of the first one. */
static void draw_missing(mr_terminal_view *v, size_t number, const bar_place *a,
                         const bar_place *b) {
    bool is_down = b->lane > a->lane;
    int step = is_down ? 1 : -1, x = a->end, y = b->first;
    int rows = mr_lane_rows(&v->lanes.items[a->lane]);
    int beside = v->lane_row[a->lane] + (is_down ? rows : -1);
    int to_row = v->lane_row[b->lane] + (is_down ? 0 : mr_lane_rows(&v->lanes.items[b->lane]) - 1);
    int left = x < y ? x : y, right = (x < y ? y : x) + 1;
    if (right - left < 4) right = left + 4;
    if (a->lane == b->lane || right > v->grid.width || number >= MR_MOST_LISTED ||
        !mr_grid_is_free(&v->grid, beside, left, right) ||
        !can_pass(v, beside + step, step, to_row, y))
        return;
    mr_style style = mr_terminal_color(v, 203);
    for (int i = left + 1; i < (x < y ? y : x); i++)
        mr_grid_put(&v->grid, beside, i, "╌", ".", style);
    mr_grid_put(&v->grid, beside, x, x == y ? "╎" : "╌", x == y ? ":" : ".", style);
    for (int row = beside; row != to_row; row += step)
        if (row == beside || !is_lane_row(v, row)) mr_grid_put(&v->grid, row, y, "╎", ":", style);
    mr_grid_put(&v->grid, to_row - step, y, is_down ? "▽" : "△", is_down ? "v" : "^", style);
    char text[] = {'!', (char)('1' + number), '\0'};
    int distance = x < y ? y - x : x - y;
    mr_grid_text(&v->grid, beside, distance > 3 ? (x + y) / 2 : (x < y ? y : x) + 1, right, text,
                 style);
    v->has_missing = true;
}

static void draw_races(mr_terminal_view *v) {
    mr_style style = mr_terminal_color(v, 203);
    style.is_bold = true;
    for (size_t i = 0; i < mr_trace_hazard_count(v->trace); i++) {
        const mr_trace_hazard *hazard = mr_trace_hazard_at(v->trace, i);
        bar_place sides[2];
        bool is_there[] = {find_bar(v, hazard->first, &sides[0]),
                           find_bar(v, hazard->second, &sides[1])};
        for (int k = 0; k < 2; k++)
            if (is_there[k]) mr_grid_put(&v->grid, sides[k].row, sides[k].first, "!", "!", style);
        v->has_race |= is_there[0] || is_there[1];
        if (is_there[0] && is_there[1]) draw_missing(v, i, &sides[0], &sides[1]);
    }
}

/* ---- the axis */

static void draw_axis(mr_terminal_view *v) {
    uint64_t unit;
    const char *unit_name = mr_axis_unit(v->axis.duration, &unit);
    uint64_t step = mr_axis_step(v->axis.duration / (uint64_t)(v->axis.width / 10) + 1);
    int row = mr_grid_row(&v->grid), ruler = mr_grid_row(&v->grid);
    for (int i = 0; i < v->axis.width; i++)
        mr_grid_put(&v->grid, ruler, v->axis.first + i, "─", "-", MR_STYLE_DIM);
    mr_grid_text(&v->grid, row, 0, v->axis.first - 1, unit_name, MR_STYLE_DIM);
    mr_grid_text(&v->grid, row, v->axis.first + v->axis.width + 1, v->grid.width, " busy",
                 MR_STYLE_DIM);
    for (uint64_t t = 0; t < v->axis.duration; t += step) {
        char text[32];
        int column = column_of(v, t);
        mr_number_format(text, sizeof text, "%.12g", (double)t / (double)unit);
        mr_grid_put(&v->grid, ruler, column, "┬", "+", MR_STYLE_DIM);
        if (column + (int)strlen(text) <= v->axis.first + v->axis.width)
            mr_grid_text(&v->grid, row, column, v->grid.width, text, MR_STYLE_DIM);
    }
}

/* ---- the whole */

mr_status mr_terminal_draw(mr_terminal_view *v) {
    if (v->lanes.items[0].count || v->lanes.count > 1) draw_axis(v);
    for (size_t i = 0; i < v->lanes.count; i++) {
        MR_TRY(draw_lane(v, &v->lanes.items[i]));
        if (i + 1 < v->lanes.count) mr_grid_row(&v->grid);
    }
    draw_races(v); /* the first to get room: they are what one looks for */
    draw_arrows(v, true);
    draw_arrows(v, false);
    if (v->grid.failed) return mr_no_memory("to draw a trace");
    return MR_OK;
}
