/* The exact bytes of a strided view, and whether two views share a byte. */
#ifndef MR_HAZARD_VIEW_H
#define MR_HAZARD_VIEW_H

#include "tensor/tensor.h"

typedef struct {
    int64_t count, stride; /* stride in bytes, > 0 */
} view_dim;

/* Bytes of a storage: runs of `run` bytes, repeated by the dims, largest stride first. Normal form: no
 * dim of one step, none that a longer run could express. */
typedef struct {
    uint64_t first, end; /* of the whole view: its extent */
    uint64_t run;
    int64_t period; /* > 0: divides all strides; 0: no dims; -1: no such number */
    int ndim;
    view_dim dim[MR_MAX_DIMS];
} byte_view;

bool mr_hazard_view_of(const mr_tensor *t, byte_view *out_view);     /* false: no bytes at all */
bool mr_hazard_view_overlap(const byte_view *a, const byte_view *b); /* exact */
bool mr_hazard_view_covers(const byte_view *outer,
                           const byte_view *inner); /* true only if it does */
bool mr_hazard_view_equal(const byte_view *a, const byte_view *b);
/* Bytes that both touch, counted; 0 if that would take long. */
uint64_t mr_hazard_view_shared(const byte_view *a, const byte_view *b);

#endif
