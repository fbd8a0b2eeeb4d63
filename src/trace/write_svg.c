/* A picture of a trace, for slides and documents: lanes, bars with names, arrows from records to waits, hazards. It
 * needs no script and no font of its own. Bars that share a pixel are one rectangle, so that a long trace is a small
 * file, too. */
#include "trace/formats.h"

#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "trace/bars.h"
#include "trace/labels.h"

#define WIDTH       1200
#define MARGIN      16
#define LABEL       160
#define PLOT        (WIDTH - LABEL - 2 * MARGIN)
#define BAR         26 /* height of a bar, and of the space between two lanes */
#define SPACE       18
#define HEAD        64 /* title and axis */
#define ROW         20 /* of the legend, and of the list of hazards */
#define FOOT        (2 * ROW + 26)
#define MOST_LISTED 8
#define LETTER      6.7 /* width of a letter in a bar */
#define BOLD        7.5 /* of one beside a frame */
#define REACH       150 /* how far a name may be from what it names */
#define PALE        0.22
#define MOST_ARROWS 1000
#define HALO        4 /* from a bar to the outside of its frame */
#define EDGE_POINTS 40
#define MOST_BESIDE 40  /* names that stand below their bars */
#define SMALL       6.7 /* width of a letter below a bar */

// clang-format off
static const char style[] =
    "text{font:12px system-ui,sans-serif;fill:#1d2330}.t{font-size:16px;font-weight:600}.d{fill:#667085}"
    ".b{font-family:ui-monospace,monospace;font-size:11px;fill:#fff;text-anchor:middle;stroke:#1d2330;stroke-width:2px;"
    "paint-order:stroke}"
    ".grid{stroke:#e4e7ec}.lane{fill:#f5f6f9}.gap{stroke:#98a2b3;stroke-dasharray:2 4;fill:none}"
    ".arrow{stroke:#475467;fill:none;marker-end:url(#tip)}"
    ".hazard path,.hazard rect{stroke:#d92d50;stroke-width:2;fill:none;stroke-dasharray:5 3}.hazard circle{fill:#d92d50}"
    ".hazard rect{stroke-dasharray:none;stroke-width:3}.hazard .halo{stroke:#fff;stroke-width:2}"
    ".s{font-family:ui-monospace,monospace;font-size:11px;text-anchor:middle;stroke:#fff;stroke-width:3px;"
    "paint-order:stroke}"
    ".n{font-weight:600;text-anchor:middle;stroke:#fff;stroke-width:4px;paint-order:stroke}"
    ".kernel{fill:#3f6fd8}.host-wait{fill:#e4e7ec}.host-call{fill:#98a2b3}.copy-in{fill:url(#copy-in)}"
    ".copy-out{fill:url(#copy-out)}.copy-device{fill:url(#copy-device)}.copy-peer{fill:url(#copy-peer)}"
    ".host-function{fill:url(#host-function)}.host-work{fill:url(#host-work)}"
    ".host-wait+.b,.host-call+.b,.faint{fill:#1d2330;stroke:none}"
    ".copy-in+.b,.copy-out+.b,.copy-device+.b,.copy-peer+.b,.host-function+.b,.host-work+.b{fill:#1d2330;stroke:#fff;"
    "stroke-width:4px}";

/* What tells kinds of bars apart in print, without colour: lines over the colour. Kernels, waits and calls have none. */
static const struct {
    const char *word, *color, *lines;
} textures[] = {
    {"copy-in", "#20855a", "M-2 2L2-2M0 8L8 0M6 10L10 6"},
    {"copy-out", "#b4590f", "M-2 6L2 10M0 0L8 8M6-2L10 2"},
    {"copy-device", "#127c8c", "M2 0V8M6 0V8"},
    {"copy-peer", "#8446c0", "M0 8L8 0M0 0L8 8"},
    {"host-function", "#8a6508", "M0 2H8M0 6H8"},
    {"host-work", "#a8763e", "M1 2H3M5 6H7"},
};
// clang-format on

/* A bar of a stream that has no room for its name. */
typedef struct {
    uint32_t span;
    double middle;
    int y; /* of the base line below it */
} nameless_bar;

typedef struct {
    const mr_trace *trace;
    mr_sink *sink;
    mr_lanes lanes;
    mr_axis axis;
    int *top; /* of each lane */
    int bottom;
    bool looks[MR_LOOK_COUNT], has_gap, has_arrow, has_share, has_hazard,
        has_race_inside;    /* what the legend explains */
    mr_labels labels;       /* the texts that others may not cover */
    MR_VEC(uint32_t) named; /* the spans whose names are written */
    MR_VEC(nameless_bar) nameless;
    mr_labels edges; /* what names below bars do not cover: points of edges, and arrows */
    mr_labels bars;  /* what numbers of edges do not cover where there is another place */
} picture;

static int time_x(const picture *p, uint64_t time) {
    return mr_axis_place(&p->axis, time);
}

/* Where the lanes are, below `top`. */
static void place_lanes(picture *p, int top) {
    top += HEAD;
    for (size_t i = 0; i < p->lanes.count; i++) {
        p->top[i] = top;
        top += mr_lane_rows(&p->lanes.items[i]) * BAR + SPACE;
    }
    p->bottom = top - SPACE;
}

static void put_text(picture *p, double x, int y, const char *class_name, const char *text) {
    mr_sink_format(p->sink, "<text x=\"%.1f\" y=\"%d\" class=\"%s\">", x, y, class_name);
    mr_sink_xml(p->sink, text);
    mr_sink_text(p->sink, "</text>\n");
}

static double width_of(const char *text, double letter) {
    return letter * (double)mr_columns_of(text, strlen(text));
}

/* The bytes of the text that so many columns have room for. */
static size_t bytes_of_columns(const char *text, int columns) {
    size_t size = strlen(text), at = 0;
    for (int width = 0, next; at < size; width += next) {
        size_t bytes = mr_columns_next(text + at, size - at, &next);
        if (width + next > columns) break;
        at += bytes;
    }
    return at;
}

/* With an ellipsis where it is wider than its room, and then as a whole in the tooltip. */
static void put_cut(picture *p, int x, int y, const char *class_name, const char *text, int room) {
    if (width_of(text, LETTER) <= room) {
        put_text(p, x, y, class_name, text);
        return;
    }
    char *cut = strndup(text, bytes_of_columns(text, (int)(room / LETTER) - 1));
    mr_sink_format(p->sink, "<text x=\"%d\" y=\"%d\" class=\"%s\"><title>", x, y, class_name);
    mr_sink_xml(p->sink, text);
    mr_sink_text(p->sink, "</title>");
    if (cut) mr_sink_xml(p->sink, cut);
    else p->sink->failed = true;
    mr_sink_text(p->sink, "…</text>\n");
    free(cut);
}

/* Later texts do not cover that place. */
static void keep_free(picture *p, const mr_label *label) {
    if (!mr_vec_push(&p->labels, *label)) p->sink->failed = true;
}

/* A text around its middle, which others do not cover. */
static void put_label(picture *p, const mr_label *label, const char *class_name, const char *text) {
    put_text(p, label->middle, label->y, class_name, text);
    keep_free(p, label);
}

/* ---- head and axis */

static void draw_title(picture *p, const char *label, int top) {
    const mr_trace_facts *facts = mr_trace_facts_of(p->trace);
    mr_buffer text = {0};
    if (label) mr_buffer_printf(&text, "%s: ", label);
    const char *script = mr_trace_title(p->trace);
    mr_buffer_printf(&text, "%s · ", script ? script : "timeline");
    if (facts->device) mr_buffer_printf(&text, "%s · ", facts->device);
    mr_trace_put_time(&text, facts->duration);
    if (text.failed) p->sink->failed = true;
    else put_text(p, MARGIN, top + 26, "t", text.data);
    mr_buffer_free(&text);
}

static void draw_axis(picture *p, int top) {
    uint64_t unit, step = mr_axis_step(p->axis.duration / 10 + 1);
    const char *unit_name = mr_axis_unit(p->axis.duration, &unit);
    put_text(p, MARGIN, top + 52, "d", unit_name);
    for (uint64_t t = 0; t < p->axis.duration; t += step) {
        int x = time_x(p, t);
        keep_free(p, &(mr_label){x + 10, 40, top + 52});
        mr_sink_format(p->sink, "<path class=\"grid\" d=\"M%d.5 %dV%d\"/>", x, top + 58, p->bottom);
        mr_sink_format(p->sink, "<text x=\"%d\" y=\"%d\" class=\"d\">%.12g</text>\n", x, top + 52,
                       (double)t / (double)unit);
    }
}

/* ---- lanes */

static const mr_span *span_at(const picture *p, const mr_lane *lane, size_t i) {
    return &mr_trace_spans(p->trace)[lane->spans[i]];
}

/* Why a stream waits, in the gap before a bar, where no frame of a race and no other text is. */
static void put_cause(picture *p, const char *cause, int first, int end, int y) {
    double width = width_of(cause, LETTER);
    mr_label label = {(first + end) / 2.0, width, y};
    if (width >= end - first || !mr_labels_move(&p->labels, &label, end - first, first, end))
        return;
    put_text(p, label.middle - width / 2, y, "d", cause);
    keep_free(p, &label);
}

static void draw_gap(picture *p, const mr_lane *lane, const mr_bar *bar, int y) {
    mr_lane_gap gap = mr_lane_gap_before(p->trace, lane, bar->index);
    int first = time_x(p, gap.begin);
    if (gap.begin == gap.end || bar->first - first < 3) return;
    mr_sink_format(p->sink, "<path class=\"gap\" d=\"M%d %dH%d\"><title>", first, y + BAR / 2,
                   bar->first);
    p->has_gap = true;
    mr_buffer cause = {0};
    mr_trace_put_cause(&cause, p->trace, gap.span);
    if (cause.failed) p->sink->failed = true;
    else mr_sink_xml(p->sink, cause.data);
    mr_sink_text(p->sink, "</title></path>\n");
    if (cause.data) put_cause(p, cause.data, first, bar->first, y + BAR / 2 - 4);
    mr_buffer_free(&cause);
}

static void draw_rect(picture *p, const mr_bar *bar, int y, int width, double share) {
    int height = share < 1 && share * BAR < 2 ? 2 : (int)(share * BAR + 0.5);
    const char *look = mr_looks[bar->look].word;
    if (share < 1) {
        mr_sink_format(p->sink,
                       "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                       "fill-opacity=\"%.2f\"/>",
                       look, bar->first, y, width, BAR, PALE);
        p->has_share = true;
    }
    mr_sink_format(
        p->sink, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\"/>",
        look, bar->first, y + BAR - height, width, height, width > 6 && share == 1 ? 3 : 0);
}

/* The name of one operation of a stream that has no room in its bar stands below it, if that place stays free. */
static void keep_nameless(picture *p, const mr_lane *lane, const mr_bar *bar, int y, int width) {
    if (bar->count > 1 || lane->stream == MR_TRACE_NONE) return;
    nameless_bar one = {lane->spans[bar->index], bar->first + width / 2.0, y + BAR + 12};
    if (!mr_vec_push(&p->nameless, one)) p->sink->failed = true;
}

/* The name in the bar, if it has room there. */
static void name_bar(picture *p, const mr_lane *lane, const mr_bar *bar, int y, int width,
                     const char *name, double share) {
    double room = width_of(name, LETTER);
    if (!*name) return;
    if (room + LETTER >= width) {
        keep_nameless(p, lane, bar, y, width);
        return;
    }
    put_label(p, &(mr_label){bar->first + width / 2.0, room, y + BAR / 2 + 4},
              share > 0.6 ? "b" : "b faint", name);
    bool is_its_lane = (span_at(p, lane, bar->index)->stream == MR_TRACE_NONE) ==
                       (lane->stream == MR_TRACE_NONE); /* not that of the host, which called it */
    if (bar->count == 1 && is_its_lane && !mr_vec_push(&p->named, lane->spans[bar->index]))
        p->sink->failed = true;
}

static void draw_bar(picture *p, const mr_lane *lane, const mr_bar *bar, int y, bool touches_next) {
    mr_buffer name = {0}, tip = {0};
    double share = mr_bar_share(bar, &p->axis);
    int width = bar->end - bar->first - (touches_next && bar->end - bar->first > 2);
    p->looks[bar->look] = true;
    for (int row = 10; row < BAR; row += 12)
        if (!mr_vec_push(&p->bars, ((mr_label){bar->first + width / 2.0, width, y + row})))
            p->sink->failed = true;
    mr_bar_put_name(&name, p->trace, lane, bar, false);
    mr_trace_put_place(&tip, p->trace, span_at(p, lane, bar->index)->where);
    if (tip.size) mr_buffer_puts(&tip, ", ");
    mr_trace_put_time(&tip, bar->longest);
    if (share < 1) mr_buffer_printf(&tip, ", busy %.2g %%", 100 * share);
    if (name.failed || tip.failed) p->sink->failed = true;
    mr_sink_text(p->sink, "<g><title>");
    mr_sink_xml(p->sink, name.data ? name.data : "");
    mr_sink_format(p->sink, "\n%s</title>", tip.data ? tip.data : "");
    draw_rect(p, bar, y, width, share);
    name_bar(p, lane, bar, y, width, name.data ? name.data : "", share);
    mr_sink_text(p->sink, "</g>\n");
    mr_buffer_free(&name);
    mr_buffer_free(&tip);
}

/* Marks of one pixel where the host made a call that it did not wait in. */
static void draw_calls(picture *p, const mr_lane *lane, int y) {
    int last = -1;
    mr_sink_text(p->sink, "<path class=\"host-call\" d=\"");
    for (size_t i = 0; i < lane->count; i++) {
        int x = time_x(p, span_at(p, lane, i)->call);
        if (x == last || mr_lane_row_has(p->trace, lane, i, 0, &p->axis)) continue;
        mr_sink_format(p->sink, "M%d %dh1v%dh-1z", x, y + 5, BAR - 10);
        last = x;
        p->looks[MR_LOOK_HOST_CALL] = true;
    }
    mr_sink_text(p->sink, "\"/>\n");
}

static mr_status draw_lane(picture *p, const mr_lane *lane, int top) {
    bool on_host = lane->stream == MR_TRACE_NONE;
    int rows = mr_lane_rows(lane);
    mr_sink_format(p->sink, "<rect class=\"lane\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                   p->axis.first, top, p->axis.width, rows * BAR);
    put_cut(p, MARGIN, top + BAR / 2 + 4, "l", lane->label, LABEL - 8);
    if (on_host) draw_calls(p, lane, top);
    for (int row = 0; row < rows; row++) {
        mr_bars bars = {0};
        MR_TRY(mr_lane_bars(p->trace, lane, row, &p->axis, &bars));
        for (size_t i = 0; i < bars.count; i++) {
            bool touches = i + 1 < bars.count && bars.items[i + 1].first == bars.items[i].end;
            if (!on_host) draw_gap(p, lane, &bars.items[i], top + row * BAR);
            draw_bar(p, lane, &bars.items[i], top + row * BAR, touches);
        }
        mr_vec_free(&bars);
    }
    return MR_OK;
}

/* ---- links */

static int edge_y(const picture *p, int lane, bool bottom) {
    return p->top[lane] + (bottom ? mr_lane_rows(&p->lanes.items[lane]) * BAR : 0);
}

static void draw_arrows(picture *p) {
    const mr_span *spans = mr_trace_spans(p->trace);
    int left = MOST_ARROWS;
    for (size_t i = 0; i < mr_trace_count(p->trace) && left; i++) {
        const mr_span *wait = &spans[i];
        if (wait->kind != MR_COMMAND_WAIT || !wait->ran || wait->record == MR_TRACE_NONE) continue;
        const mr_span *record = &spans[wait->record];
        int from = record->ran ? mr_lanes_stream(&p->lanes, record->stream) : -1;
        int to = mr_lanes_stream(&p->lanes, wait->stream);
        if (from < 0 || to < 0 || from == to) continue;
        bool down = to > from;
        int y = edge_y(p, from, down), end = edge_y(p, to, !down), bend = down ? 9 : -9;
        mr_sink_format(p->sink, "<path class=\"arrow\" d=\"M%d %dv%dL%d %dV%d\"/>\n",
                       time_x(p, record->end), y, bend, time_x(p, wait->end), y + bend, end);
        int first = time_x(p, record->end), last = time_x(p, wait->end);
        mr_label line = {(first + last) / 2.0, abs(last - first), y + bend + 4};
        if (!mr_vec_push(&p->edges, line)) p->sink->failed = true;
        p->has_arrow = true;
        left--;
    }
}

/* The lane of a span that is drawn, and the middle of its bar; -1: it is not. */
static int place_of(const picture *p, uint32_t span, int *out_x) {
    if (span == MR_TRACE_NONE) return -1;
    const mr_span *s = &mr_trace_spans(p->trace)[span];
    bool on_host = s->stream == MR_TRACE_NONE;
    if (on_host ? !s->called : !s->ran) return -1;
    *out_x = on_host ? time_x(p, s->call) : (time_x(p, s->begin) + time_x(p, s->end)) / 2;
    return on_host ? mr_lanes_host(&p->lanes, p->trace, s) : mr_lanes_stream(&p->lanes, s->stream);
}

typedef struct {
    int first, end, top, bottom;
} frame;

static frame frame_of(const picture *p, uint32_t span, int lane) {
    const mr_span *s = &mr_trace_spans(p->trace)[span];
    const mr_lane *l = &p->lanes.items[lane];
    bool on_host = l->stream == MR_TRACE_NONE;
    int first = time_x(p, on_host ? s->call : s->begin), top = p->top[lane];
    int end = time_x(p, on_host ? s->returned : s->end);
    return (frame){first, end > first ? end : first + 1, top, top + mr_lane_rows(l) * BAR};
}

/* A white line is between the bar and its frame: in grey both may be equally dark. */
static void draw_frame(picture *p, frame f) {
    static const char *const lines[] = {" class=\"halo\"", ""};
    for (int i = 0; i < 2; i++) {
        int away = 1 + 2 * i;
        mr_sink_format(p->sink, "<rect%s x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\"/>",
                       lines[i], f.first - away, f.top - away, f.end - f.first + 2 * away,
                       f.bottom - f.top + 2 * away);
    }
}

/* No text but its name stands over a span that races. */
static void keep_frame_free(picture *p, uint32_t span) {
    int x, lane = place_of(p, span, &x);
    if (lane < 0) return;
    frame f = frame_of(p, span, lane);
    for (int row = 9; row < f.bottom - f.top; row += 12)
        keep_free(p, &(mr_label){(f.first + f.end) / 2.0, f.end - f.first + 2 * HALO, f.top + row});
}

static void keep_frames_free(picture *p) {
    size_t count = mr_trace_hazard_count(p->trace);
    for (size_t i = 0; i < count && i < MOST_ARROWS; i++) {
        keep_frame_free(p, mr_trace_hazard_at(p->trace, i)->first);
        keep_frame_free(p, mr_trace_hazard_at(p->trace, i)->second);
    }
}

/* The name of a span that races, unless its bar has it: on the side where the edge is not, or else on the other one.
 * Where no place is free there is none; the list of hazards has it, too. */
static void name_span(picture *p, uint32_t span, int lane, bool above) {
    const char *name = mr_trace_spans(p->trace)[span].name;
    for (size_t i = 0; i < p->named.count; i++)
        if (p->named.items[i] == span) return;
    if (!mr_vec_push(&p->named, span)) p->sink->failed = true;
    frame f = frame_of(p, span, lane);
    mr_label label = {(f.first + f.end) / 2.0, width_of(name, BOLD), 0};
    for (int i = 0; i < 2; i++) {
        label.y = above == !i ? f.top - HALO - 6 : f.bottom + HALO + 10;
        if (!mr_labels_move(&p->labels, &label, REACH, MARGIN, WIDTH - MARGIN)) continue;
        put_label(p, &label, "n", name);
        return;
    }
}

/* Where an edge is, from its first point (0) to its last (1). */
static mr_label point_of_edge(const int x[4], const int y[4], double t) {
    double u = 1 - t, w[] = {u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t};
    double at_x = w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3];
    double at_y = w[0] * y[0] + w[1] * y[1] + w[2] * y[2] + w[3] * y[3];
    return (mr_label){at_x, 0, (int)at_y + 4};
}

/* The number of an edge stands on it: in the middle, or elsewhere if that place is not free. Beside an edge that is
 * narrower than two numbers, which one would cover. */
static void number_edge(picture *p, const int x[4], const int y[4], size_t number) {
    static const double shares[] = {0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8};
    char text[24];
    snprintf(text, sizeof text, "!%zu", number);
    mr_label label = {0}, middle = {0}, over_bar = {0};
    bool is_free = false, has_over_bar = false;
    double width = width_of(text, BOLD);
    double beside = abs(x[3] - x[0]) < 2 * width ? abs(x[3] - x[0]) / 2.0 + width / 2 + 5 : 0;
    for (size_t i = 0; i < sizeof shares / sizeof *shares && !is_free; i++) {
        label = point_of_edge(x, y, shares[i]);
        label.middle += beside;
        label.width = width;
        if (!i) middle = label;
        is_free = mr_labels_are_free(&p->labels, &label);
        if (!is_free || mr_labels_are_free(&p->bars, &label)) continue;
        if (!has_over_bar) over_bar = label;
        has_over_bar = true;
        is_free = false;
    }
    if (!is_free && has_over_bar) label = over_bar;
    else if (!is_free) {
        label = middle;
        mr_labels_move(&p->labels, &label, REACH, p->axis.first, WIDTH - MARGIN);
    }
    put_label(p, &label, "n", text);
}

static void title_hazard(picture *p, const mr_trace_hazard *hazard) {
    mr_sink_text(p->sink, "<title>");
    mr_sink_xml(p->sink, hazard->message ? hazard->message : hazard->kind);
    mr_sink_text(p->sink, "</title>");
}

/* Threads of one launch race: no edge between launches is missing. */
static void draw_race_inside(picture *p, const mr_trace_hazard *hazard, frame f, size_t number) {
    mr_sink_text(p->sink, "<g class=\"hazard\">");
    draw_frame(p, f);
    title_hazard(p, hazard);
    char text[24];
    snprintf(text, sizeof text, "!%zu", number);
    mr_label label = {(f.first + f.end) / 2.0, width_of(text, BOLD), f.bottom + HALO + 10};
    if (number <= MOST_LISTED &&
        mr_labels_move(&p->labels, &label, REACH, p->axis.first, WIDTH - MARGIN))
        put_label(p, &label, "n", text);
    mr_sink_text(p->sink, "</g>\n");
    p->has_race_inside = true;
}

/* The two accesses in frames, and between them the edge that is missing, with the number of its line in the list. */
static void draw_hazard(picture *p, const mr_trace_hazard *hazard, size_t number) {
    int start, end, from = place_of(p, hazard->first, &start),
                    to = place_of(p, hazard->second, &end);
    if (from < 0 || to < 0) return;
    int first_y = edge_y(p, from, to >= from), last_y = edge_y(p, to, to <= from);
    int bend = to >= from ? SPACE : -SPACE;
    if (hazard->first == hazard->second) {
        draw_race_inside(p, hazard, frame_of(p, hazard->first, from), number);
        return;
    }
    int x[] = {start, start, end, end};
    int y[] = {first_y, first_y + bend, last_y + (to == from ? bend : -bend), last_y};
    mr_sink_text(p->sink, "<g class=\"hazard\">");
    draw_frame(p, frame_of(p, hazard->first, from));
    draw_frame(p, frame_of(p, hazard->second, to));
    mr_sink_format(p->sink,
                   "<circle cx=\"%d\" cy=\"%d\" r=\"3\"/><circle cx=\"%d\" cy=\"%d\" r=\"3\"/>"
                   "<path d=\"M%d %dC%d %d %d %d %d %d\"/>",
                   x[0], y[0], x[3], y[3], x[0], y[0], x[1], y[1], x[2], y[2], x[3], y[3]);
    title_hazard(p, hazard);
    if (number <= MOST_LISTED) number_edge(p, x, y, number);
    for (int i = 0; i <= EDGE_POINTS; i++)
        if (!mr_vec_push(&p->edges, point_of_edge(x, y, (double)i / EDGE_POINTS)))
            p->sink->failed = true;
    mr_sink_text(p->sink, "</g>\n");
    p->has_hazard = true;
}

/* The numbers first: they have less room to move than the names. */
static void draw_hazards(picture *p) {
    size_t count = mr_trace_hazard_count(p->trace);
    for (size_t i = 0; i < count && i < MOST_ARROWS; i++)
        draw_hazard(p, mr_trace_hazard_at(p->trace, i), i + 1);
    for (size_t i = 0; i < count && i < MOST_LISTED; i++) {
        const mr_trace_hazard *hazard = mr_trace_hazard_at(p->trace, i);
        int x, from = place_of(p, hazard->first, &x), to = place_of(p, hazard->second, &x);
        if (from < 0 || to < 0) continue;
        name_span(p, hazard->first, from, to >= from);
        name_span(p, hazard->second, to, to < from);
    }
}

/* Names below bars that have no room for them: all that find their place free, unless there are many. */
static void name_beside(picture *p) {
    for (size_t i = 0; i < p->nameless.count && p->nameless.count <= MOST_BESIDE; i++) {
        const nameless_bar *bar = &p->nameless.items[i];
        const char *name = mr_trace_spans(p->trace)[bar->span].name;
        mr_label label = {bar->middle, width_of(name, SMALL), bar->y};
        bool is_named = false;
        for (size_t k = 0; k < p->named.count; k++) is_named |= p->named.items[k] == bar->span;
        bool is_inside = label.middle + label.width / 2 <= WIDTH - MARGIN;
        if (!is_named && is_inside && mr_labels_are_free(&p->labels, &label) &&
            mr_labels_are_free(&p->edges, &label))
            put_label(p, &label, "s", name);
    }
}

/* ---- below the lanes */

static void put_side(mr_buffer *text, const mr_trace *trace, uint32_t span) {
    if (span == MR_TRACE_NONE) {
        mr_buffer_puts(text, "work before this");
        return;
    }
    const mr_span *s = &mr_trace_spans(trace)[span];
    mr_buffer place = {0};
    mr_trace_put_place(&place, trace, s->where);
    mr_buffer_puts(text, s->name);
    if (place.size) mr_buffer_printf(text, " (%s)", place.data);
    if (place.failed) text->failed = true;
    mr_buffer_free(&place);
}

/* The lines to which the numbers in the picture belong. */
static void list_hazards(picture *p, int y) {
    size_t count = mr_trace_hazard_count(p->trace);
    for (size_t i = 0; i < count && i <= MOST_LISTED; i++, y += ROW) {
        const mr_trace_hazard *hazard = mr_trace_hazard_at(p->trace, i);
        mr_buffer text = {0};
        if (i == MOST_LISTED) mr_buffer_printf(&text, "and %zu more", count - i);
        else {
            mr_buffer_printf(&text, "!%zu  %s: ", i + 1, hazard->kind);
            bool is_inside = hazard->first == hazard->second && hazard->first != MR_TRACE_NONE;
            if (is_inside) mr_buffer_puts(&text, "threads of ");
            put_side(&text, p->trace, hazard->first);
            if (!is_inside) {
                mr_buffer_puts(&text, " and ");
                put_side(&text, p->trace, hazard->second);
            }
            if (hazard->fix) mr_buffer_puts(&text, "; missing: ");
            if (hazard->fix) mr_trace_put_fix(&text, hazard->fix);
        }
        if (text.failed) p->sink->failed = true;
        else put_cut(p, MARGIN, y, "l", text.data, WIDTH - 2 * MARGIN);
        mr_buffer_free(&text);
    }
}

typedef struct {
    int x, y;
} place;

/* Moves to the place of the next entry, whose mark is so wide. Returns where the mark is. */
static place next_entry(place *at, int mark, const char *text) {
    int width = mark + 22 + (int)(LETTER * (double)strlen(text));
    if (at->x > MARGIN && at->x + width > WIDTH - MARGIN) *at = (place){MARGIN, at->y + ROW};
    place here = *at;
    at->x += width;
    return here;
}

static void explain_path(picture *p, place *at, const char *class_name, const char *text) {
    place mark = next_entry(at, 30, text);
    bool is_hazard = strcmp(class_name, "hazard") == 0;
    mr_sink_format(p->sink, "<g class=\"%s\"><path class=\"%s\" d=\"M%d %dh26\"/></g>", class_name,
                   is_hazard ? "" : class_name, mark.x, mark.y - 4);
    put_text(p, mark.x + 34, mark.y, "d", text);
}

static void draw_share(picture *p, place mark) {
    mr_sink_format(p->sink,
                   "<g class=\"kernel\"><rect x=\"%d\" y=\"%d\" width=\"20\" height=\"12\" "
                   "fill-opacity=\"%.2f\"/><rect x=\"%d\" y=\"%d\" width=\"20\" height=\"4\"/></g>",
                   mark.x, mark.y - 10, PALE, mark.x, mark.y - 2);
}

static void draw_small_frame(picture *p, place mark) {
    mr_sink_format(p->sink,
                   "<g class=\"hazard\"><rect x=\"%d\" y=\"%d\" width=\"18\" height=\"10\" "
                   "rx=\"2\"/></g>",
                   mark.x + 1, mark.y - 9);
}

static void explain(picture *p, place *at, void (*draw)(picture *, place), const char *text) {
    place mark = next_entry(at, 24, text);
    draw(p, mark);
    put_text(p, mark.x + 26, mark.y, "d", text);
}

static void draw_legend(picture *p, int y) {
    place at = {MARGIN, y};
    for (int i = 0; i < MR_LOOK_COUNT; i++) {
        if (!p->looks[i]) continue;
        place mark = next_entry(&at, 24, mr_looks[i].legend);
        mr_sink_format(p->sink,
                       "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"20\" height=\"12\" rx=\"2\"/>",
                       mr_looks[i].word, mark.x, mark.y - 10);
        put_text(p, mark.x + 26, mark.y, "d", mr_looks[i].legend);
    }
    if (p->has_share) explain(p, &at, draw_share, "several short ones: as high as they are busy");
    if (p->has_gap) explain_path(p, &at, "gap", "the stream waits");
    if (p->has_arrow) explain_path(p, &at, "arrow", "from a record to the wait for it");
    if (p->has_hazard)
        explain_path(p, &at, "hazard",
                     "!1 a race: nothing orders the two in frames; this edge is missing");
    if (p->has_race_inside)
        explain(p, &at, draw_small_frame,
                "!1 a race: nothing orders the threads of the launch in the frame");
    list_hazards(p, at.y + ROW);
}

/* ---- the whole */

static mr_status picture_open(picture *p, const mr_trace *trace, mr_sink *sink, uint64_t duration,
                              int top) {
    *p = (picture){.trace = trace, .sink = sink};
    p->axis = (mr_axis){MARGIN + LABEL, PLOT, duration ? duration : 1};
    MR_TRY(mr_lanes_create(trace, &p->lanes));
    p->top = calloc(p->lanes.count, sizeof *p->top);
    if (!p->top) return mr_no_memory("to draw a trace");
    place_lanes(p, top);
    return MR_OK;
}

static void picture_close(picture *p) {
    mr_lanes_destroy(&p->lanes);
    free(p->top);
    mr_vec_free(&p->labels);
    mr_vec_free(&p->named);
    mr_vec_free(&p->nameless);
    mr_vec_free(&p->bars);
    mr_vec_free(&p->edges);
}

/* Below the lowest lane, for the names of spans that race. */
static int names_room(const picture *p) {
    return mr_trace_hazard_count(p->trace) ? ROW : 0;
}

static mr_status draw(picture *p, const char *label, int top) {
    draw_title(p, label, top);
    draw_axis(p, top);
    keep_frames_free(p);
    for (size_t i = 0; i < p->lanes.count; i++) MR_TRY(draw_lane(p, &p->lanes.items[i], p->top[i]));
    draw_arrows(p);
    draw_hazards(p);
    name_beside(p);
    draw_legend(p, p->bottom + 32 + names_room(p));
    return MR_OK;
}

static void draw_textures(mr_sink *sink) {
    for (size_t i = 0; i < sizeof textures / sizeof *textures; i++)
        mr_sink_format(
            sink,
            "<pattern id=\"%s\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect "
            "width=\"8\" height=\"8\" fill=\"%s\"/><path d=\"%s\" stroke=\"#fff\" "
            "stroke-width=\"1.5\" fill=\"none\"/></pattern>\n",
            textures[i].word, textures[i].color, textures[i].lines);
}

mr_status mr_write_svg(const mr_writing *writing, mr_sink *sink) {
    const mr_trace *traces[] = {writing->before ? writing->before : writing->trace, writing->trace};
    static const char *const labels[] = {"before", "after"};
    int count = writing->before ? 2 : 1, top = 0;
    uint64_t duration = 0;
    picture pictures[2] = {0};
    mr_status status = MR_OK;
    for (int i = 0; i < count; i++)
        if (mr_trace_facts_of(traces[i])->duration > duration)
            duration = mr_trace_facts_of(traces[i])->duration;
    for (int i = 0; i < count && !status; i++) {
        status = picture_open(&pictures[i], traces[i], sink, duration, top);
        size_t hazards = mr_trace_hazard_count(traces[i]);
        if (status) break;
        top = pictures[i].bottom + FOOT + names_room(&pictures[i]) +
              ROW * (int)(hazards > MOST_LISTED ? MOST_LISTED + 1 : hazards);
    }
    if (!status) {
        mr_sink_format(
            sink,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\">\n<title>Timeline</title>\n<style>",
            WIDTH, top, WIDTH, top);
        mr_sink_text(sink, style);
        mr_sink_text(
            sink,
            "</style>\n<defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" "
            "refY=\"4\" orient=\"auto\"><path d=\"M1 1L7 4L1 7z\" "
            "fill=\"#475467\"/></marker>\n");
        draw_textures(sink);
        mr_sink_format(sink, "</defs>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH,
                       top);
    }
    for (int i = 0; i < count && !status; i++)
        status = draw(&pictures[i], count > 1 ? labels[i] : NULL, pictures[i].top[0] - HEAD);
    mr_sink_text(sink, "</svg>\n");
    for (int i = 0; i < count; i++) picture_close(&pictures[i]);
    return status;
}
