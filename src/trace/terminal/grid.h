/* A page of character cells, as wide as a terminal: text and bars are put at columns, and rows are written out with as
 * few escape sequences as they need. A character outside ASCII is never put where only ASCII is wanted. */
#ifndef MR_TRACE_GRID_H
#define MR_TRACE_GRID_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/vec.h"

typedef struct {
    char glyph[5]; /* one character; "": the second column of a wide one; of a fresh row: a blank */
    short back, fore; /* colours of 256, or -1 */
    bool is_dim, is_bold;
} mr_grid_cell;

typedef struct {
    short fore, back;
    bool is_dim, is_bold;
} mr_style;

#define MR_STYLE_PLAIN ((mr_style){-1, -1, false, false})
#define MR_STYLE_DIM   ((mr_style){-1, -1, true, false})

typedef struct {
    MR_VEC(mr_grid_cell) cells; /* rows of `width` */
    int width, rows;
    bool ascii, color;
    bool failed; /* memory ran out */
} mr_grid;

void mr_grid_open(mr_grid *grid, int width, bool ascii, bool color);
void mr_grid_close(mr_grid *grid);
int mr_grid_row(mr_grid *grid); /* adds an empty row */
bool mr_grid_row_is_empty(const mr_grid *grid, int row);
bool mr_grid_is_free(const mr_grid *grid, int row, int first,
                     int end); /* blank from first to before end */

/* The cell keeps its character and loses the colour behind it. */
void mr_grid_uncolor(mr_grid *grid, int row, int column);
/* One character; `ascii` is used instead where the grid is ASCII. */
void mr_grid_put(mr_grid *grid, int row, int column, const char *glyph, const char *ascii,
                 mr_style style);
/* Printable UTF-8 (base/text.h), cut at `end`; the column after it. A style of back -1 keeps the cell's own. */
int mr_grid_text(mr_grid *grid, int row, int column, int end, const char *text, mr_style style);
int mr_grid_text_width(const mr_grid *grid, const char *text);

void mr_grid_write_row(const mr_grid *grid, int row, FILE *out);

#endif
