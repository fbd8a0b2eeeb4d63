/* A picture of a trace, for slides and documents: lanes, bars with names, arrows from records to waits, hazards. It
 * needs no script and no font of its own. Bars that share a pixel are one rectangle, so that a long trace is a small
 * file, too. */
#include "trace/formats.h"

#include <stdlib.h>

#include "trace/bars.h"

#define WIDTH       1200
#define MARGIN      16
#define LABEL       150
#define PLOT        (WIDTH - LABEL - 2 * MARGIN)
#define BAR         26 /* height of a bar, and of the space between two lanes */
#define SPACE       18
#define HEAD        64 /* title and axis */
#define ROW         20 /* of the legend, and of the list of hazards */
#define FOOT        (2 * ROW + 20)
#define MOST_LISTED 8
#define LETTER      6.7 /* width of a letter in a bar */
#define MOST_ARROWS 1000

// clang-format off
static const char style[] =
    "text{font:12px system-ui,sans-serif;fill:#1d2330}.t{font-size:16px;font-weight:600}.d{fill:#667085}"
    ".b{font-family:ui-monospace,monospace;font-size:11px;fill:#fff;text-anchor:middle;stroke:#1d2330;stroke-width:2px;"
    "paint-order:stroke}"
    ".grid{stroke:#e4e7ec}.lane{fill:#f5f6f9}.gap{stroke:#98a2b3;stroke-dasharray:2 4;fill:none}"
    ".arrow{stroke:#475467;fill:none;marker-end:url(#tip)}"
    ".hazard path,.hazard rect{stroke:#d92d50;stroke-width:2;fill:none;stroke-dasharray:5 3}.hazard circle{fill:#d92d50}"
    ".hazard rect{stroke-dasharray:none;stroke-width:3}"
    ".n{font-weight:600;text-anchor:middle;stroke:#fff;stroke-width:4px;paint-order:stroke}"
    ".kernel{fill:#3f6fd8}.host-wait{fill:#e4e7ec}.host-call{fill:#98a2b3}.copy-in{fill:url(#copy-in)}"
    ".copy-out{fill:url(#copy-out)}.copy-device{fill:url(#copy-device)}.copy-peer{fill:url(#copy-peer)}"
    ".host-function{fill:url(#host-function)}.host-work{fill:url(#host-work)}"
    ".host-wait+.b,.host-call+.b,.faint{fill:#1d2330;stroke:none}";

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

typedef struct {
    const mr_trace *trace;
    mr_sink *sink;
    mr_lanes lanes;
    mr_axis axis;
    int *top; /* of each lane */
    int bottom;
    bool looks[MR_LOOK_COUNT], has_gap, has_arrow, has_hazard; /* what the legend explains */
} picture;

static int time_x(const picture *p, uint64_t time) {
    return mr_axis_place(&p->axis, time);
}

static int lane_of_stream(const picture *p, uint32_t stream) {
    for (size_t i = 1; i < p->lanes.count; i++)
        if (p->lanes.items[i].stream == stream) return (int)i;
    return -1;
}

/* Where the lanes are, below `top`. */
static void place_lanes(picture *p, int top) {
    top += HEAD;
    for (size_t i = 0; i < p->lanes.count; i++) {
        p->top[i] = top;
        top += (i ? p->lanes.items[i].row_count : 1) * BAR + SPACE;
    }
    p->bottom = top - SPACE;
}

static void put_text(picture *p, double x, int y, const char *class_name, const char *text) {
    mr_sink_format(p->sink, "<text x=\"%.1f\" y=\"%d\" class=\"%s\">", x, y, class_name);
    mr_sink_xml(p->sink, text);
    mr_sink_text(p->sink, "</text>\n");
}

/* ---- head and axis */

static void draw_title(picture *p, const char *label, int top) {
    const mr_trace_facts *facts = mr_trace_facts_of(p->trace);
    mr_buffer text = {0};
    if (label) mr_buffer_printf(&text, "%s: ", label);
    mr_buffer_printf(&text, "%s · ", facts->script ? facts->script : "timeline");
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
        mr_sink_format(p->sink, "<path class=\"grid\" d=\"M%d.5 %dV%d\"/>", x, top + 58, p->bottom);
        mr_sink_format(p->sink, "<text x=\"%d\" y=\"%d\" class=\"d\">%.12g</text>\n", x, top + 52,
                       (double)t / (double)unit);
    }
}

/* ---- lanes */

static const mr_span *span_at(const picture *p, const mr_lane *lane, size_t i) {
    return &mr_trace_spans(p->trace)[lane->spans[i]];
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
    double width = cause.data ? LETTER * (double)cause.size : 0;
    mr_sink_text(p->sink, "</title></path>\n");
    if (width && width < bar->first - first)
        put_text(p, (first + bar->first - width) / 2, y + BAR / 2 - 4, "d", cause.data);
    mr_buffer_free(&cause);
}

static void draw_bar(picture *p, const mr_lane *lane, const mr_bar *bar, int y, bool touches_next) {
    mr_buffer name = {0}, place = {0}, time = {0};
    int eighths = mr_bar_coverage(bar, &p->axis);
    int width = bar->end - bar->first - (touches_next && bar->end - bar->first > 2);
    p->looks[bar->look] = true;
    mr_bar_put_name(&name, p->trace, lane, bar, false);
    mr_trace_put_place(&place, p->trace, span_at(p, lane, bar->index)->where);
    mr_trace_put_time(&time, bar->longest);
    if (name.failed || place.failed || time.failed) p->sink->failed = true;
    mr_sink_format(p->sink,
                   "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\" "
                   "fill-opacity=\"%.2f\"><title>",
                   mr_looks[bar->look].word, bar->first, y, width, BAR, width > 6 ? 3 : 0,
                   0.3 + 0.7 * eighths / 8);
    mr_sink_xml(p->sink, name.data ? name.data : "");
    mr_sink_format(p->sink, "\n%s%s%s</title></rect>\n", place.data ? place.data : "",
                   place.size ? ", " : "", time.data ? time.data : "");
    double room = LETTER * (name.data ? (double)name.size + 1 : 0);
    if (name.size && room < width)
        put_text(p, bar->first + width / 2.0, y + BAR / 2 + 4, eighths > 5 ? "b" : "b faint",
                 name.data);
    mr_buffer_free(&name);
    mr_buffer_free(&place);
    mr_buffer_free(&time);
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
    int rows = on_host ? 1 : lane->row_count;
    mr_sink_format(p->sink, "<rect class=\"lane\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                   p->axis.first, top, p->axis.width, rows * BAR);
    put_text(p, MARGIN, top + BAR / 2 + 4, "l", lane->label);
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
    int rows = lane ? p->lanes.items[lane].row_count : 1;
    return p->top[lane] + (bottom ? rows * BAR : 0);
}

static void draw_arrows(picture *p) {
    const mr_span *spans = mr_trace_spans(p->trace);
    int left = MOST_ARROWS;
    for (size_t i = 0; i < mr_trace_count(p->trace) && left; i++) {
        const mr_span *wait = &spans[i];
        if (wait->kind != MR_COMMAND_WAIT || !wait->ran || wait->record == MR_TRACE_NONE) continue;
        const mr_span *record = &spans[wait->record];
        int from = record->ran ? lane_of_stream(p, record->stream) : -1;
        int to = lane_of_stream(p, wait->stream);
        if (from < 0 || to < 0 || from == to) continue;
        bool down = to > from;
        int y = edge_y(p, from, down), end = edge_y(p, to, !down), bend = down ? 9 : -9;
        mr_sink_format(p->sink, "<path class=\"arrow\" d=\"M%d %dv%dL%d %dV%d\"/>\n",
                       time_x(p, record->end), y, bend, time_x(p, wait->end), y + bend, end);
        p->has_arrow = true;
        left--;
    }
}

/* The lane of a span that is drawn, and the middle of its bar; -1: it is not. */
static int place_of(const picture *p, uint32_t span, int *out_x) {
    if (span == MR_TRACE_NONE) return -1;
    const mr_span *s = &mr_trace_spans(p->trace)[span];
    int lane = s->stream == MR_TRACE_NONE ? 0 : lane_of_stream(p, s->stream);
    if (lane < 0 || (lane ? !s->ran : !s->called)) return -1;
    *out_x = lane ? (time_x(p, s->begin) + time_x(p, s->end)) / 2 : time_x(p, s->call);
    return lane;
}

/* A frame around the bar of a span that races, and its name on the side where the edge is not. */
static void draw_frame(picture *p, uint32_t span, int lane, bool name_above) {
    const mr_span *s = &mr_trace_spans(p->trace)[span];
    int height = (lane ? p->lanes.items[lane].row_count : 1) * BAR, top = p->top[lane];
    int first = time_x(p, lane ? s->begin : s->call), end = time_x(p, lane ? s->end : s->returned);
    if (end <= first) end = first + 1;
    mr_sink_format(p->sink, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\"/>",
                   first - 1, top - 1, end - first + 2, height + 2);
    put_text(p, (first + end) / 2.0, name_above ? top - 5 : top + height + 13, "n", s->name);
}

/* The two accesses in frames, and between them the edge that is missing, with the number of its line in the list. */
static void draw_hazards(picture *p) {
    for (size_t i = 0; i < mr_trace_hazard_count(p->trace) && i < MOST_ARROWS; i++) {
        const mr_trace_hazard *hazard = mr_trace_hazard_at(p->trace, i);
        int x, end_x, from = place_of(p, hazard->first, &x),
                      to = place_of(p, hazard->second, &end_x);
        if (from < 0 || to < 0) continue;
        int y = edge_y(p, from, to >= from), end_y = edge_y(p, to, to <= from);
        int bend = to >= from ? SPACE : -SPACE;
        mr_sink_text(p->sink, "<g class=\"hazard\">");
        draw_frame(p, hazard->first, from, to >= from);
        draw_frame(p, hazard->second, to, to < from);
        mr_sink_format(p->sink,
                       "<circle cx=\"%d\" cy=\"%d\" r=\"3\"/><circle cx=\"%d\" "
                       "cy=\"%d\" r=\"3\"/><path d=\"M%d %dC%d %d %d %d %d %d\"/><title>",
                       x, y, end_x, end_y, x, y, x, y + bend, end_x,
                       end_y + (to == from ? bend : -bend), end_x, end_y);
        mr_sink_xml(p->sink, hazard->message ? hazard->message : hazard->kind);
        mr_sink_text(p->sink, "</title>");
        if (i < MOST_LISTED)
            mr_sink_format(p->sink, "<text x=\"%d\" y=\"%d\" class=\"n\">!%zu</text>",
                           (x + end_x) / 2, (y + end_y) / 2 + 4 + (to == from ? bend / 2 : 0),
                           i + 1);
        mr_sink_text(p->sink, "</g>\n");
        p->has_hazard = true;
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
            put_side(&text, p->trace, hazard->first);
            mr_buffer_puts(&text, " and ");
            put_side(&text, p->trace, hazard->second);
            if (hazard->fix) mr_buffer_printf(&text, "; missing: %s", hazard->fix);
        }
        if (text.failed) p->sink->failed = true;
        else put_text(p, MARGIN, y, "l", text.data);
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
    if (p->has_gap) explain_path(p, &at, "gap", "the stream waits");
    if (p->has_arrow) explain_path(p, &at, "arrow", "from a record to the wait for it");
    if (p->has_hazard)
        explain_path(p, &at, "hazard",
                     "!1 a race: nothing orders the two in frames; this edge is missing");
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
}

static mr_status draw(picture *p, const char *label, int top) {
    draw_title(p, label, top);
    draw_axis(p, top);
    for (size_t i = 0; i < p->lanes.count; i++) MR_TRY(draw_lane(p, &p->lanes.items[i], p->top[i]));
    draw_arrows(p);
    draw_hazards(p);
    draw_legend(p, p->bottom + 26);
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
        top = pictures[i].bottom + FOOT +
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
