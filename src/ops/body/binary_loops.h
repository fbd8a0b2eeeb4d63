/* Inside src/ops only: the loop of a row with two inputs. */
#ifndef MR_OPS_BODY_BINARY_LOOPS_H
#define MR_OPS_BODY_BINARY_LOOPS_H

#include "ops/body/loops.h"

#define LOOP(name, tag, T_, R, store, expression)                                                  \
    MR_CLONES static void name##_##tag(void *out_, const void *const *in, unsigned fixed,          \
                                       int64_t n) {                                                \
        (void)fixed;                                                                               \
        typedef T_ T;                                                                              \
        R *out = out_;                                                                             \
        const T *x = in[0], *y = in[1];                                                            \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T a = x[i], b = y[i];                                                                  \
            out[i] = store(R, expression);                                                         \
        }                                                                                          \
    }

#endif
