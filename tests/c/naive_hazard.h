/* Random stream programs and two verdicts on them: the checker's, and that of a checker so simple that it can be
 * read and believed. The simple one builds the whole graph of orders, finds by search which nodes reach which, and
 * compares every pair of accesses byte by byte. It shares no code with src/hazard. */
#ifndef NAIVE_HAZARD_H
#define NAIVE_HAZARD_H

#include <stdbool.h>
#include <stdint.h>

enum {
    MOST_STREAMS = 16,
    MOST_EVENTS = 4,
    MOST_TENSORS = 4,
    MOST_STEPS = 80,
    MOST_BYTES = 64,
    MOST_DEVICES = 3
};

typedef enum {
    STEP_OP,
    STEP_COPY,
    STEP_RECORD,
    STEP_WAIT,
    STEP_STREAM_SYNC,
    STEP_EVENT_SYNC,
    STEP_DEVICE_SYNC,
    STEP_STREAM_QUERY, /* one that says yes */
    STEP_EVENT_QUERY,
    STEP_HOST_ACCESS,
    STEP_HOST_FUNCTION, /* its accesses happen in stream order, and are told later by STEP_RUN */
    STEP_RUN,           /* `partner`: the host function that runs now */
    STEP_ALLOC,
    STEP_FREE,
    STEP_RECORD_STREAM,
    STEP_REPLACE_STREAM, /* the stream is closed, and a new one takes its variable */
    STEP_NOTHING,        /* shrunk away */
} step_kind;

/* The last two qualify the first, as MR_ATOMIC and MR_ASSUMED_INDEX do. */
enum { NAIVE_READ = 1, NAIVE_WRITE = 2, NAIVE_ATOMIC = 8, NAIVE_ASSUMED = 2 << 4 };

typedef struct {
    int offset, ndim, shape[2], stride[2]; /* in elements of `size` bytes */
    int size;
} sample_view;

typedef struct {
    int tensor;
    sample_view view;
    uint8_t access;
} sample_access;

typedef enum { MEMORY_DEVICE, MEMORY_PINNED, MEMORY_PAGEABLE } sample_memory;

typedef struct {
    step_kind kind;
    int stream; /* a variable: index into the program's streams */
    int event, tensor, device, partner;
    /* STEP_COPY: operand 0 destination, 1 source. STEP_FREE: cudaFree, by the host */
    bool synchronous;
    int access_count;
    sample_access access[3];
} sample_step;

typedef struct {
    int device_count;
    int stream_count; /* each device's legacy and per-thread streams first */
    struct {
        int device;
        bool legacy, per_thread, blocking;
    } stream[MOST_STREAMS];
    int tensor_count;
    struct {
        sample_memory memory;
        int device;
        /* host memory: nothing is in it at the start. Device memory: from STEP_ALLOC on */
        bool blank;
    } tensor[MOST_TENSORS];
    int event_count;
    int step_count;
    sample_step step[MOST_STEPS];
} sample_program;

/* The verdict: unordered[i][j], i < j, steps by number. `first` and `second` of data races are the
 * steps of the accesses (a host function's is STEP_HOST_FUNCTION, not STEP_RUN). */
typedef struct {
    bool before[MOST_STEPS][MOST_STEPS];     /* a path from i to j exists */
    bool race[MOST_STEPS][MOST_STEPS];       /* unordered, conflicting, a byte in common */
    bool free_race[MOST_STEPS][MOST_STEPS];  /* access i is not ordered before free j */
    bool alloc_race[MOST_STEPS][MOST_STEPS]; /* access or free j is not ordered after alloc i */
    bool unset[MOST_STEPS];                  /* reads a byte that nothing has written */
} naive_verdict;

void naive_check(const sample_program *p, naive_verdict *out);
/* Only `before`. */
void naive_order(const sample_program *p, naive_verdict *out);
/* Adds what comes behind frees, as far as a query can tell: the host that has waited for one knows it to be over. */
void naive_order_frees(const sample_program *p, naive_verdict *v);
/* Whether the host, going on after step j, knows that step i is done. */
bool naive_host_knows(const sample_program *p, const naive_verdict *v, int i, int j);
/* Whether the accesses of steps i and j conflict on this byte of this tensor; `certain`: accesses that surely
 * happen. */
bool naive_conflict_at(const sample_program *p, int i, int j, int tensor, int byte, bool certain);

/* How copies behave towards the host, by the table of R20-R24. */
typedef struct {
    bool waits;       /* the host goes on only when the copy is done */
    bool staged;      /* the host first waits for the stream, then reads the source itself */
    bool peer;        /* a barrier for both devices */
    bool advisory[2]; /* operand: pageable memory in an asynchronous copy, never a hazard */
} copy_rules;
copy_rules naive_copy_rules(const sample_program *p, const sample_step *s);

#endif
