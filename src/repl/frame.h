/* The screen while an entry is typed: lines above it, the prompt, the text in its colours, a hint.
 * Rows that have not changed are not written again. A text that is taller than the screen is shown in part, around
 * the cursor.
 *
 * Easiest to break: where the cursor is. No other code may write to the terminal between mr_frame_begin and
 * mr_frame_finish or mr_frame_leave. */
#ifndef MR_REPL_FRAME_H
#define MR_REPL_FRAME_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *above;  /* whole lines of the state of the machine; NULL: none */
    const char *prompt; /* codes in it stand between \001 and \002 */
    const char *text;
    size_t size, point;           /* of the text, and where the cursor is in it */
    const unsigned char *colours; /* an mr_colour for each byte; NULL: no codes of colours */
    const char *hint;  /* after the text, as far as its row has room for it; NULL: none */
    int rows, columns; /* of the terminal */
} mr_frame;

/* The cursor is at the beginning of an empty line. */
void mr_frame_begin(void);
void mr_frame_draw(const mr_frame *frame);
/* The text stays as a whole, without what is above it and the hint. The cursor is at the beginning of the line
 * below. */
void mr_frame_finish(const mr_frame *frame);
/* All stays; the cursor goes to the line below. mr_frame_begin and mr_frame_draw show it again. */
void mr_frame_leave(void);
/* All goes, and the cursor is where it began. */
void mr_frame_erase(void);
bool mr_frame_is_shown(void);
/* The terminal has another width: what is shown goes with the next picture, also where the terminal has
 * wrapped it anew. */
void mr_frame_resized(int columns);

#endif
