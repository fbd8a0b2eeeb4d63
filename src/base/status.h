/* Errors: the codes, and the error object that carries one of them.
 *
 * A function that can fail returns an mr_status: NULL on success, otherwise an error that the caller owns
 * and must return or destroy. Success costs one comparison. Only bind/ turns a status into a Lua error;
 * nothing below it knows that Lua exists. */
#ifndef MR_BASE_STATUS_H
#define MR_BASE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>

/* name, the word that scripts see in `err.code`, CUDA's number (-1: CUDA has none), sticky (R50) */
#define MR_CODE_LIST(X)                                                                            \
    X(INVALID_ARGUMENT, "invalid-argument", 1, false)                                              \
    X(OUT_OF_MEMORY, "out-of-memory", 2, false)                                                    \
    X(INVALID_CONFIGURATION, "invalid-configuration", 9, false)                                    \
    X(INVALID_DEVICE, "invalid-device", 101, false)                                                \
    X(INVALID_HANDLE, "invalid-handle", 400, false)                                                \
    X(ILLEGAL_STATE, "illegal-state", 401, false)                                                  \
    X(NOT_READY, "not-ready", 600, false)                                                          \
    X(ILLEGAL_ADDRESS, "illegal-address", 700, true)                                               \
    X(LAUNCH_OUT_OF_RESOURCES, "launch-out-of-resources", 701, false)                              \
    X(LAUNCH_TIMEOUT, "launch-timeout", 702, true)                                                 \
    X(PEER_ACCESS_ENABLED, "peer-access-already-enabled", 704, false)                              \
    X(PEER_ACCESS_NOT_ENABLED, "peer-access-not-enabled", 705, false)                              \
    X(ASSERT, "assert", 710, true)                                                                 \
    X(MISALIGNED_ADDRESS, "misaligned-address", 716, true)                                         \
    X(LAUNCH_FAILURE, "launch-failure", 719, true)                                                 \
    X(NOT_PERMITTED, "not-permitted", 800, false)                                                  \
    X(NOT_SUPPORTED, "not-supported", 801, false)                                                  \
    X(CAPTURE_UNSUPPORTED, "stream-capture-unsupported", 900, false)                               \
    X(CAPTURE_INVALIDATED, "stream-capture-invalidated", 901, false)                               \
    X(CAPTURE_MERGE, "stream-capture-merge", 902, false)                                           \
    X(CAPTURE_UNMATCHED, "stream-capture-unmatched", 903, false)                                   \
    X(CAPTURE_UNJOINED, "stream-capture-unjoined", 904, false)                                     \
    X(CAPTURE_ISOLATION, "stream-capture-isolation", 905, false)                                   \
    X(CAPTURE_IMPLICIT, "stream-capture-implicit", 906, false)                                     \
    X(CAPTURED_EVENT, "captured-event", 907, false)                                                \
    X(CAPTURE_WRONG_THREAD, "stream-capture-wrong-thread", 908, false)                             \
    X(GRAPH_UPDATE, "graph-exec-update-failure", 910, false)                                       \
    X(DEADLOCK, "deadlock", -1, true) /* work that waits for each other */                         \
    X(NO_PEER, "deadlock", -1, false) /* it would be: nothing was submitted */                     \
    X(COLLECTIVE_MISMATCH, "collective-mismatch", -1, false)                                       \
    X(UNKNOWN, "unknown", 999, false)                                                              \
    X(INTERRUPTED, "interrupted", -1, false)                                                       \
    X(STOPPED, "interrupted", -1, true) /* in the middle of work that cannot go on */              \
    X(HOST_FUNCTION, "host-function", -1, false)                                                   \
    X(HAZARD, "hazard", -1, false)

typedef enum {
#define X(name, text, number, sticky) MR_CODE_##name,
    MR_CODE_LIST(X)
#undef X
        MR_CODE_COUNT
} mr_code;

const char *mr_code_text(mr_code code);     /* "out-of-memory" */
int mr_code_number(mr_code code);           /* CUDA's number, or -1 */
bool mr_code_sticky(mr_code code);          /* R50: the device is lost until mr.reset() */
bool mr_code_is_interruption(mr_code code); /* INTERRUPTED, STOPPED: no fault of the program */
bool mr_code_find(const char *text, mr_code *out_code); /* the first that has this text */

/* A line of the user's script. `file` is interned (base/intern.h) and lives as long as its machine;
 * NULL when no line is known. */
typedef struct {
    const char *file;
    int line;
} mr_site;

typedef struct mr_error {
    mr_code code;
    mr_site where;   /* the line that submitted the operation; {NULL, 0}: the call itself failed */
    char op[32];     /* the failing operation, "" if none */
    char stream[48]; /* the stream that it ran on, "" if none */
    char message[];  /* one sentence */
} mr_error;

typedef mr_error *mr_status;

#define MR_OK ((mr_status)0)

/* Makes an error. Never returns NULL: when memory is out it returns a static error object. */
mr_status mr_fail(mr_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));
mr_status mr_failv(mr_code code, const char *format, va_list args);
/* OUT_OF_MEMORY, of the host: the text says for what, as in "for an event" and "to read `%s`". */
mr_status mr_no_memory(const char *format, ...) __attribute__((format(printf, 1, 2)));
mr_status mr_error_copy(const mr_error *error);
/* The same error with another message. Destroys `error` when the message is written, which may use the old one. */
mr_status mr_error_reword(mr_status error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void mr_error_destroy(mr_status status); /* accepts NULL and the static object */

/* Returns the error, so that the caller can add what failed and where. Returns NULL for the static error
 * object, because all threads share it. */
mr_error *mr_error_details(mr_status status);

/* Keeps the first error of a clean-up: returns `first` if it is one (destroying `next`), else `next`. */
mr_status mr_error_first(mr_status first, mr_status next);

#define MR_TRY(expression)                                                                         \
    do {                                                                                           \
        mr_status try_status_ = (expression);                                                      \
        if (__builtin_expect(try_status_ != MR_OK, 0)) return try_status_;                         \
    } while (0)

#endif
