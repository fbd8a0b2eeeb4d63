/* The compile worker: a program of its own, embedded in millrace (compile/compiler/worker.h starts it). It holds NVRTC,
 * so a text that crashes the compiler ends only this process.
 *
 * main.c reads requests and answers them, nvrtc.c calls the library, confine.c takes the file system away. */
#ifndef MR_COMPILE_WORKER_WORKER_H
#define MR_COMPILE_WORKER_WORKER_H

#include "compile/wire.h"

/* Opens the library. False: `missing` says why. `name` becomes "NVRTC 13.0". */
bool worker_open(const char *path, char *name, size_t name_size, char *missing,
                 size_t missing_size);

/* Carries out a request, and appends the answer. False: the request is damaged. */
bool worker_compile(mr_wire *request, mr_buffer *answer);

/* Compiles an empty kernel, so that the library opens its files while there is a file system. */
void worker_warm_up(void);

/* From now on this process reaches no file but those that MR_WIRE_FILES hands out, and starts none and no process.
 * NULL, or why that cannot be had on this system. */
const char *worker_confine(void);

#endif
