/* A trace on a terminal: the lanes of terminal.h, a title above them, and below them the legend and what did not
 * fit. */
#include "trace/writers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "trace/terminal/terminal.h"

#define LEAST_WIDTH   40
#define DEFAULT_WIDTH 100
#define MOST_WIDTH    1000
#define MOST_LABEL    20 /* columns of a lane's name, and at most a quarter of all */
#define BUSY_WIDTH    6  /* " 100 %" */

/* ---- one trace */

static int label_width(const mr_terminal_view *v) {
    int width = 4, most = v->grid.width / 4 < MOST_LABEL ? v->grid.width / 4 : MOST_LABEL;
    for (size_t i = 0; i < v->lanes.count; i++) {
        int n = mr_grid_text_width(&v->grid, v->lanes.items[i].label);
        if (n > width) width = n;
    }
    return width < most ? width : most;
}

static mr_status view_open(mr_terminal_view *v, const mr_trace *trace,
                           const mr_trace_terminal *options, uint64_t duration, int least_label) {
    int width = options->width ? options->width : DEFAULT_WIDTH;
    width = width < LEAST_WIDTH ? LEAST_WIDTH : width > MOST_WIDTH ? MOST_WIDTH : width;
    *v = (mr_terminal_view){.trace = trace, .axis.duration = duration ? duration : 1};
    mr_grid_open(&v->grid, width, options->ascii, options->color);
    MR_TRY(mr_lanes_create(trace, &v->lanes));
    v->lane_row = calloc(v->lanes.count, sizeof *v->lane_row);
    if (!v->lane_row) return mr_no_memory("to draw a trace");
    int label = label_width(v);
    v->axis.first = (label > least_label ? label : least_label) + 2;
    v->axis.width = width - v->axis.first - BUSY_WIDTH;
    return MR_OK;
}

static void view_close(mr_terminal_view *v) {
    mr_grid_close(&v->grid);
    mr_lanes_destroy(&v->lanes);
    free(v->lane_row);
}

static void write_rows(const mr_terminal_view *v, FILE *out) {
    for (int row = 0; row < v->grid.rows; row++)
        if (!mr_grid_row_is_empty(&v->grid, row)) mr_grid_write_row(&v->grid, row, out);
}

/* ---- below the lanes */

/* Where to end a line that begins at `text` and has room for `width` columns: after a word, if there is one. */
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
static void write_line(const mr_terminal_view *v, const mr_buffer *text, mr_style style,
                       FILE *out) {
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

/* One entry of the legend, after `column`; a new row where it does not fit. Returns the column after it. */
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

static void write_legend(const mr_terminal_view *v, FILE *out) {
    bool ascii = v->grid.ascii, color = v->grid.color;
    mr_grid page;
    int column = 0;
    mr_grid_open(&page, v->grid.width, ascii, color);
    for (int i = 0; i < MR_LOOK_COUNT; i++) {
        if (!v->looks[i]) continue;
        const char *mark = ascii ? mr_looks[i].ascii : mr_looks[i].fill;
        mr_style style = mr_terminal_color(v, mr_looks[i].color);
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
        column = put_legend(&page, column, ascii ? "|v" : "│▼", MR_STYLE_DIM, "record to wait");
    if (v->has_race)
        column = put_legend(&page, column, "!", mr_terminal_color(v, 203), "takes part in a race");
    if (v->has_missing)
        put_legend(&page, column, ascii ? ":v" : "╎▽", mr_terminal_color(v, 203),
                   "the edge that is missing");
    for (int i = 0; i < page.rows; i++) mr_grid_write_row(&page, i, out);
    mr_grid_close(&page);
}

static int by_time(const void *a, const void *b) {
    const mr_terminal_entry *x = a, *y = b;
    if (x->time != y->time) return x->time > y->time ? -1 : 1;
    return x->span->seq < y->span->seq ? -1 : x->span->seq > y->span->seq;
}

static void put_times(mr_buffer *out, const mr_terminal_entry *e) {
    if (e->count > 1) mr_buffer_printf(out, "%" PRIu64 " of ", e->count);
    mr_trace_put_time(out, e->time / e->count);
    if (e->count == 1) return;
    mr_buffer_puts(out, ", ");
    mr_trace_put_time(out, e->time);
    mr_buffer_puts(out, " in all");
}

static void write_gaps(const mr_terminal_view *v, FILE *out) {
    for (int i = 0; i < v->gaps.count; i++) {
        const mr_terminal_entry *e = &v->gaps.items[i];
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

static void write_names(mr_terminal_view *v, FILE *out) {
    qsort(v->names.items, (size_t)v->names.count, sizeof *v->names.items, by_time);
    for (int i = 0; i < v->names.count && i < MR_MOST_LISTED; i++) {
        const mr_terminal_entry *e = &v->names.items[i];
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
    for (int i = MR_MOST_LISTED; i < v->names.count; i++) more += v->names.items[i].count;
    if (more) fprintf(out, "    and %" PRIu64 " more\n", more);
}

static void put_side(mr_buffer *out, const mr_terminal_view *v, uint32_t span) {
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

static void write_hazards(const mr_terminal_view *v, FILE *out) {
    for (size_t i = 0; i < mr_trace_hazard_count(v->trace); i++) {
        if (i == MR_MOST_LISTED) {
            fprintf(out, "    and %zu more\n", mr_trace_hazard_count(v->trace) - i);
            break;
        }
        const mr_trace_hazard *hazard = mr_trace_hazard_at(v->trace, i);
        mr_buffer text = {0};
        mr_buffer_printf(&text, " !%zu ", i + 1);
        mr_text_put(&text, hazard->kind);
        mr_buffer_puts(&text, ": ");
        put_side(&text, v, hazard->first);
        mr_buffer_puts(&text, " and ");
        put_side(&text, v, hazard->second);
        if (hazard->fix) {
            mr_buffer_puts(&text, "; missing: ");
            mr_trace_put_fix(&text, hazard->fix);
        }
        write_line(v, &text, mr_terminal_color(v, 203), out);
        mr_buffer_free(&text);
    }
}

static void write_title(const mr_terminal_view *v, const char *label, FILE *out) {
    const mr_trace_facts *facts = mr_trace_facts_of(v->trace);
    const char *dot = v->grid.ascii ? " - " : " · ";
    mr_buffer text = {0};
    if (label) mr_buffer_printf(&text, "%s: ", label);
    if (mr_trace_title(v->trace)) {
        mr_text_put(&text, mr_trace_title(v->trace));
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
    /* Simulated times need no remark: they are exact. */
    if (!facts->how || (facts->backend && strcmp(facts->backend, "virtual") == 0)) return;
    mr_text_put(&text, facts->how);
    write_line(v, &text, MR_STYLE_DIM, out);
    mr_buffer_free(&text);
}

static void write_pending(const mr_terminal_view *v, FILE *out) {
    uint64_t pending = 0;
    for (size_t i = 0; i < mr_trace_count(v->trace); i++) {
        const mr_span *span = &mr_trace_spans(v->trace)[i];
        pending += !span->ran && mr_kind_is(span->kind, MR_TRAIT_WORK);
    }
    if (pending)
        fprintf(out, "    %" PRIu64 " operation%s had not run yet, or %s no times\n", pending,
                pending == 1 ? "" : "s", pending == 1 ? "has" : "have");
}

static mr_status print(const mr_trace *trace, const char *label, const mr_trace_terminal *options,
                       uint64_t duration, int least_label, FILE *out) {
    mr_terminal_view v;
    mr_status status = view_open(&v, trace, options, duration, least_label);
    if (!status) status = mr_terminal_draw(&v);
    if (!status) {
        write_title(&v, label, out);
        write_rows(&v, out);
        write_legend(&v, out);
        write_gaps(&v, out);
        if (!options->is_brief) write_names(&v, out);
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
        mr_terminal_view v;
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
    char times[MR_NUMBER_TEXT];
    mr_number_format(times, sizeof times, "%.3g", was ? (double)is / (double)was : 0.0);
    if (was == is) fputs("\nBoth take equally long.\n", out);
    else
        fprintf(out, "\nThe second takes %s %s: %s times the first.\n", text.data ? text.data : "",
                is < was ? "less" : "more", times);
    bool failed = text.failed;
    mr_buffer_free(&text);
    return failed ? mr_no_memory("to print a trace") : MR_OK;
}
