/* Shared by the files that draw a picture of a trace. picture.c draws head, lanes and the whole. hazards.c draws
 * arrows from records to waits, hazards, and names beside bars. legend.c draws what stands below the lanes. svg.c
 * writes texts. */
#ifndef MR_TRACE_SVG_H
#define MR_TRACE_SVG_H

#include "base/vec.h"
#include "trace/draw/bars.h"
#include "trace/draw/formats.h"
#include "trace/picture/labels.h"

#define WIDTH       1200
#define MARGIN      16
#define BAR         26 /* height of a bar, and of the space between two lanes */
#define SPACE       18
#define ROW         20 /* of the legend, and of the list of hazards */
#define MOST_LISTED 8
#define LETTER      6.7 /* width of a letter in a bar */
#define PALE        0.22

/* A bar of a stream that has no room for its name. */
typedef struct {
    uint32_t span;
    double middle;
    int y; /* of the base line below it */
} svg_nameless;

typedef struct {
    const mr_trace *trace;
    mr_sink *sink;
    mr_lanes lanes;
    mr_axis axis;
    int *top; /* of each lane */
    int bottom;
    bool looks[MR_LOOK_COUNT], has_gap, has_arrow, has_share, has_hazard,
        has_race_inside;    /* the signs that the legend explains */
    mr_labels labels;       /* the texts that others may not cover */
    MR_VEC(uint32_t) named; /* the spans whose names are written */
    MR_VEC(svg_nameless) nameless;
    mr_labels edges; /* places that names below bars may not cover: points of edges, and arrows */
    mr_labels bars;  /* places that numbers of edges do not cover if there is another place */
} svg_picture;

/* ---- svg.c */

int svg_time_x(const svg_picture *p, uint64_t time);
void svg_put_text(svg_picture *p, double x, int y, const char *class_name, const char *text);
double svg_width_of(const char *text, double letter);
/* With an ellipsis where it is wider than its room, and then as a whole in the tooltip. */
void svg_put_cut(svg_picture *p, int x, int y, const char *class_name, const char *text, int room);
/* Later texts do not cover that place. */
void svg_keep_free(svg_picture *p, const mr_label *label);
/* A text around its middle, which others do not cover. */
void svg_put_label(svg_picture *p, const mr_label *label, const char *class_name, const char *text);

/* ---- hazards.c */

void svg_draw_arrows(svg_picture *p);
/* Before the lanes are drawn: their texts do not cover frames. */
void svg_keep_frames_free(svg_picture *p);
void svg_draw_hazards(svg_picture *p);
/* Names below bars that have no room for them: all that find their place free, unless there are many. */
void svg_name_beside(svg_picture *p);

/* ---- legend.c */

/* Draws the meanings of the picture's signs, and the numbered hazards. */
void svg_draw_legend(svg_picture *p, int y);

#endif
