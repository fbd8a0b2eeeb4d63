/* Messages between millrace and its worker (compiler/worker.h): a list of fields, each with its length in front.
 *
 * Both ends run on one machine and come from one build, so numbers are in native order. A worker that a hostile text
 * has taken over may send anything: reading a message never leaves its bytes. */
#ifndef MR_COMPILE_WIRE_H
#define MR_COMPILE_WIRE_H

#include <stdint.h>

#include "base/buffer.h"

#define MR_WIRE_MOST ((uint64_t)1 << 30) /* bytes of a message */

/* The worker's file descriptors. The socket of the files carries paths one way, and open files the other way. */
#define MR_WIRE_REQUESTS 0
#define MR_WIRE_FILES    3

typedef enum {
    MR_WIRE_COMPILED,
    MR_WIRE_REJECTED,
    MR_WIRE_NO_MEMORY,
    MR_WIRE_NO_ARCHITECTURE,
    MR_WIRE_BAD_NAME, /* the next field is its index */
    MR_WIRE_FAILED,   /* the next field is NVRTC's code */
} mr_wire_result;

/* Appends a field. */
void mr_wire_put(mr_buffer *out, const void *data, size_t size);
void mr_wire_put_text(mr_buffer *out, const char *text);
void mr_wire_put_number(mr_buffer *out, int64_t number);

typedef struct {
    const char *at, *end;
    bool failed; /* a field was missing or damaged; all later ones are empty */
} mr_wire;

/* The next field; it ends with a NUL that `out_size` (may be NULL) does not count. */
const char *mr_wire_take(mr_wire *wire, size_t *out_size);
int64_t mr_wire_take_number(mr_wire *wire);

#endif
