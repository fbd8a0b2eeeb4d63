/* Finds addresses of Lua values in outcomes: tostring of a table is "table: 0x55d39c5e26e0". */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "explore/state.h"

static size_t first_difference(const mr_buffer *a, const mr_buffer *b) {
    size_t at = 0;
    while (at < a->size && at < b->size && a->data[at] == b->data[at]) at++;
    return at;
}

/* The index of the "0x" before the digits that end at `at`; SIZE_MAX: there is none. */
static size_t number_before(const char *text, size_t at) {
    while (at && isxdigit((unsigned char)text[at - 1])) at--;
    return at >= 2 && text[at - 1] == 'x' && text[at - 2] == '0' ? at - 2 : SIZE_MAX;
}

bool mr_explore_address_kind(const mr_buffer *a, const mr_buffer *b, char *out_kind, size_t size) {
    static const char *const kinds[] = {"table", "function", "userdata", "thread"};
    size_t at = first_difference(a, b);
    if (at == a->size || at == b->size) return false;
    at = number_before(a->data, at);
    for (size_t i = 0; at != SIZE_MAX && i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i]);
        if (at < length + 2 || memcmp(a->data + at - 2, ": ", 2) != 0) continue;
        if (memcmp(a->data + at - 2 - length, kinds[i], length) != 0) continue;
        mr_text_copy(out_kind, size, kinds[i]);
        return true;
    }
    return false;
}
