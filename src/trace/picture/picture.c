/* A picture of a trace, for slides and documents: lanes, bars with names, arrows from records to waits, hazards. It
 * needs no script and no font of its own. Bars that share a pixel are one rectangle, so that a long trace is a small
 * file, too. */
#include "trace/picture/svg.h"

#include <stdlib.h>
#include <string.h>

#define LABEL 160
#define PLOT  (WIDTH - LABEL - 2 * MARGIN)
#define HEAD  64 /* title and axis */
#define FOOT  (2 * ROW + 26)

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

/* Patterns that distinguish kinds of bars in print, without colour: lines over the colour. Kernels, waits and calls
 * have none. */
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

/* Where the lanes are, below `top`. */
static void place_lanes(svg_picture *p, int top) {
    top += HEAD;
    for (size_t i = 0; i < p->lanes.count; i++) {
        p->top[i] = top;
        top += mr_lane_rows(&p->lanes.items[i]) * BAR + SPACE;
    }
    p->bottom = top - SPACE;
}

/* ---- head and axis */

static void draw_title(svg_picture *p, const char *label, int top) {
    const mr_trace_facts *facts = mr_trace_facts_of(p->trace);
    mr_buffer text = {0};
    if (label) mr_buffer_printf(&text, "%s: ", label);
    const char *script = mr_trace_title(p->trace);
    mr_buffer_printf(&text, "%s · ", script ? script : "timeline");
    if (facts->device) mr_buffer_printf(&text, "%s · ", facts->device);
    mr_trace_put_time(&text, facts->duration);
    if (text.failed) p->sink->failed = true;
    else svg_put_text(p, MARGIN, top + 26, "t", text.data);
    mr_buffer_free(&text);
}

static void draw_axis(svg_picture *p, int top) {
    uint64_t unit, step = mr_axis_step(p->axis.duration / 10 + 1);
    const char *unit_name = mr_axis_unit(p->axis.duration, &unit);
    svg_put_text(p, MARGIN, top + 52, "d", unit_name);
    for (uint64_t t = 0; t < p->axis.duration; t += step) {
        int x = svg_time_x(p, t);
        svg_keep_free(p, &(mr_label){x + 10, 40, top + 52});
        mr_sink_format(p->sink, "<path class=\"grid\" d=\"M%d.5 %dV%d\"/>", x, top + 58, p->bottom);
        mr_sink_format(p->sink, "<text x=\"%d\" y=\"%d\" class=\"d\">%.12g</text>\n", x, top + 52,
                       (double)t / (double)unit);
    }
}

/* ---- lanes */

static const mr_span *span_at(const svg_picture *p, const mr_lane *lane, size_t i) {
    return &mr_trace_spans(p->trace)[lane->spans[i]];
}

/* Why a stream waits, in the gap before a bar, where no frame of a race and no other text is. */
static void put_cause(svg_picture *p, const char *cause, int first, int end, int y) {
    double width = svg_width_of(cause, LETTER);
    mr_label label = {(first + end) / 2.0, width, y};
    if (width >= end - first || !mr_labels_move(&p->labels, &label, end - first, first, end))
        return;
    svg_put_text(p, label.middle - width / 2, y, "d", cause);
    svg_keep_free(p, &label);
}

static void draw_gap(svg_picture *p, const mr_lane *lane, const mr_bar *bar, int y) {
    mr_lane_gap gap = mr_lane_gap_before(p->trace, lane, bar->index);
    int first = svg_time_x(p, gap.begin);
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

static void draw_rect(svg_picture *p, const mr_bar *bar, int y, int width, double share) {
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
static void keep_nameless(svg_picture *p, const mr_lane *lane, const mr_bar *bar, int y,
                          int width) {
    if (bar->count > 1 || lane->stream == MR_TRACE_NONE) return;
    svg_nameless one = {lane->spans[bar->index], bar->first + width / 2.0, y + BAR + 12};
    if (!mr_vec_push(&p->nameless, one)) p->sink->failed = true;
}

/* The name in the bar, if it has room there. */
static void name_bar(svg_picture *p, const mr_lane *lane, const mr_bar *bar, int y, int width,
                     const char *name, double share) {
    double room = svg_width_of(name, LETTER);
    if (!*name) return;
    if (room + LETTER >= width) {
        keep_nameless(p, lane, bar, y, width);
        return;
    }
    svg_put_label(p, &(mr_label){bar->first + width / 2.0, room, y + BAR / 2 + 4},
                  share > 0.6 ? "b" : "b faint", name);
    bool is_its_lane = (span_at(p, lane, bar->index)->stream == MR_TRACE_NONE) ==
                       (lane->stream == MR_TRACE_NONE); /* not that of the host, which called it */
    if (bar->count == 1 && is_its_lane && !mr_vec_push(&p->named, lane->spans[bar->index]))
        p->sink->failed = true;
}

static void draw_bar(svg_picture *p, const mr_lane *lane, const mr_bar *bar, int y,
                     bool touches_next) {
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
static void draw_calls(svg_picture *p, const mr_lane *lane, int y) {
    int last = -1;
    mr_sink_text(p->sink, "<path class=\"host-call\" d=\"");
    for (size_t i = 0; i < lane->count; i++) {
        int x = svg_time_x(p, span_at(p, lane, i)->call);
        if (x == last || mr_lane_row_has(p->trace, lane, i, 0, &p->axis)) continue;
        mr_sink_format(p->sink, "M%d %dh1v%dh-1z", x, y + 5, BAR - 10);
        last = x;
        p->looks[MR_LOOK_HOST_CALL] = true;
    }
    mr_sink_text(p->sink, "\"/>\n");
}

static mr_status draw_lane(svg_picture *p, const mr_lane *lane, int top) {
    bool on_host = lane->stream == MR_TRACE_NONE;
    int rows = mr_lane_rows(lane);
    mr_sink_format(p->sink, "<rect class=\"lane\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                   p->axis.first, top, p->axis.width, rows * BAR);
    svg_put_cut(p, MARGIN, top + BAR / 2 + 4, "l", lane->label, LABEL - 8);
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

/* ---- the whole */

static mr_status picture_open(svg_picture *p, const mr_trace *trace, mr_sink *sink,
                              uint64_t duration, int top) {
    *p = (svg_picture){.trace = trace, .sink = sink};
    p->axis = (mr_axis){MARGIN + LABEL, PLOT, duration ? duration : 1};
    MR_TRY(mr_lanes_create(trace, &p->lanes));
    p->top = calloc(p->lanes.count, sizeof *p->top);
    if (!p->top) return mr_no_memory("to draw a trace");
    place_lanes(p, top);
    return MR_OK;
}

static void picture_close(svg_picture *p) {
    mr_lanes_destroy(&p->lanes);
    free(p->top);
    mr_vec_free(&p->labels);
    mr_vec_free(&p->named);
    mr_vec_free(&p->nameless);
    mr_vec_free(&p->bars);
    mr_vec_free(&p->edges);
}

/* Below the lowest lane, for the names of spans that race. */
static int names_room(const svg_picture *p) {
    return mr_trace_hazard_count(p->trace) ? ROW : 0;
}

static mr_status draw(svg_picture *p, const char *label, int top) {
    draw_title(p, label, top);
    draw_axis(p, top);
    svg_keep_frames_free(p);
    for (size_t i = 0; i < p->lanes.count; i++) MR_TRY(draw_lane(p, &p->lanes.items[i], p->top[i]));
    svg_draw_arrows(p);
    svg_draw_hazards(p);
    svg_name_beside(p);
    svg_draw_legend(p, p->bottom + 32 + names_room(p));
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
    svg_picture pictures[2] = {0};
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
