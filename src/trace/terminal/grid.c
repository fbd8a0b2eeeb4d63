/* Cells of a terminal: see grid.h. */
#include "trace/terminal/grid.h"

#include <stdlib.h>
#include <string.h>

#include "base/columns.h"

#define LONGEST 4 /* bytes of a character; a NUL is part of none */

void mr_grid_open(mr_grid *grid, int width, bool ascii, bool color) {
    *grid = (mr_grid){.width = width, .ascii = ascii, .color = color};
}

void mr_grid_close(mr_grid *grid) {
    mr_vec_free(&grid->cells);
}

int mr_grid_row(mr_grid *grid) {
    if (!mr_vec_reserve(&grid->cells, grid->width)) grid->failed = true;
    if (grid->failed) return 0;
    for (int i = 0; i < grid->width; i++)
        grid->cells.items[grid->cells.count++] = (mr_grid_cell){" ", -1, -1, false, false};
    return grid->rows++;
}

/* NULL outside the page, as after memory ran out. */
static mr_grid_cell *cell_at(const mr_grid *grid, int row, int column) {
    if (row >= grid->rows || column < 0 || column >= grid->width) return NULL;
    return &grid->cells.items[(size_t)row * (size_t)grid->width + (size_t)column];
}

void mr_grid_uncolor(mr_grid *grid, int row, int column) {
    mr_grid_cell *cell = cell_at(grid, row, column);
    if (cell) cell->back = -1;
}

static bool is_blank(const mr_grid_cell *cell) {
    return strcmp(cell->glyph, " ") == 0 && cell->back < 0;
}

bool mr_grid_is_free(const mr_grid *grid, int row, int first, int end) {
    for (int i = first; i < end; i++) {
        const mr_grid_cell *cell = cell_at(grid, row, i);
        if (!cell || !is_blank(cell)) return false;
    }
    return true;
}

bool mr_grid_row_is_empty(const mr_grid *grid, int row) {
    return mr_grid_is_free(grid, row, 0, grid->width);
}

void mr_grid_put(mr_grid *grid, int row, int column, const char *glyph, const char *ascii,
                 mr_style style) {
    mr_grid_cell *cell = cell_at(grid, row, column);
    if (!cell) return;
    strncpy(cell->glyph, grid->ascii ? ascii : glyph, sizeof cell->glyph - 1);
    cell->glyph[sizeof cell->glyph - 1] = '\0';
    cell->fore = style.fore;
    if (style.back >= 0) cell->back = style.back;
    cell->is_dim = style.is_dim;
    cell->is_bold = style.is_bold;
}

/* ---- text */

int mr_grid_text_width(const mr_grid *grid, const char *text) {
    int width = 0, columns;
    for (; *text; width += grid->ascii && columns ? 1 : columns)
        text += mr_columns_next(text, LONGEST, &columns);
    return width;
}

int mr_grid_text(mr_grid *grid, int row, int column, int end, const char *text, mr_style style) {
    while (*text) {
        int columns;
        size_t length = mr_columns_next(text, LONGEST, &columns);
        char glyph[5] = "";
        memcpy(glyph, text, length);
        text += length;
        if (!columns) continue; /* combines with others, or turns the direction of the line */
        if (grid->ascii) columns = 1;
        if (column + columns > end) break;
        mr_grid_put(grid, row, column, glyph, length == 1 ? glyph : "?", style);
        if (columns == 2) mr_grid_put(grid, row, column + 1, "", "", style);
        column += columns;
    }
    return column;
}

/* ---- output */

static bool looks_like(const mr_grid_cell *a, const mr_grid_cell *b) {
    return a->fore == b->fore && a->back == b->back && a->is_dim == b->is_dim &&
           a->is_bold == b->is_bold;
}

static void write_style(const mr_grid_cell *cell, FILE *out) {
    fputs("\033[0", out);
    if (cell->is_bold) fputs(";1", out);
    if (cell->is_dim) fputs(";2", out);
    if (cell->fore >= 0) fprintf(out, ";38;5;%d", cell->fore);
    if (cell->back >= 0) fprintf(out, ";48;5;%d", cell->back);
    fputs("m", out);
}

void mr_grid_write_row(const mr_grid *grid, int row, FILE *out) {
    static const mr_grid_cell plain = {" ", -1, -1, false, false};
    const mr_grid_cell *cells = cell_at(grid, row, 0), *last = &plain;
    int end = grid->width;
    if (!cells) return;
    while (end > 0 && is_blank(&cells[end - 1])) end--;
    for (int i = 0; i < end; i++) {
        if (grid->color && !looks_like(&cells[i], last)) write_style(&cells[i], out);
        last = &cells[i];
        fputs(cells[i].glyph, out);
    }
    if (grid->color && !looks_like(last, &plain)) fputs("\033[0m", out);
    fputs("\n", out);
}
