/* A trace on a terminal: a lane for the host and for each stream, a bar for each operation, arrows from records to the waits
 * that they end, and below them what did not fit. lanes.h says what is drawn, grid.h puts it at columns.
 *
 * Easiest to break: two bars never share a cell. What is too short for one of its own is drawn together with its
 * neighbours, as one bar that says how many they are. */
#include "trace/writers.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "trace/bars.h"
#include "trace/grid.h"

#define LEAST_WIDTH   60
#define DEFAULT_WIDTH 100
#define MOST_WIDTH    1000
#define MOST_LABEL    20 /* columns of a lane's name */
#define BUSY_WIDTH    6  /* " 100 %" */
#define MOST_ENTRIES  64 /* names that are kept to choose those that are listed */
#define MOST_LISTED   8  /* of gaps at most 9: each has a digit */

/* Something for the lists below the lanes. */
typedef struct {
    const mr_span *span;
    const mr_lane *lane;
    uint64_t count, time;
} entry;

typedef struct {
    entry items[MOST_ENTRIES];
    int count;
    uint64_t left_out;
} entries;

typedef struct {
    const mr_trace *trace;
    mr_lanes lanes;
    mr_grid grid;
    int *lane_row; /* the grid's row of each lane */
    mr_axis axis;  /* columns */
    bool looks[MR_LOOK_COUNT], has_gap, has_arrow, has_merged;
    entries names, gaps;
} view;

static int column_of(const view *v, uint64_t time) {
    return mr_axis_place(&v->axis, time);
}

static const mr_span *span_at(const view *v, const mr_lane *lane, size_t i) {
    return &mr_trace_spans(v->trace)[lane->spans[i]];
}

static mr_style colored(const view *v, int fore) {
    return (mr_style){(short)(v->grid.color ? fore : -1), -1, false, false};
}

/* ---- bars */

/* Puts `text` into the middle of the columns; a part of it if there is room for some of it. True: all of it is there. */
static bool put_label(view *v, int row, int first, int end, const char *text, mr_style style,
                      int margin) {
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

/* Of one line of the script. */
static bool is_same_work(const mr_span *a, const mr_span *b) {
    return a->stream == b->stream && a->where.line == b->where.line &&
           a->where.file == b->where.file && strcmp(a->name, b->name) == 0;
}

static entry *find_entry(entries *list, const mr_span *span) {
    for (int i = 0; i < list->count; i++)
        if (is_same_work(list->items[i].span, span)) return &list->items[i];
    return NULL;
}

/* Notes the bars of a group that could not be named, for the list below. */
static void note_names(view *v, const mr_lane *lane, int row, const mr_bar *g) {
    uint32_t left = g->count;
    for (size_t i = g->index; left && i < lane->count; i++) {
        const mr_span *span = span_at(v, lane, i);
        bool on_host = lane->stream == MR_TRACE_NONE;
        if (!mr_lane_row_has(v->trace, lane, i, row)) continue;
        left--;
        entry *e = find_entry(&v->names, span);
        if (!e && v->names.count < MOST_ENTRIES) {
            e = &v->names.items[v->names.count++];
            *e = (entry){.span = span, .lane = lane};
        }
        if (e) {
            e->count++;
            e->time += on_host ? span->returned - span->call : span->end - span->begin;
        } else v->names.left_out++;
    }
}

/* A single span fills its cells. Several that are drawn as one fill so much of the cells' height as they take of the time. */
static void fill_cells(view *v, int row, const mr_bar *g, mr_style full) {
    static const char *const blocks[] = {"▁", "▁", "▂", "▃", "▄", "▅", "▆", "▇"};
    static const char *const dots[] = {".", ".", ".", ":", ":", ":", ":", "+"};
    const mr_look_text *look = &mr_looks[g->look];
    int eighths = mr_bar_coverage(g, &v->axis);
    if (eighths < 8) v->has_merged = true;
    for (int i = g->first; i < g->end; i++) {
        if (eighths < 8)
            mr_grid_put(&v->grid, row, i, blocks[eighths], dots[eighths], colored(v, look->color));
        else
            mr_grid_put(&v->grid, row, i, v->grid.color ? " " : look->fill,
                        v->grid.color ? " " : look->ascii, full);
    }
    v->looks[g->look] = true;
}

static void draw_group(view *v, const mr_lane *lane, int lane_row, int row, const mr_bar *g,
                       bool touches_next) {
    mr_grid *grid = &v->grid;
    short color = (short)mr_looks[g->look].color;
    bool is_full = mr_bar_coverage(g, &v->axis) == 8;
    mr_style bar = grid->color && is_full ? (mr_style){16, color, false, false} : MR_STYLE_PLAIN;
    fill_cells(v, row, g, bar);

    int end = g->end;
    if (touches_next && is_full && g->end - g->first > 1) {
        end--;
        /* Half a cell, so that two bars do not look like one. */
        grid->cells[(size_t)row * (size_t)grid->width + (size_t)end].back = -1;
        mr_grid_put(grid, row, end, "▌", "|", colored(v, color));
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
static entry *gap_entry(view *v, const mr_lane *lane, const mr_lane_gap *gap) {
    entry *e = NULL;
    for (int i = 0; i < v->gaps.count && !e; i++) {
        const mr_span *other = v->gaps.items[i].span;
        if (v->gaps.items[i].lane == lane && is_same_work(other, gap->span) &&
            same_cause(v->trace, other, gap->span))
            e = &v->gaps.items[i];
    }
    if (!e && v->gaps.count == MOST_LISTED) {
        v->gaps.left_out++;
        return NULL;
    }
    if (!e) {
        e = &v->gaps.items[v->gaps.count++];
        *e = (entry){.span = gap->span, .lane = lane};
    }
    e->count++;
    e->time += gap->end - gap->begin;
    return e;
}

static void draw_gap(view *v, const mr_lane *lane, int row, size_t bar, int from, int end) {
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
    entry *e = !is_named && end - first > 2 ? gap_entry(v, lane, &gap) : NULL;
    if (e) {
        const char number[] = {(char)('1' + (e - v->gaps.items)), '\0'};
        int middle = first + (end - first - 1) / 2;
        mr_grid_text(&v->grid, row, middle, middle + 1, number, MR_STYLE_PLAIN);
    }
    mr_buffer_free(&cause);
}

/* ---- lanes */

static void draw_host_calls(view *v, const mr_lane *lane, int row) {
    for (size_t i = 0; i < lane->count; i++) {
        int column = column_of(v, span_at(v, lane, i)->call);
        if (span_at(v, lane, i)->host_waited || !mr_grid_is_free(&v->grid, row, column, column + 1))
            continue;
        mr_grid_put(&v->grid, row, column, mr_looks[MR_LOOK_HOST_CALL].fill,
                    mr_looks[MR_LOOK_HOST_CALL].ascii,
                    colored(v, mr_looks[MR_LOOK_HOST_CALL].color));
        v->looks[MR_LOOK_HOST_CALL] = true;
    }
}

static mr_status draw_row(view *v, const mr_lane *lane, int lane_row, int row) {
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

static void put_busy(view *v, const mr_lane *lane, int row) {
    char text[16];
    uint64_t percent =
        v->axis.duration ? (lane->busy * 100 + v->axis.duration / 2) / v->axis.duration : 0;
    snprintf(text, sizeof text, "%3" PRIu64 " %%", percent);
    mr_grid_text(&v->grid, row, v->axis.first + v->axis.width + 1, v->grid.width, text,
                 MR_STYLE_DIM);
}

static mr_status draw_lane(view *v, const mr_lane *lane) {
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

static int lane_of_stream(const view *v, uint32_t stream) {
    for (size_t i = 1; i < v->lanes.count; i++)
        if (v->lanes.items[i].stream == stream) return (int)i;
    return -1;
}

static bool can_pass(const view *v, int row, int step, int to_row, int column) {
    for (; row != to_row; row += step)
        if (!mr_grid_is_free(&v->grid, row, column, column + 1)) {
            bool between = false;
            for (size_t i = 0; i < v->lanes.count && !between; i++)
                between = v->lane_row[i] <= row &&
                          row < v->lane_row[i] + (i ? v->lanes.items[i].row_count : 1);
            if (!between) return false;
        }
    return true;
}

static bool is_lane_row(const view *v, int row) {
    for (size_t i = 0; i < v->lanes.count; i++)
        if (v->lane_row[i] <= row && row < v->lane_row[i] + (i ? v->lanes.items[i].row_count : 1))
            return true;
    return false;
}

/* From the lane `from` at column `x` to the lane `to` at column `y`, y >= x: along the row beside `from`, then straight
 * behind the bars of the lanes between. Not drawn where another arrow is in the way or beside it. */
static void draw_arrow(view *v, int from, int to, int x, int y) {
    int step = to > from ? 1 : -1;
    int rows = from ? v->lanes.items[from].row_count : 1;
    int beside = v->lane_row[from] + (step > 0 ? rows : -1);
    int to_row = v->lane_row[to] + (step < 0 && to ? v->lanes.items[to].row_count - 1 : 0);
    mr_style style = colored(v, 244);
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
static void draw_arrows(view *v, bool that_held) {
    const mr_span *spans = mr_trace_spans(v->trace);
    for (size_t i = 0; i < mr_trace_count(v->trace); i++) {
        const mr_span *wait = &spans[i];
        if (wait->kind != MR_COMMAND_WAIT || !wait->ran || wait->record == MR_TRACE_NONE) continue;
        const mr_span *record = &spans[wait->record];
        if (!record->ran || record->stream == wait->stream) continue;
        int x = column_of(v, record->end), y = column_of(v, wait->end);
        int from = lane_of_stream(v, record->stream), to = lane_of_stream(v, wait->stream);
        if (from < 0 || to < 0 || (x == y) != that_held) continue;
        draw_arrow(v, from, to, x, y);
    }
}

/* ---- the axis */

static void draw_axis(view *v) {
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
        snprintf(text, sizeof text, "%.12g", (double)t / (double)unit);
        mr_grid_put(&v->grid, ruler, column, "┬", "+", MR_STYLE_DIM);
        if (column + (int)strlen(text) <= v->axis.first + v->axis.width)
            mr_grid_text(&v->grid, row, column, v->grid.width, text, MR_STYLE_DIM);
    }
}

/* ---- one trace */

static int label_width(const view *v) {
    int width = 4;
    for (size_t i = 0; i < v->lanes.count; i++) {
        int n = mr_grid_text_width(&v->grid, v->lanes.items[i].label);
        if (n > width) width = n;
    }
    return width < MOST_LABEL ? width : MOST_LABEL;
}

static mr_status view_open(view *v, const mr_trace *trace, const mr_trace_terminal *options,
                           uint64_t duration, int least_label) {
    int width = options->width ? options->width : DEFAULT_WIDTH;
    width = width < LEAST_WIDTH ? LEAST_WIDTH : width > MOST_WIDTH ? MOST_WIDTH : width;
    *v = (view){.trace = trace, .axis.duration = duration ? duration : 1};
    mr_grid_open(&v->grid, width, options->ascii, options->color);
    MR_TRY(mr_lanes_create(trace, &v->lanes));
    v->lane_row = calloc(v->lanes.count, sizeof *v->lane_row);
    if (!v->lane_row) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to draw a trace");
    int label = label_width(v);
    v->axis.first = (label > least_label ? label : least_label) + 2;
    v->axis.width = width - v->axis.first - BUSY_WIDTH;
    return MR_OK;
}

static void view_close(view *v) {
    mr_grid_close(&v->grid);
    mr_lanes_destroy(&v->lanes);
    free(v->lane_row);
}

static mr_status draw(view *v) {
    if (v->lanes.items[0].count || v->lanes.count > 1) draw_axis(v);
    for (size_t i = 0; i < v->lanes.count; i++) {
        MR_TRY(draw_lane(v, &v->lanes.items[i]));
        if (i + 1 < v->lanes.count) mr_grid_row(&v->grid);
    }
    draw_arrows(v, true);
    draw_arrows(v, false);
    if (v->grid.failed) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to draw a trace");
    return MR_OK;
}

static void write_rows(const view *v, FILE *out) {
    for (int row = 0; row < v->grid.rows; row++)
        if (!mr_grid_row_is_empty(&v->grid, row)) mr_grid_write_row(&v->grid, row, out);
}

/* ---- below the lanes */

/* Where to end a line that begins at `text` and has room for `width` columns: behind a word, if there is one. */
static size_t line_length(const char *text, int width) {
    size_t end = 0, word = 0;
    for (int columns = 0; text[end]; end++) {
        bool begins = ((unsigned char)text[end] & 0xc0) != 0x80;
        if (begins && columns++ == width) return word ? word : end;
        if (text[end] == ' ' && end > 4) word = end;
    }
    return end;
}

/* A text, in as many lines as it needs; those after the first are indented. */
static void write_line(const view *v, const mr_buffer *text, mr_style style, FILE *out) {
    const char *rest = text->data ? text->data : "";
    mr_grid page;
    mr_grid_open(&page, v->grid.width, v->grid.ascii, v->grid.color);
    for (int indent = 0; *rest; indent = 4) {
        char line[4 * MOST_WIDTH + 1];
        size_t length = line_length(rest, page.width - indent);
        if (length >= sizeof line) length = sizeof line - 1;
        memcpy(line, rest, length);
        line[length] = '\0';
        mr_grid_text(&page, mr_grid_row(&page), indent, page.width, line, style);
        rest += length;
        while (*rest == ' ') rest++;
    }
    for (int row = 0; row < page.rows; row++) mr_grid_write_row(&page, row, out);
    mr_grid_close(&page);
}

/* One entry of the legend, behind `column`; a new row where it does not fit. Returns the column behind it. */
static int put_legend(mr_grid *page, int column, const char *mark, mr_style style,
                      const char *text) {
    int width = mr_grid_text_width(page, mark) + 1 + mr_grid_text_width(page, text);
    if (!column || column + width > page->width) {
        mr_grid_row(page);
        column = 0;
    }
    int row = page->rows - 1;
    column = mr_grid_text(page, row, column, page->width, mark, style);
    return mr_grid_text(page, row, column + 1, page->width, text, MR_STYLE_DIM) + 3;
}

static void write_legend(const view *v, FILE *out) {
    bool ascii = v->grid.ascii, color = v->grid.color;
    mr_grid page;
    int column = 0;
    mr_grid_open(&page, v->grid.width, ascii, color);
    for (int i = 0; i < MR_LOOK_COUNT; i++) {
        if (!v->looks[i]) continue;
        const char *mark = ascii ? mr_looks[i].ascii : mr_looks[i].fill;
        mr_style style = colored(v, mr_looks[i].color);
        if (color && i != MR_LOOK_HOST_CALL) { /* the bars themselves are blanks on a colour */
            mark = " ";
            style.back = style.fore;
        }
        column = put_legend(&page, column, mark, style, mr_looks[i].legend);
    }
    if (v->has_merged)
        column = put_legend(&page, column, ascii ? ".:" : "▂▄", MR_STYLE_DIM,
                            ascii ? "several short ones" : "several, as high as they are busy");
    if (v->has_gap) column = put_legend(&page, column, ascii ? ".." : "┄┄", MR_STYLE_DIM, "waits");
    if (v->has_arrow)
        put_legend(&page, column, ascii ? "|v" : "│▼", MR_STYLE_DIM, "record to wait");
    for (int i = 0; i < page.rows; i++) mr_grid_write_row(&page, i, out);
    mr_grid_close(&page);
}

static int by_time(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->time != y->time) return x->time > y->time ? -1 : 1;
    return x->span->seq < y->span->seq ? -1 : x->span->seq > y->span->seq;
}

static void put_times(mr_buffer *out, const entry *e) {
    if (e->count > 1) mr_buffer_printf(out, "%" PRIu64 " of ", e->count);
    mr_trace_put_time(out, e->time / e->count);
    if (e->count == 1) return;
    mr_buffer_puts(out, ", ");
    mr_trace_put_time(out, e->time);
    mr_buffer_puts(out, " in all");
}

static void write_gaps(const view *v, FILE *out) {
    for (int i = 0; i < v->gaps.count; i++) {
        const entry *e = &v->gaps.items[i];
        mr_buffer text = {0};
        mr_buffer_printf(&text, " %d  %s  ", i + 1, e->lane->label);
        mr_trace_put_cause(&text, v->trace, e->span);
        mr_buffer_puts(&text, ", before ");
        mr_text_put(&text, e->span->name);
        mr_buffer_puts(&text, ": ");
        put_times(&text, e);
        write_line(v, &text, MR_STYLE_PLAIN, out);
        mr_buffer_free(&text);
    }
    if (v->gaps.left_out) fprintf(out, "    and %" PRIu64 " more\n", v->gaps.left_out);
}

static void write_names(view *v, FILE *out) {
    qsort(v->names.items, (size_t)v->names.count, sizeof *v->names.items, by_time);
    for (int i = 0; i < v->names.count && i < MOST_LISTED; i++) {
        const entry *e = &v->names.items[i];
        mr_buffer text = {0};
        mr_buffer_printf(&text, " %s  %s  ", v->grid.ascii ? "-" : "·", e->lane->label);
        mr_text_put(&text, e->span->name);
        mr_buffer_puts(&text, "  ");
        mr_trace_put_place(&text, v->trace, e->span->where);
        mr_buffer_puts(&text, e->span->where.file ? "  " : "");
        put_times(&text, e);
        write_line(v, &text, MR_STYLE_PLAIN, out);
        mr_buffer_free(&text);
    }
    uint64_t more = v->names.left_out;
    for (int i = MOST_LISTED; i < v->names.count; i++) more += v->names.items[i].count;
    if (more) fprintf(out, "    and %" PRIu64 " more\n", more);
}

static void put_side(mr_buffer *out, const view *v, uint32_t span) {
    if (span == MR_TRACE_NONE) {
        mr_buffer_puts(out, "something before the trace");
        return;
    }
    const mr_span *s = &mr_trace_spans(v->trace)[span];
    mr_text_put(out, s->name);
    if (!s->where.file) return;
    mr_buffer_puts(out, " (");
    mr_trace_put_place(out, v->trace, s->where);
    mr_buffer_puts(out, ")");
}

static void write_hazards(const view *v, FILE *out) {
    for (size_t i = 0; i < mr_trace_hazard_count(v->trace); i++) {
        if (i == MOST_LISTED) {
            fprintf(out, "    and %zu more\n", mr_trace_hazard_count(v->trace) - i);
            break;
        }
        const mr_trace_hazard *hazard = mr_trace_hazard_at(v->trace, i);
        mr_buffer text = {0};
        mr_buffer_puts(&text, " !  ");
        mr_text_put(&text, hazard->kind);
        mr_buffer_puts(&text, ": ");
        put_side(&text, v, hazard->first);
        mr_buffer_puts(&text, " and ");
        put_side(&text, v, hazard->second);
        if (hazard->fix) {
            mr_buffer_puts(&text, "; fix: ");
            mr_text_put(&text, hazard->fix);
        }
        write_line(v, &text, colored(v, 203), out);
        mr_buffer_free(&text);
    }
}

static void write_title(const view *v, const char *label, FILE *out) {
    const mr_trace_facts *facts = mr_trace_facts_of(v->trace);
    const char *dot = v->grid.ascii ? " - " : " · ";
    mr_buffer text = {0};
    if (label) mr_buffer_printf(&text, "%s: ", label);
    if (facts->script) {
        mr_text_put(&text, facts->script);
        mr_buffer_puts(&text, dot);
    }
    if (facts->device) {
        mr_text_put(&text, facts->device);
        mr_buffer_puts(&text, dot);
    }
    if (mr_trace_count(v->trace)) mr_trace_put_time(&text, facts->duration);
    else mr_buffer_puts(&text, "nothing was traced");
    if (facts->forgotten)
        mr_buffer_printf(&text, "%s%" PRIu64 " earlier operations are not kept", dot,
                         facts->forgotten);
    write_line(v, &text, (mr_style){-1, -1, false, true}, out);
    mr_buffer_free(&text);
    /* Of simulated times there is nothing to be said: they are exact. */
    if (!facts->how || (facts->backend && strcmp(facts->backend, "virtual") == 0)) return;
    mr_text_put(&text, facts->how);
    write_line(v, &text, MR_STYLE_DIM, out);
    mr_buffer_free(&text);
}

static void write_pending(const view *v, FILE *out) {
    uint64_t pending = 0;
    for (size_t i = 0; i < mr_trace_count(v->trace); i++) {
        const mr_span *span = &mr_trace_spans(v->trace)[i];
        pending += !span->ran && (mr_command_kinds[span->kind].traits & MR_TRAIT_WORK);
    }
    if (pending)
        fprintf(out, "    %" PRIu64 " operations had not run yet, or have no times\n", pending);
}

static mr_status print(const mr_trace *trace, const char *label, const mr_trace_terminal *options,
                       uint64_t duration, int least_label, FILE *out) {
    view v;
    mr_status status = view_open(&v, trace, options, duration, least_label);
    if (!status) status = draw(&v);
    if (!status) {
        write_title(&v, label, out);
        write_rows(&v, out);
        write_legend(&v, out);
        write_gaps(&v, out);
        write_names(&v, out);
        write_hazards(&v, out);
        write_pending(&v, out);
    }
    view_close(&v);
    return status;
}

mr_status mr_trace_print(const mr_trace *trace, const mr_trace_terminal *options, FILE *out) {
    return print(trace, NULL, options, mr_trace_facts_of(trace)->duration, 0, out);
}

/* Both have the labels of the wider ones, so that equal columns are equal times. */
static mr_status common_label(const mr_trace *a, const mr_trace *b,
                              const mr_trace_terminal *options, int *out_width) {
    const mr_trace *both[] = {a, b};
    *out_width = 0;
    for (int i = 0; i < 2; i++) {
        view v;
        mr_status status = view_open(&v, both[i], options, 1, *out_width);
        if (!status) *out_width = v.axis.first - 2;
        view_close(&v);
        MR_TRY(status);
    }
    return MR_OK;
}

mr_status mr_trace_print_both(const mr_trace *before, const mr_trace *after,
                              const mr_trace_terminal *options, FILE *out) {
    uint64_t was = mr_trace_facts_of(before)->duration, is = mr_trace_facts_of(after)->duration;
    uint64_t longer = was > is ? was : is;
    int label;
    MR_TRY(common_label(before, after, options, &label));
    MR_TRY(print(before, "before", options, longer, label, out));
    fputs("\n", out);
    MR_TRY(print(after, "after", options, longer, label, out));
    mr_buffer text = {0};
    mr_trace_put_time(&text, was > is ? was - is : is - was);
    if (was == is) fputs("\nBoth take equally long.\n", out);
    else
        fprintf(out, "\nThe second takes %s %s: %.3g times the first.\n",
                text.data ? text.data : "", is < was ? "less" : "more",
                was ? (double)is / (double)was : 0.0);
    bool failed = text.failed;
    mr_buffer_free(&text);
    return failed ? mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to print a trace") : MR_OK;
}
