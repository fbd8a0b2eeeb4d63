/* Counting the output: see output.h. Lua's io library writes to the same streams directly. Their error
 * flags stay set, so its failures are found at the next check. */
#include "base/output.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t limit;
static atomic_uint_fast64_t written;
static void (*on_failure)(void);
static _Atomic mr_output_state state;
static atomic_flag is_told = ATOMIC_FLAG_INIT; /* in `problem`, by the one who set it */
static char problem[128];

void mr_output_open(uint64_t most, void (*failed)(void)) {
    limit = most;
    on_failure = failed;
}

/* The first failure counts. */
static void fail(mr_output_state why) {
    mr_output_state whole = MR_OUTPUT_WHOLE;
    atomic_compare_exchange_strong(&state, &whole, why);
    if (on_failure) on_failure();
}

/* `reason`: the errno of a write that has failed already; 0: none is known. */
static void flush_after(FILE *file, int reason) {
    errno = 0;
    bool flushed = fflush(file) == 0;
    if (flushed && !ferror(file)) return;
    if (!reason) reason = errno;
    if (state == MR_OUTPUT_WHOLE && !atomic_flag_test_and_set(&is_told))
        snprintf(problem, sizeof problem, "cannot write to standard %s: %s",
                 file == stdout ? "output" : "error",
                 reason ? strerror(reason) : "part of the output was lost");
    fail(reason == EPIPE ? MR_OUTPUT_UNREAD : MR_OUTPUT_LOST);
}

void mr_output_flush(FILE *file) {
    flush_after(file, 0);
}

void mr_output_write(FILE *file, const char *text, size_t size) {
    if (limit && (size > limit || written > limit - size)) {
        written = limit; /* nothing smaller comes after it */
        fail(MR_OUTPUT_BOUNDED);
        return;
    }
    if (limit) written += size;
    errno = 0;
    bool is_whole = fwrite(text, 1, size, file) == size;
    if (ferror(file)) flush_after(file, is_whole ? 0 : errno);
}

void mr_output_write_message(FILE *file, const char *text, size_t size) {
    static const char rest[] = "... (the rest of this message is left out)\n";
    uint64_t room = limit > written ? limit - written : 0;
    if (room < MR_OUTPUT_MESSAGE) room = MR_OUTPUT_MESSAGE;
    bool fits = !limit || size <= room;
    size_t shown = fits ? size : room;
    while (!fits && shown && ((unsigned char)text[shown] & 0xc0) == 0x80)
        shown--; /* whole characters */
    fwrite(text, 1, shown, file);
    if (!fits) fwrite(rest, 1, sizeof rest - 1, file);
    if (limit) written += shown;
    if (ferror(file)) mr_output_flush(file);
}

mr_output_state mr_output_check(void) {
    mr_output_flush(stdout);
    mr_output_flush(stderr);
    return state;
}

const char *mr_output_problem(void) {
    return problem;
}

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

bool mr_output_has_codes(FILE *file) {
    const char *terminal = setting("TERM");
    return isatty(fileno(file)) && terminal && strcmp(terminal, "dumb") != 0;
}

bool mr_output_has_colour(FILE *file) {
    return mr_output_has_codes(file) && !setting("NO_COLOR");
}

/* The variables in the order in which the C library looks at them; the program never calls setlocale. */
bool mr_output_is_ascii(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    if (setting("MILLRACE_ASCII")) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = setting(names[i]);
        if (value) return !strcasestr(value, "utf-8") && !strcasestr(value, "utf8");
    }
    return true;
}
