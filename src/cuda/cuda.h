/* A real GPU: a backend (model/backend.h) on the CUDA driver. Everything else in this folder is private
 * to it. */
#ifndef MR_CUDA_CUDA_H
#define MR_CUDA_CUDA_H

#include "model/backend.h"

/* Devices are "cuda" (NULL: the same), or "cuda:1", where ordinal 1 is current at the start. */
extern const mr_backend mr_cuda_backend;

/* Whether there is a usable GPU. To be sure, it makes a context, and the next open uses this context.
 * NOT_SUPPORTED, INVALID_DEVICE or OUT_OF_MEMORY in one sentence that says why not. */
mr_status mr_cuda_probe(void);

/* For doctor: calls `say` with each line about driver and libraries. */
void mr_cuda_describe(void (*say)(const char *what, const char *text));

#endif
