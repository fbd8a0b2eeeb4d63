/* The flags of an mr_step (optimise.h), also for CUDA kernels. */
#ifndef MR_OPS_OPTIMISE_FLAGS_H
#define MR_OPS_OPTIMISE_FLAGS_H

enum {
    MR_STEP_DECAYS = 1, /* there is a weight decay */
    MR_STEP_DECOUPLED =
        2, /* the decay shrinks the parameter (AdamW); otherwise it is a part of the gradient */
    MR_STEP_NESTEROV = 4,
    MR_STEP_FIRST = 8, /* of these parameters: the momentum is the gradient */
};

#endif
