/* Cells of a terminal: see grid.h. */
#include "trace/grid.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROWS 16

void mr_grid_open(mr_grid *grid, int width, bool ascii, bool color) {
    *grid = (mr_grid){.width = width, .ascii = ascii, .color = color};
}

void mr_grid_close(mr_grid *grid) {
    free(grid->cells);
    grid->cells = NULL;
}

int mr_grid_row(mr_grid *grid) {
    if (grid->rows == grid->row_capacity && !grid->failed) {
        int wanted = grid->row_capacity ? 2 * grid->row_capacity : FIRST_ROWS;
        mr_grid_cell *grown =
            realloc(grid->cells, (size_t)wanted * (size_t)grid->width * sizeof *grown);
        if (grown) {
            grid->cells = grown;
            grid->row_capacity = wanted;
        } else grid->failed = true;
    }
    if (grid->failed) return 0;
    mr_grid_cell *row = grid->cells + (size_t)grid->rows * (size_t)grid->width;
    for (int i = 0; i < grid->width; i++) row[i] = (mr_grid_cell){" ", -1, -1, false, false};
    return grid->rows++;
}

/* NULL outside the page, as after memory ran out. */
static mr_grid_cell *cell_at(const mr_grid *grid, int row, int column) {
    if (row >= grid->rows || column < 0 || column >= grid->width) return NULL;
    return &grid->cells[(size_t)row * (size_t)grid->width + (size_t)column];
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

/* Length of the character at `text`, which is valid UTF-8; sets how many columns it takes. */
static int next_character(const char *text, int *out_columns) {
    static const uint32_t wide[][2] = {
        {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xac00, 0xd7a3},
        {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
        {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
    };
    static const uint32_t narrow[][2] = {
        {0x300, 0x36f}, {0x200b, 0x200f}, {0x202a, 0x202e}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};
    unsigned char first = (unsigned char)*text;
    int length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t code = length == 1 ? first : first & (0x7fu >> length);
    for (int i = 1; i < length; i++) code = code << 6 | ((unsigned char)text[i] & 0x3f);
    *out_columns = 1;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (code >= wide[i][0] && code <= wide[i][1]) *out_columns = 2;
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (code >= narrow[i][0] && code <= narrow[i][1]) *out_columns = 0;
    return length;
}

int mr_grid_text_width(const mr_grid *grid, const char *text) {
    int width = 0, columns;
    for (; *text; width += grid->ascii && columns ? 1 : columns)
        text += next_character(text, &columns);
    return width;
}

int mr_grid_text(mr_grid *grid, int row, int column, int end, const char *text, mr_style style) {
    while (*text) {
        int columns, length = next_character(text, &columns);
        char glyph[5] = "";
        memcpy(glyph, text, (size_t)length);
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
