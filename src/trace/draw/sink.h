/* Where the writers of files put their text: a buffer in front of a FILE, with the number formats that traces need.
 * snprintf would take most of the time of a trace of a million operations. */
#ifndef MR_TRACE_SINK_H
#define MR_TRACE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MR_SINK_SIZE (1 << 16)

typedef struct {
    FILE *file;
    bool failed; /* nothing is written any more; errno is that of the first failure */
    size_t used;
    char data[MR_SINK_SIZE];
} mr_sink;

void mr_sink_overflow(mr_sink *sink, const char *bytes, size_t size); /* the slow path of: */

static inline void mr_sink_bytes(mr_sink *sink, const char *bytes, size_t size) {
    if (MR_SINK_SIZE - sink->used < size) {
        mr_sink_overflow(sink, bytes, size);
        return;
    }
    memcpy(sink->data + sink->used, bytes, size);
    sink->used += size;
}

static inline void mr_sink_text(mr_sink *sink, const char *text) {
    mr_sink_bytes(sink, text, strlen(text)); /* of a literal, the compiler knows the length */
}

void mr_sink_format(mr_sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mr_sink_number(mr_sink *sink, uint64_t value);
void mr_sink_us(mr_sink *sink, uint64_t nanoseconds); /* 1234567: 1234.567, 2000: 2 */
void mr_sink_ms(mr_sink *sink, uint64_t nanoseconds); /* 1234567: 1.234567, 2500000: 2.5 */

/* Texts of a script, which may hold anything. Bytes that are no UTF-8 become U+FFFD. */
void mr_sink_json(mr_sink *sink, const char *text); /* quoted; `<` is escaped for <script> */
void mr_sink_xml(mr_sink *sink, const char *text);  /* the text of an element or an attribute */
void mr_sink_csv(mr_sink *sink, const char *text);  /* a field, in quotes where it needs them */

/* Writes the rest of the buffer. False: writing failed. */
bool mr_sink_flush(mr_sink *sink);

#endif
