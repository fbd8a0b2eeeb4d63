/* The part below the lanes of a picture: the legend, and the numbered hazards. */
#include "trace/picture/svg.h"

#include <string.h>

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
static void list_hazards(svg_picture *p, int y) {
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
        else svg_put_cut(p, MARGIN, y, "l", text.data, WIDTH - 2 * MARGIN);
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

static void explain_path(svg_picture *p, place *at, const char *class_name, const char *text) {
    place mark = next_entry(at, 30, text);
    bool is_hazard = strcmp(class_name, "hazard") == 0;
    mr_sink_format(p->sink, "<g class=\"%s\"><path class=\"%s\" d=\"M%d %dh26\"/></g>", class_name,
                   is_hazard ? "" : class_name, mark.x, mark.y - 4);
    svg_put_text(p, mark.x + 34, mark.y, "d", text);
}

static void draw_share(svg_picture *p, place mark) {
    mr_sink_format(p->sink,
                   "<g class=\"kernel\"><rect x=\"%d\" y=\"%d\" width=\"20\" height=\"12\" "
                   "fill-opacity=\"%.2f\"/><rect x=\"%d\" y=\"%d\" width=\"20\" height=\"4\"/></g>",
                   mark.x, mark.y - 10, PALE, mark.x, mark.y - 2);
}

static void draw_small_frame(svg_picture *p, place mark) {
    mr_sink_format(p->sink,
                   "<g class=\"hazard\"><rect x=\"%d\" y=\"%d\" width=\"18\" height=\"10\" "
                   "rx=\"2\"/></g>",
                   mark.x + 1, mark.y - 9);
}

static void explain(svg_picture *p, place *at, void (*draw)(svg_picture *, place),
                    const char *text) {
    place mark = next_entry(at, 24, text);
    draw(p, mark);
    svg_put_text(p, mark.x + 26, mark.y, "d", text);
}

void svg_draw_legend(svg_picture *p, int y) {
    place at = {MARGIN, y};
    for (int i = 0; i < MR_LOOK_COUNT; i++) {
        if (!p->looks[i]) continue;
        place mark = next_entry(&at, 24, mr_looks[i].legend);
        mr_sink_format(p->sink,
                       "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"20\" height=\"12\" rx=\"2\"/>",
                       mr_looks[i].word, mark.x, mark.y - 10);
        svg_put_text(p, mark.x + 26, mark.y, "d", mr_looks[i].legend);
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
