/* Stretches of work that are judged separately: checks, explorations and stress runs (hazard.c). */
#ifndef MR_HAZARD_STRETCH_H
#define MR_HAZARD_STRETCH_H

#include "hazard/hazard.h"

typedef struct {
    bool on;
    uint16_t rank;                  /* that began it (mr_machine.rank) */
    bool returned, returned_before; /* the code that is judged */
    mr_hazard_mode mode_before;
    size_t first; /* report */
    mr_hazard_totals totals_before;
} check_part;

/* The state that a separate stretch of work restores when it ends. */
typedef struct {
    bool on;
    mr_hazard_apart kind;
    mr_hazard_mode mode;
    bool advice;
    check_part check;
    size_t first;          /* report */
    uint64_t last_storage; /* that was there before */
    mr_hazard_totals totals;
    bool judging;
    mr_hazard_mode judged_in; /* mr_hazard_judge_begin: the mode before it, and what there was */
    size_t judged_first;
    mr_hazard_totals before_judged;
} stretch;

#endif
