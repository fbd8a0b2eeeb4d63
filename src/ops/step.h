/* One element's step of each optimiser, as in PyTorch's torch.optim. It is compiled as C for the CPU and as CUDA for a
 * GPU, with the same bits, since neither fuses a multiply with an add.
 *
 * `n` are the numbers of an mr_step as the parameters' type, in the order of table.h. The caller has computed in double
 * the values that do not depend on the element (a power of a beta, a quotient of two numbers). */
#ifndef MR_OPS_STEP_H
#define MR_OPS_STEP_H

#include "ops/expr.h"
#include "ops/optimise_flags.h"

/* n: the learning rate, the weight decay. */
#define MR_DEFINE_SGD(T, tag)                                                                      \
    MR_INLINE void mr_sgd_step_##tag(const T *n, uint32_t flags, T *p, T g, T *s0, T *s1) {        \
        (void)s0, (void)s1;                                                                        \
        if (flags & MR_STEP_DECAYS) g = g + n[1] * *p;                                             \
        *p = *p - n[0] * g;                                                                        \
    }

/* n: the learning rate, the weight decay, the momentum, 1 - dampening. */
#define MR_DEFINE_MOMENTUM(T, tag)                                                                 \
    MR_INLINE void mr_momentum_step_##tag(const T *n, uint32_t flags, T *p, T g, T *v, T *s1) {    \
        (void)s1;                                                                                  \
        if (flags & MR_STEP_DECAYS) g = g + n[1] * *p;                                             \
        *v = flags & MR_STEP_FIRST ? g : n[2] * *v + n[3] * g;                                     \
        g = flags & MR_STEP_NESTEROV ? g + n[2] * *v : *v;                                         \
        *p = *p - n[0] * g;                                                                        \
    }

/* n: the learning rate / (1 - beta1^step); the weight decay, or where it is decoupled, 1 - it times the rate; beta1,
 * 1 - beta1, beta2, 1 - beta2, sqrt(1 - beta2^step), epsilon. */
#define MR_DEFINE_ADAM(T, tag)                                                                     \
    MR_INLINE void mr_adam_step_##tag(const T *n, uint32_t flags, T *p, T g, T *m, T *v) {         \
        if (flags & MR_STEP_DECAYS) {                                                              \
            if (flags & MR_STEP_DECOUPLED) *p = *p * n[1];                                         \
            else g = g + n[1] * *p;                                                                \
        }                                                                                          \
        *m = *m * n[2] + g * n[3];                                                                 \
        *v = *v * n[4] + n[5] * g * g;                                                             \
        *p = *p - n[0] * (*m / (mr_sqrt(*v) / n[6] + n[7]));                                       \
    }

/* n: the learning rate, the weight decay, alpha, 1 - alpha, epsilon, the momentum. `d` is the distance of a step of
 * rate 1. */
#define MR_DEFINE_RMSPROP(T, tag)                                                                  \
    MR_INLINE T mr_rmsprop_##tag(const T *n, uint32_t flags, T p, T g, T *v) {                     \
        if (flags & MR_STEP_DECAYS) g = g + n[1] * p;                                              \
        *v = *v * n[2] + n[3] * g * g;                                                             \
        return g / (mr_sqrt(*v) + n[4]);                                                           \
    }                                                                                              \
    MR_INLINE void mr_rmsprop_step_##tag(const T *n, uint32_t flags, T *p, T g, T *v, T *s1) {     \
        (void)s1;                                                                                  \
        T d = mr_rmsprop_##tag(n, flags, *p, g, v);                                                \
        *p = *p - n[0] * d;                                                                        \
    }                                                                                              \
    MR_INLINE void mr_rmsprop_momentum_step_##tag(const T *n, uint32_t flags, T *p, T g, T *v,     \
                                                  T *m) {                                          \
        T d = mr_rmsprop_##tag(n, flags, *p, g, v);                                                \
        *m = *m * n[5] + d;                                                                        \
        *p = *p - n[0] * *m;                                                                       \
    }

/* No number: the parameter gets the gradient's value. */
#define MR_DEFINE_GATHER(T, tag)                                                                   \
    MR_INLINE void mr_gather_grads_##tag(const T *n, uint32_t flags, T *p, T g, T *s0, T *s1) {    \
        (void)n, (void)flags, (void)s0, (void)s1;                                                  \
        *p = g;                                                                                    \
    }

#define MR_DEFINE_STEPS(T, tag)                                                                    \
    MR_DEFINE_SGD(T, tag)                                                                          \
    MR_DEFINE_MOMENTUM(T, tag)                                                                     \
    MR_DEFINE_ADAM(T, tag)                                                                         \
    MR_DEFINE_RMSPROP(T, tag)                                                                      \
    MR_DEFINE_GATHER(T, tag)
MR_DEFINE_STEPS(float, f32)
MR_DEFINE_STEPS(double, f64)

#endif
