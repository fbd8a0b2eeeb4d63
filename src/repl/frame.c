/* Draws the typed text: see frame.h.
 *
 * Readline's own display knows no colours in the text, and writes rows that have left the screen. So the edited text is
 * drawn here, as rows of at most the terminal's width. A row that goes on in the next one is written together with it.
 * So the terminal, too, takes both for one line, when text is copied and when the width changes. */
#include "repl/frame.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/columns.h"
#include "base/vec.h"
#include "repl/colour.h"

typedef struct {
    size_t from, to; /* in `text` */
    int columns;
    bool goes_on; /* in the next row, as it was too long */
} row;

typedef struct {
    mr_buffer text;
    MR_VEC(row) rows;
    size_t cursor_row; /* of all rows */
    int cursor_column;
    size_t top, shown; /* the rows on the screen */
} picture;

/* `now` is on the screen; `next` is made. */
static picture pictures[2], *now = &pictures[0], *next = &pictures[1];

/* ---- making the rows */

typedef struct {
    picture *p;
    int width, column;
    mr_colour colour;
    bool has_colours;
} writer;

static void begin_row(writer *pen) {
    picture *p = pen->p;
    if (!mr_vec_push(&p->rows, ((row){.from = p->text.size})))
        return; /* the last row becomes longer than the screen is wide */
    pen->column = 0;
}

static void set_colour(writer *pen, mr_colour colour) {
    if (!pen->has_colours || pen->colour == colour) return;
    if (pen->colour != MR_COLOUR_PLAIN) mr_buffer_puts(&pen->p->text, "\033[0m");
    mr_buffer_puts(&pen->p->text, mr_colour_code(colour));
    pen->colour = colour;
}

static void end_row(writer *pen, bool goes_on) {
    mr_colour colour = pen->colour;
    set_colour(pen, MR_COLOUR_PLAIN);
    row *last = &pen->p->rows.items[pen->p->rows.count - 1];
    last->to = pen->p->text.size;
    last->columns = pen->column;
    last->goes_on = goes_on;
    begin_row(pen);
    set_colour(pen, colour);
}

static void put(writer *pen, const char *bytes, size_t size, int columns) {
    if (pen->column + columns > pen->width && pen->column) end_row(pen, true);
    mr_buffer_add(&pen->p->text, bytes, size);
    pen->column += columns;
}

static void put_character(writer *pen, const char *text, size_t size, int columns) {
    char shown[2] = {'^', 0};
    unsigned char c = (unsigned char)*text;
    if (c == '\t') {
        int to = (pen->column / 8 + 1) * 8;
        put(pen, " ", 1, 1);
        while (pen->column < to && pen->column < pen->width) put(pen, " ", 1, 1);
    } else if (c < ' ' || c == 0x7F) {
        shown[1] = (char)(c ^ 0x40);
        put(pen, shown, 2, 2);
    } else {
        put(pen, text, size, columns);
    }
}

/* Codes between \001 and \002 and codes of colours elsewhere take no room. */
static void put_plain(writer *pen, const char *text) {
    size_t left = strlen(text);
    while (left) {
        int columns;
        const char *end = *text == '\001' ? memchr(text, '\002', left) : NULL;
        size_t size = end ? (size_t)(end - text) + 1 : mr_columns_next(text, left, &columns);
        if (end) mr_buffer_add(&pen->p->text, text + 1, size - 2);
        else if (*text == '\n') end_row(pen, false);
        else put_character(pen, text, size, columns);
        text += size;
        left -= size;
    }
}

static void note_cursor(writer *pen) {
    if (pen->column == pen->width) end_row(pen, true);
    pen->p->cursor_row = pen->p->rows.count - 1;
    pen->p->cursor_column = pen->column;
}

static void put_text(writer *pen, const mr_frame *frame) {
    for (size_t at = 0, size; at < frame->size; at += size) {
        int columns;
        size = mr_columns_next(frame->text + at, frame->size - at, &columns);
        if (at <= frame->point && frame->point < at + size) {
            /* a wide character that does not fit goes to the next row, and the cursor with it */
            if (pen->column + columns > pen->width && frame->text[at] != '\n') end_row(pen, true);
            note_cursor(pen);
        }
        if (frame->colours) set_colour(pen, (mr_colour)frame->colours[at]);
        if (frame->text[at] == '\n') end_row(pen, false);
        else put_character(pen, frame->text + at, size, columns);
    }
    set_colour(pen, MR_COLOUR_PLAIN);
    if (frame->point >= frame->size) note_cursor(pen);
}

/* In the last row, one column stays free. */
static void put_hint(writer *pen, const char *hint) {
    int room = pen->width - pen->column - 1;
    if (room < 8) return;
    set_colour(pen, MR_COLOUR_HINT);
    for (size_t left = strlen(hint), size; left; hint += size, left -= size) {
        int columns;
        size = mr_columns_next(hint, left, &columns);
        if ((unsigned char)*hint < ' ') break;
        if (columns > room - (size < left ? 2 : 0)) {
            put(pen, "..", 2, 2);
            break;
        }
        put(pen, hint, size, columns);
        room -= columns;
    }
    set_colour(pen, MR_COLOUR_PLAIN);
}

static bool make(picture *p, const mr_frame *frame) {
    writer pen = {.p = p,
                  .width = frame->columns > 1 ? frame->columns : 80,
                  .has_colours = frame->colours != NULL};
    p->text.size = 0;
    p->rows.count = 0;
    begin_row(&pen);
    if (!p->rows.count) return false;
    if (frame->above && *frame->above) {
        put_plain(&pen, frame->above);
        if (pen.column) end_row(&pen, false);
    }
    put_plain(&pen, frame->prompt);
    put_text(&pen, frame);
    if (frame->hint) put_hint(&pen, frame->hint);
    p->rows.items[p->rows.count - 1].to = p->text.size;
    p->rows.items[p->rows.count - 1].columns = pen.column;
    p->rows.items[p->rows.count - 1].goes_on = false;
    return !p->text.failed;
}

/* ---- writing */

static mr_buffer out;

static void flush(void) {
    if (out.data && !out.failed) fwrite(out.data, 1, out.size, stdout);
    fflush(stdout);
    out.size = 0;
}

static void move_rows(size_t from, size_t to) {
    if (to < from) mr_buffer_printf(&out, "\033[%zuA", from - to);
    if (to > from) mr_buffer_printf(&out, "\033[%zuB", to - from);
}

static void move_to_column(int column) {
    mr_buffer_puts(&out, "\r");
    if (column) mr_buffer_printf(&out, "\033[%dC", column);
}

/* Rows of the screen, from the first of the picture. */
static size_t cursor_of(const picture *p) {
    return p->cursor_row - p->top;
}

static bool is_same(const picture *a, size_t i, const picture *b, size_t k) {
    const row *x = &a->rows.items[i], *y = &b->rows.items[k];
    size_t size = x->to - x->from;
    return size == y->to - y->from && x->goes_on == y->goes_on &&
           (!size || memcmp(a->text.data + x->from, b->text.data + y->from, size) == 0);
}

static void write_row(const picture *p, size_t i, int width) {
    mr_buffer_add(&out, p->text.data + p->rows.items[i].from,
                  p->rows.items[i].to - p->rows.items[i].from);
    if (p->rows.items[i].columns < width) mr_buffer_puts(&out, "\033[K");
}

/* The part of the picture that the screen has room for. */
static void choose_part(picture *p, size_t rows) {
    p->shown = p->rows.count < rows ? p->rows.count : rows;
    p->top = now->rows.count ? now->top : 0;
    if (p->top + p->shown > p->rows.count) p->top = p->rows.count - p->shown;
    if (p->cursor_row < p->top) p->top = p->cursor_row;
    if (p->cursor_row >= p->top + p->shown) p->top = p->cursor_row - p->shown + 1;
}

/* Writes the rows of `next` that `now` has not. Returns the row of the screen that the cursor is in. */
static size_t write_rows(int width) {
    size_t at = now->rows.count ? cursor_of(now) : 0, there = now->rows.count ? now->shown : 1;
    bool wraps = false; /* the row before was just written, and goes on */
    for (size_t i = 0; i < next->shown; i++) {
        const row *r = &next->rows.items[next->top + i];
        bool is_there =
            now->rows.count && i < now->shown && is_same(now, now->top + i, next, next->top + i);
        bool joins = wraps && r->columns > 0 && i >= there;
        wraps = false;
        if (is_there && !(r->goes_on && i + 1 == there)) continue;
        if (joins) {
            there++;
        } else if (i < there) {
            move_rows(at, i);
            mr_buffer_puts(&out, "\r");
        } else {
            move_rows(at, there - 1);
            mr_buffer_puts(&out, "\r\n");
            there++;
        }
        write_row(next, next->top + i, width);
        at = i;
        wraps = r->goes_on;
    }
    if (there > next->shown) {
        move_rows(at, next->shown);
        mr_buffer_puts(&out, "\r\033[J");
        at = next->shown;
    }
    return at;
}

static void swap(void) {
    picture *old = now;
    now = next;
    next = old;
}

void mr_frame_begin(void) {
    now->rows.count = 0;
}

static void show(const mr_frame *frame) {
    choose_part(next, frame->rows > 1 ? (size_t)frame->rows : 24);
    size_t at = write_rows(frame->columns);
    move_rows(at, cursor_of(next));
    move_to_column(next->cursor_column);
    flush();
    swap();
}

void mr_frame_draw(const mr_frame *frame) {
    if (make(next, frame)) show(frame);
}

void mr_frame_leave(void) {
    if (!now->rows.count) return;
    move_rows(cursor_of(now), now->shown - 1);
    mr_buffer_puts(&out, "\r\n");
    flush();
    now->rows.count = 0;
}

bool mr_frame_is_shown(void) {
    return now->rows.count > 0;
}

void mr_frame_erase(void) {
    if (!now->rows.count) return;
    move_rows(cursor_of(now), 0);
    mr_buffer_puts(&out, "\r\033[J");
    flush();
    now->rows.count = 0;
}

/* All rows, also those that were not on the screen. */
static void write_whole(int width) {
    mr_frame_erase();
    for (size_t i = 0; i < next->rows.count; i++) {
        bool joins = i && next->rows.items[i - 1].goes_on && next->rows.items[i].columns > 0;
        if (i && !joins) mr_buffer_puts(&out, "\r\n");
        write_row(next, i, width);
    }
    next->cursor_row = next->rows.count - 1;
    next->top = 0;
    next->shown = next->rows.count;
}

void mr_frame_finish(const mr_frame *frame) {
    mr_frame plain = *frame;
    plain.above = plain.hint = NULL;
    plain.point = plain.size;
    if (!make(next, &plain)) return;
    if (next->rows.count > 1 && next->rows.items[next->rows.count - 2].goes_on &&
        !next->cursor_column) {
        next->rows.count--; /* it was there for the cursor only */
        next->cursor_row--;
    }
    bool is_cut = next->rows.count > (size_t)frame->rows || now->shown < now->rows.count;
    if (is_cut) {
        write_whole(frame->columns);
        swap();
    } else {
        show(&plain);
    }
    mr_frame_leave();
}

/* ---- other widths */

/* Terminals that lay long lines out anew say so. */
static bool terminal_wraps_anew(void) {
    static const char *const names[] = {"TMUX",           "VTE_VERSION",  "KITTY_WINDOW_ID",
                                        "WT_SESSION",     "TERM_PROGRAM", "ALACRITTY_WINDOW_ID",
                                        "KONSOLE_VERSION"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i])) return true;
    return false;
}

/* The row of the cursor after that, counted from the first shown row. */
static size_t row_after_wrapping(size_t width) {
    size_t rows = 0, line = 0;
    for (size_t i = now->top; i < now->cursor_row; i++) {
        line += (size_t)now->rows.items[i].columns;
        if (now->rows.items[i].goes_on) continue;
        rows += line ? (line + width - 1) / width : 1;
        line = 0;
    }
    return rows + (line + (size_t)now->cursor_column) / width;
}

void mr_frame_resized(int columns) {
    if (!now->rows.count) return;
    size_t up = cursor_of(now);
    if (columns > 0 && terminal_wraps_anew()) up = row_after_wrapping((size_t)columns);
    move_rows(up, 0);
    mr_buffer_puts(&out, "\r\033[J"); /* written with the next picture */
    now->rows.count = 0;
}
