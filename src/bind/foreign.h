/* Names that PyTorch and CUDA have and this module has not: what to write instead. */
#ifndef MR_BIND_FOREIGN_H
#define MR_BIND_FOREIGN_H

#include <stdbool.h>

typedef struct {
    const char *owner; /* "tensor", "stream", "mr.dist", ...; "word": what only help is asked for */
    const char *name, *advice;
} mr_foreign;

/* The row at place i, from 0. False: there are no more. */
bool mr_foreign_at(int i, mr_foreign *out);

/* The advice for `name` of an owner; NULL: none. `owner` NULL: of any. */
const char *mr_foreign_advice(const char *owner, const char *name);

/* For an option of PyTorch or CUDA that a function with the options `known` does not have. Returns the advice, or "" if
 * *out_here, which is one of `known`, says it all; NULL: nothing is known of the option. */
const char *mr_foreign_option(const char *name, const char *const *known, const char **out_here);

#endif
