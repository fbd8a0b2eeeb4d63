/* Communicators: comm.c (one of them), nccl.c (the table mr.nccl) and dist.c (ranks). */
#ifndef MR_BIND_RANKS_COMM_H
#define MR_BIND_RANKS_COMM_H

#include "bind/bind.h"
#include "collective/comm.h"

/* The communicator at `arg`, borrowed. Raises for other values, and if split() is not complete on all ranks. */
mr_comm *mr_check_comm(lua_State *L, int arg);
void mr_push_own_comm(lua_State *L, mr_comm *comm); /* takes the reference */

/* The options `op` ("sum" if it is not given) and `root` (0), a rank of `size`. */
mr_redop mr_option_redop(lua_State *L, const mr_option_slots *given);
uint32_t mr_option_root(lua_State *L, const mr_option_slots *given, uint32_t size);

/* Called before a collective, or the launch of a graph with collectives: raises if mr.explore cannot follow it, and in
 * finalizers. */
void mr_check_may_meet(lua_State *L);
/* Raises in a finalizer. It runs on the rank that collects garbage, which may not have made the object, so it has no
 * peers to wait for. */
void mr_check_no_finalizer(lua_State *L);

/* dist.c, for nccl.c: restores the ranks' state that an explored function has changed. */
void mr_bind_dist_put_back(lua_State *L);

mr_collectives *mr_bind_collectives(lua_State *L); /* made when they are first asked for */
/* The rank of this process; below 0: the script has joined no other processes. */
int mr_bind_rank_of_process(lua_State *L);
/* Saves the state of communicators for the runs of a function of mr.explore: see mr_collectives_keep (nccl.c). */
void mr_bind_nccl_keep(lua_State *L);
void mr_bind_nccl_put_back(lua_State *L);
void mr_bind_nccl_let_go(lua_State *L); /* also without a keep */
void mr_push_comm(lua_State *L, mr_comm *comm);
/* barrier(comm, token [, name]): token has one element, a zero; "new_group", "init": the purpose of the meeting */
int mr_comm_barrier(lua_State *L);
int mr_comm_reopen_own(lua_State *L); /* reopen(comm): the rank that closed it has it again */
/* The reason why mr.explore refuses them (mr_bind_explore_refuse). */
#define MR_RANKS_NOT_EXPLORED                                                                      \
    "mr.dist: other processes do not know in which order this one is carried out. Use "            \
    "millrace --ranks N instead of mpirun"

#endif
