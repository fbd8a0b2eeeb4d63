/* Random kernels in CUDA C++ that choose, compare and compute pointers, many in one text, so that one call of a
 * compiler serves them all. All have the parameters of `cuda_params`. Indices are small, so that an access lies within
 * CUDA_REACH bytes of the pointer that it starts from, as long as loops end soon. A kernel may still use a null
 * pointer, or loop for ever. */
#ifndef CUDA_KERNELS_H
#define CUDA_KERNELS_H

#include <stdint.h>

#include "base/buffer.h"

enum { CUDA_POINTERS = 9, CUDA_REACH = 1 << 14 };

/* As the compilers lay out the parameters. */
typedef struct {
    uint64_t a, b, c, d, ix, opt;
    struct {
        uint64_t first, second;
        int32_t count, spare;
    } two;
    uint64_t out;
    int32_t n, m;
    int64_t w;
} cuda_params;

typedef struct {
    mr_buffer *out;
    uint64_t *state;   /* of the random numbers */
    int depth, loops;  /* of phrases, and of loops around what is written */
    bool has_returned; /* threads may be gone, so no barrier follows */
} cuda_writer;

/* Before the first kernel of a text. */
void cuda_put_prologue(mr_buffer *out);
/* `extern "C" __global__ void NAME(...) { ... }` */
void cuda_put_kernel(mr_buffer *out, const char *name, uint64_t *state);

#endif
