/* The hooks of the checker (hazard/hazard.h) of a Lua state: names and places from the script's text and the Lua stack
 * (variable.c, place.c), and reports on standard error. */
#ifndef MR_BIND_HAZARD_HOOKS_H
#define MR_BIND_HAZARD_HOOKS_H

#include "bind/bind.h"
#include "hazard/hazard.h"

/* Who answers for the script. It must live as long as the checker. */
typedef struct {
    mr_machine *machine;
    bool json, colour; /* of reports */
    uint16_t rank;     /* the rank for which it answers, from 1; 0: the running host */
} mr_bind_answerer;

mr_hazard_hooks mr_bind_hazard_hooks(mr_bind_answerer *answerer);

#endif
