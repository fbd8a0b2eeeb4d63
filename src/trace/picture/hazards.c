/* Lines between two bars of a picture: arrows from records to waits, and the missing edges of hazards. */
#include "trace/picture/svg.h"

#include <stdlib.h>
#include <string.h>

#define BOLD        7.5 /* of one beside a frame */
#define REACH       150 /* the greatest distance of a name from its object */
#define MOST_ARROWS 1000
#define HALO        4 /* from a bar to the outside of its frame */
#define EDGE_POINTS 40
#define MOST_BESIDE 40  /* names that stand below their bars */
#define SMALL       6.7 /* width of a letter below a bar */

static int edge_y(const svg_picture *p, int lane, bool bottom) {
    return p->top[lane] + (bottom ? mr_lane_rows(&p->lanes.items[lane]) * BAR : 0);
}

void svg_draw_arrows(svg_picture *p) {
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
                       svg_time_x(p, record->end), y, bend, svg_time_x(p, wait->end), y + bend,
                       end);
        int first = svg_time_x(p, record->end), last = svg_time_x(p, wait->end);
        mr_label line = {(first + last) / 2.0, abs(last - first), y + bend + 4};
        if (!mr_vec_push(&p->edges, line)) p->sink->failed = true;
        p->has_arrow = true;
        left--;
    }
}

/* The lane of a span that is drawn, and the middle of its bar; -1: it is not. */
static int place_of(const svg_picture *p, uint32_t span, int *out_x) {
    if (span == MR_TRACE_NONE) return -1;
    const mr_span *s = &mr_trace_spans(p->trace)[span];
    bool on_host = s->stream == MR_TRACE_NONE;
    if (on_host ? !s->called : !s->ran) return -1;
    *out_x =
        on_host ? svg_time_x(p, s->call) : (svg_time_x(p, s->begin) + svg_time_x(p, s->end)) / 2;
    return on_host ? mr_lanes_host(&p->lanes, p->trace, s) : mr_lanes_stream(&p->lanes, s->stream);
}

typedef struct {
    int first, end, top, bottom;
} frame;

static frame frame_of(const svg_picture *p, uint32_t span, int lane) {
    const mr_span *s = &mr_trace_spans(p->trace)[span];
    const mr_lane *l = &p->lanes.items[lane];
    bool on_host = l->stream == MR_TRACE_NONE;
    int first = svg_time_x(p, on_host ? s->call : s->begin), top = p->top[lane];
    int end = svg_time_x(p, on_host ? s->returned : s->end);
    return (frame){first, end > first ? end : first + 1, top, top + mr_lane_rows(l) * BAR};
}

/* A white line is between the bar and its frame: in grey both may be equally dark. */
static void draw_frame(svg_picture *p, frame f) {
    static const char *const lines[] = {" class=\"halo\"", ""};
    for (int i = 0; i < 2; i++) {
        int away = 1 + 2 * i;
        mr_sink_format(p->sink, "<rect%s x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\"/>",
                       lines[i], f.first - away, f.top - away, f.end - f.first + 2 * away,
                       f.bottom - f.top + 2 * away);
    }
}

/* No text but its name stands over a span that races. */
static void keep_frame_free(svg_picture *p, uint32_t span) {
    int x, lane = place_of(p, span, &x);
    if (lane < 0) return;
    frame f = frame_of(p, span, lane);
    for (int row = 9; row < f.bottom - f.top; row += 12)
        svg_keep_free(
            p, &(mr_label){(f.first + f.end) / 2.0, f.end - f.first + 2 * HALO, f.top + row});
}

void svg_keep_frames_free(svg_picture *p) {
    size_t count = mr_trace_hazard_count(p->trace);
    for (size_t i = 0; i < count && i < MOST_ARROWS; i++) {
        keep_frame_free(p, mr_trace_hazard_at(p->trace, i)->first);
        keep_frame_free(p, mr_trace_hazard_at(p->trace, i)->second);
    }
}

/* The name of a span that races, unless its bar has it: on the side where the edge is not, or else on the other one.
 * Where no place is free there is none; the list of hazards has it, too. */
static void name_span(svg_picture *p, uint32_t span, int lane, bool above) {
    const char *name = mr_trace_spans(p->trace)[span].name;
    for (size_t i = 0; i < p->named.count; i++)
        if (p->named.items[i] == span) return;
    if (!mr_vec_push(&p->named, span)) p->sink->failed = true;
    frame f = frame_of(p, span, lane);
    mr_label label = {(f.first + f.end) / 2.0, svg_width_of(name, BOLD), 0};
    for (int i = 0; i < 2; i++) {
        label.y = above == !i ? f.top - HALO - 6 : f.bottom + HALO + 10;
        if (!mr_labels_move(&p->labels, &label, REACH, MARGIN, WIDTH - MARGIN)) continue;
        svg_put_label(p, &label, "n", name);
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
static void number_edge(svg_picture *p, const int x[4], const int y[4], size_t number) {
    static const double shares[] = {0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8};
    char text[24];
    snprintf(text, sizeof text, "!%zu", number);
    mr_label label = {0}, middle = {0}, over_bar = {0};
    bool is_free = false, has_over_bar = false;
    double width = svg_width_of(text, BOLD);
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
    svg_put_label(p, &label, "n", text);
}

static void title_hazard(svg_picture *p, const mr_trace_hazard *hazard) {
    mr_sink_text(p->sink, "<title>");
    mr_sink_xml(p->sink, hazard->message ? hazard->message : hazard->kind);
    mr_sink_text(p->sink, "</title>");
}

/* Threads of one launch race: no edge between launches is missing. */
static void draw_race_inside(svg_picture *p, const mr_trace_hazard *hazard, frame f,
                             size_t number) {
    mr_sink_text(p->sink, "<g class=\"hazard\">");
    draw_frame(p, f);
    title_hazard(p, hazard);
    char text[24];
    snprintf(text, sizeof text, "!%zu", number);
    mr_label label = {(f.first + f.end) / 2.0, svg_width_of(text, BOLD), f.bottom + HALO + 10};
    if (number <= MOST_LISTED &&
        mr_labels_move(&p->labels, &label, REACH, p->axis.first, WIDTH - MARGIN))
        svg_put_label(p, &label, "n", text);
    mr_sink_text(p->sink, "</g>\n");
    p->has_race_inside = true;
}

/* The two accesses in frames, and between them the edge that is missing, with the number of its line in the list. */
static void draw_hazard(svg_picture *p, const mr_trace_hazard *hazard, size_t number) {
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
void svg_draw_hazards(svg_picture *p) {
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

void svg_name_beside(svg_picture *p) {
    for (size_t i = 0; i < p->nameless.count && p->nameless.count <= MOST_BESIDE; i++) {
        const svg_nameless *bar = &p->nameless.items[i];
        const char *name = mr_trace_spans(p->trace)[bar->span].name;
        mr_label label = {bar->middle, svg_width_of(name, SMALL), bar->y};
        bool is_named = false;
        for (size_t k = 0; k < p->named.count; k++) is_named |= p->named.items[k] == bar->span;
        bool is_inside = label.middle + label.width / 2 <= WIDTH - MARGIN;
        if (!is_named && is_inside && mr_labels_are_free(&p->labels, &label) &&
            mr_labels_are_free(&p->edges, &label))
            svg_put_label(p, &label, "s", name);
    }
}
