/* Shared by comm.c (one communicator), nccl.c (the table mr.nccl) and dist.c (ranks). */
#ifndef MR_BIND_RANKS_COMM_H
#define MR_BIND_RANKS_COMM_H

#include "bind/bind.h"
#include "collective/comm.h"

/* The communicator at `arg`, borrowed. Raises if it is not one, or split() has not ended on all ranks. */
mr_comm *mr_check_comm(lua_State *L, int arg);
void mr_push_own_comm(lua_State *L, mr_comm *comm); /* takes the reference */

/* The options `op` ("sum" if it is not given) and `root` (0), a rank of `size`. */
mr_redop mr_option_redop(lua_State *L, const mr_option_slots *given);
uint32_t mr_option_root(lua_State *L, const mr_option_slots *given, uint32_t size);

/* Before a call, or a launch of a graph with calls: raises where mr.explore cannot follow it, and in finalizers. */
void mr_check_may_meet(lua_State *L);
/* Raises in a finalizer. It runs on the rank that collects garbage, which may not have made the object, so it has no
 * peers to wait for. */
void mr_check_no_finalizer(lua_State *L);

/* dist.c, for nccl.c: restores what a function that was explored has changed of the ranks. */
void mr_bind_dist_put_back(lua_State *L);

#endif
