/* A world: this process is one rank of several, which a transport connects (fabric.h). On virtual GPUs the machine has
 * a device for each rank of the world, and simulates that of its own rank.
 *
 * Ranks meet in rounds. A rank takes part in a round when it has called a collective, and parks. Each sends its calls
 * to all others. When all ranks have parked or ended, each has all calls, and finds by the same rules the same
 * meetings (match.c), mistakes and deadlocks. The calls of other ranks have *stand-ins*: tensors of pinned memory, and
 * a stream for each of theirs, on their devices.
 *
 * A meeting of this rank is submitted in two parts. First its own member is submitted. The device advances until that
 * has begun, and the other ranks get its time and its bytes. Once theirs have come, the stand-ins are submitted, each
 * to begin at the time of its rank. So nothing waits for another process after the call. Data that another rank changes
 * while a collective reads them are those at the begin of its member.
 *
 * On real devices a process has one, and NCCL connects them (watch.c). Rounds are the same. The process submits its own
 * member of a meeting only; stand-ins have no memory, and the meeting orders nothing after other ranks. While the host
 * waits for the device it reads messages of other ranks, because a failed rank leaves a collective without a peer.
 *
 * A mistake, a deadlock, a time-out or the failure of a rank separates the ranks for good. All later calls fail with
 * that error. */
#ifndef MR_COLLECTIVE_WORLD_H
#define MR_COLLECTIVE_WORLD_H

#include "base/buffer.h"
#include "collective/comm.h"
#include "collective/fabric.h"

/* Takes the fabric, also on failure. `timeout`: seconds that a call waits for other ranks; 0: for ever. It can be tried
 * once. `where`: the script's line, for mr_world_not_joined. */
mr_status mr_world_join(mr_collectives *collectives, mr_fabric *fabric, double timeout,
                        mr_site where);
/* NULL, or why it cannot be joined: that has failed before. */
mr_status mr_world_not_joined(const mr_collectives *collectives);
bool mr_world_is_joined(const mr_collectives *collectives);
void mr_world_set_timeout(mr_collectives *collectives, double timeout);
uint32_t mr_world_local_rank(const mr_collectives *collectives);
/* Tells the other ranks that this rank's script has failed. Does nothing if no world is joined. */
void mr_world_fail(mr_collectives *collectives, const char *error);
void mr_world_leave(mr_collectives *collectives); /* the rank has ended; likewise */

/* Call it after the script's end, before mr_world_leave: sends bytes of this rank to rank 0. Takes the buffer's
 * contents. */
mr_status mr_world_hand_over(mr_collectives *collectives, mr_buffer *bytes);
/* On rank 0: tells the others that it has ended, and waits for their ends. The limit is the world's time-out, or
 * seconds if a rank has failed. out[rank]: the bytes that it handed over, borrowed until mr_world_leave; empty:
 * none. */
typedef struct {
    const char *bytes;
    size_t size;
} mr_world_handed;
void mr_world_gather(mr_collectives *collectives, mr_world_handed out[MR_MEETING_MOST]);

/* Makes the group `number` (from 1) of these ranks, or finds it if another rank has already made it. On real devices
 * all ranks call it at the same time, and it waits for all. *out_comm: this rank's handle, borrowed; NULL: it is not in
 * the group. INVALID_ARGUMENT: another rank has made it with other ranks. */
mr_status mr_world_group(mr_collectives *collectives, uint32_t number, const uint32_t *ranks,
                         uint32_t count, mr_comm **out_comm);

#endif
