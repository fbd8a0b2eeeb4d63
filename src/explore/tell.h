/* A schedule in words, for a person. */
#ifndef MR_EXPLORE_TELL_H
#define MR_EXPLORE_TELL_H

#include "explore/state.h"

/* "rank 1 goes on before rank 0 (a.lua:7)": the choice of hosts falls on index `who`; 0: on another one. */
void tell_turn(const explorer *e, const branch *b, uint32_t number, uint32_t who, mr_buffer *out);
/* "`sum` (a.lua:7)" */
void tell_command(const explorer *e, const branch *b, uint32_t item, mr_buffer *out);
/* "`query` (a.lua:7) says no", "`elapsed_time` has another answer", "task 1 still waits at a.lua:7" */
void tell_no(const explorer *e, const branch *b, uint32_t item, mr_buffer *out);
/* A line a step, as `steps` of an outcome. */
void tell_steps(const explorer *e, const branch *b, const plan *p, mr_buffer *out);
/* Pairs of operations on the same bytes that run against the order of submission, queries that say no, and
 * allocations that get used memory. Each is a line, and the same line only once. Nothing: all runs as it was
 * submitted. */
void tell_difference(const explorer *e, const branch *b, const plan *p, mr_buffer *out);

#endif
