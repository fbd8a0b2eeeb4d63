/* Switches of the prompt's display while an entry is typed; all are on at first (:set). */
#ifndef MR_REPL_SHOWN_H
#define MR_REPL_SHOWN_H

#include <stdbool.h>

typedef enum { MR_LINE_COLOURS, MR_LINE_HINTS, MR_LINE_LIVE, MR_LINE_PARTS } mr_line_part;
void mr_line_set_shown(mr_line_part part, bool is_shown);
bool mr_line_shows(mr_line_part part);

#endif
