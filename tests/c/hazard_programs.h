/* Random stream programs for the checker: making them, feeding them to it by hand-made commands, holding
 * its verdict against the simple checker's, and shrinking what differs. */
#ifndef HAZARD_PROGRAMS_H
#define HAZARD_PROGRAMS_H

#include "naive_hazard.h"

void program_random(uint64_t seed, sample_program *out);
/* NULL: both checkers agree; else what differs, valid until the next call. */
const char *program_differs(const sample_program *p);
/* Takes out steps for as long as the verdicts differ. */
void program_shrink(sample_program *p);
void program_print(const sample_program *p); /* as a Lua script */

#endif
