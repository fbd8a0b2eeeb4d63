/* The screen while an entry is typed: see shown.h. */
#include "repl/shown.h"

static bool is_hidden[MR_LINE_PARTS];

void mr_line_set_shown(mr_line_part part, bool is_shown) {
    is_hidden[part] = !is_shown;
}

bool mr_line_shows(mr_line_part part) {
    return !is_hidden[part];
}
