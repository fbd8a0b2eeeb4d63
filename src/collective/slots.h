/* Ranks that torchrun has started. MPI does not know them. So mpirun starts a slot process for each of them, and the
 * rank takes the slot's place in MPI.
 *
 * Rank 0 starts mpirun, with the program src/mpi/slot.c. Slot k sends its environment to rank k, by a socket that has
 * no file, and waits until that closes. Nothing else goes over the socket. */
#ifndef MR_COLLECTIVE_SLOTS_H
#define MR_COLLECTIVE_SLOTS_H

#include "collective/transport.h"

/* Waits until all ranks have called this, at most `timeout` seconds (0: for ever), and takes over this rank's slot.
 * After that MPI can be started. If MPI ends the slot, this process gets SIGTERM. `program`: the path of the slots'
 * program. False: `why` has the reason. */
bool mr_slots_take(const mr_started *launch, const char *program, double timeout, char *why,
                   size_t size);

#endif
