/* A schedule in words, for a person. */
#ifndef MR_EXPLORE_TELL_H
#define MR_EXPLORE_TELL_H

#include "explore/state.h"

/* "rank 1 goes on before rank 0 (a.lua:7)": at this choice the host of index `who` goes on; 0: another one than the
 * first. */
void tell_turn(const explorer *e, const branch *b, uint32_t number, uint32_t who, mr_buffer *out);
/* "`sum` (a.lua:7)" */
void tell_command(const explorer *e, const branch *b, uint32_t item, mr_buffer *out);
/* "`sum` (a.lua:7) before `fill_` (a.lua:5)": two nodes, with their streams if the line is the same. `with_time`: and
 * which call of this line it is, if there are several. */
void tell_pair(const explorer *e, const branch *b, uint32_t late, uint32_t early, bool with_time,
               mr_buffer *out);
/* "`query` (a.lua:7) says no", "`elapsed_time` has another answer", "task 1 still waits at a.lua:7" */
void tell_no(const explorer *e, const branch *b, uint32_t item, mr_buffer *out);
/* Writes the steps, one a line, as `steps` of an outcome. */
void tell_steps(const explorer *e, const branch *b, const plan *p, mr_buffer *out);
/* Pairs of operations on the same bytes that run against the order of submission, queries that say no, and
 * allocations that get used memory. Each is a line, and the same line only once. Writes nothing if all work runs in the
 * order of submission. */
void tell_difference(const explorer *e, const branch *b, const plan *p, mr_buffer *out);
/* The same for the part before item `until`, the last decided one. */
void tell_beginning(const explorer *e, const branch *b, const plan *p, uint32_t until,
                    mr_buffer *out);

#endif
