/* Running a row of the operation table for a script. */
#ifndef MR_BIND_OPS_ROW_H
#define MR_BIND_OPS_ROW_H

#include "bind/bind.h"

/* Runs a FILL or RANDOM row on `out`, on `stream` or (NULL) the current one, with the row's numbers. `in_place` decides
 * its name in reports: "fill_", or "fill" for a new tensor. */
mr_status mr_generate(const mr_caller *caller, const mr_op *op, mr_tensor *out, bool in_place,
                      mr_stream *stream, const mr_scalar numbers[2]);
mr_status mr_fill_with(const mr_caller *caller, mr_tensor *out, mr_scalar value);
/* Raises an error if more arguments are `given` than the row takes at `most`. */
void mr_no_more_arguments(lua_State *L, const mr_op *op, int given, int most);
/* The tensor, number or boolean at `arg`. */
mr_value mr_check_value(lua_State *L, int arg);
/* Runs `call`, whose out is a new tensor (`out_arg` 0) or the one at `out_arg`, and pushes that. */
int mr_push_result(lua_State *L, const mr_caller *caller, const mr_op *op, mr_call *call,
                   int out_arg);
/* The same for a row with a second result, which is wanted: pushes both. */
int mr_push_results(lua_State *L, const mr_caller *caller, const mr_op *op, const mr_call *call);

#endif
