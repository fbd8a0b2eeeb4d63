/* Assumed pairs that wait for the bytes which their launches really touch: the structures of withdraw.c. */
#ifndef MR_HAZARD_WITHDRAW_H
#define MR_HAZARD_WITHDRAW_H

#include "hazard/hazard.h"
#include "hazard/view.h"

/* What one launch has touched of one storage. */
typedef struct {
    uint64_t seq, storage;
    bool is_known;
    mr_touched_range *ranges; /* owned */
    size_t count;
} touched_set;

/* One side of an assumed pair. */
typedef struct {
    uint64_t seq;   /* of the launch that is assumed to touch the bytes; 0: the view is certain */
    uint8_t access; /* MR_READ, MR_WRITE, or MR_ATOMIC alone */
    byte_view view; /* if it is certain */
} open_side;

typedef struct {
    mr_hazard_report *report; /* that counts it */
    bool is_new;              /* it has not been judged */
    uint64_t storage;
    open_side first, second;
} open_pair;

#endif
