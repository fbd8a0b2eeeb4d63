/* Assumed pairs, which wait until it is known which bytes their launches touched. */
#ifndef MR_HAZARD_WITHDRAW_H
#define MR_HAZARD_WITHDRAW_H

#include "base/vec.h"
#include "hazard/reports.h"
#include "hazard/view.h"

/* The bytes of one storage that one launch has touched. */
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

typedef struct {
    MR_VEC(touched_set) touched; /* oldest first */
    size_t ranges;               /* of all of them */
    MR_VEC(open_pair) open;
    bool may_settle; /* there are open pairs that have not been judged */
    bool has_missed; /* and a launch reported its bytes while reports were held */
} withdrawing_part;

/* reports/open_pairs.c */
/* Whether the two may turn out to touch no common byte. Then the pair must not hide another one. */
bool mr_hazard_may_withdraw(const checker *c, const found_pair *pair);
/* Opens a pair that is counted in `report`. False: it will never be known whether the two meet. */
bool mr_hazard_open_pair(checker *c, const found_pair *pair, mr_hazard_report *report);
/* The report, or each from that number on, is about to go. */
void mr_hazard_close_pairs(checker *c, const mr_hazard_report *report);
void mr_hazard_close_pairs_from(checker *c, uint64_t number);
/* withdraw.c */
/* The bytes of this launch will never be known. */
void mr_hazard_touched_unknown(checker *c, uint64_t seq);
void mr_hazard_touched(mr_observer *observer, const mr_command *command,
                       const mr_kernel_touched *touched);
/* Judges the open pairs whose launches have run. Nothing may be held. */
void mr_hazard_settle(checker *c);
void mr_hazard_withdraw_forget(checker *c); /* what launches touched, and the open pairs */
void mr_hazard_withdraw_destroy(checker *c);

#endif
