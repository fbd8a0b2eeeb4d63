/* Texts of a picture, and where a time stands in it. */
#include "trace/picture/svg.h"

#include <stdlib.h>
#include <string.h>

#include "base/columns.h"

int svg_time_x(const svg_picture *p, uint64_t time) {
    return mr_axis_place(&p->axis, time);
}

void svg_put_text(svg_picture *p, double x, int y, const char *class_name, const char *text) {
    mr_sink_format(p->sink, "<text x=\"%.1f\" y=\"%d\" class=\"%s\">", x, y, class_name);
    mr_sink_xml(p->sink, text);
    mr_sink_text(p->sink, "</text>\n");
}

double svg_width_of(const char *text, double letter) {
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

void svg_put_cut(svg_picture *p, int x, int y, const char *class_name, const char *text, int room) {
    if (svg_width_of(text, LETTER) <= room) {
        svg_put_text(p, x, y, class_name, text);
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

void svg_keep_free(svg_picture *p, const mr_label *label) {
    if (!mr_vec_push(&p->labels, *label)) p->sink->failed = true;
}

void svg_put_label(svg_picture *p, const mr_label *label, const char *class_name,
                   const char *text) {
    svg_put_text(p, label->middle, label->y, class_name, text);
    svg_keep_free(p, label);
}
