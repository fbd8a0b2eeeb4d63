/* What the measurements in C share. */
#ifndef MR_BENCH_SUPPORT_H
#define MR_BENCH_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/status.h"

/* Ends the program with the error, if it is one. */
static inline void check(mr_status status) {
    if (!status) return;
    fprintf(stderr, "%s: %s\n", mr_code_text(status->code), status->message);
    exit(1);
}

static inline double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#endif
