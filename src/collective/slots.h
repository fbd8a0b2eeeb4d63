/* Ranks that torchrun has started. MPI does not know them: mpirun starts a slot for each of them, and the rank
 * becomes to MPI what its slot is.
 *
 * Rank 0 starts mpirun, with the program src/mpi/slot.c. Slot k sends its environment to rank k, by a socket that has
 * no file, and waits until that closes. Nothing else goes over the socket. */
#ifndef MR_COLLECTIVE_SLOTS_H
#define MR_COLLECTIVE_SLOTS_H

#include "collective/transport.h"

/* Waits until all ranks have come here, at most `timeout` seconds (0: for ever), and takes over the slot of this one:
 * MPI can be started then. If MPI ends the slot, this process gets SIGTERM. `program`: the path of the slots'. False:
 * `why` says why not. */
bool mr_slots_take(const mr_started *launch, const char *program, double timeout, char *why,
                   size_t size);

#endif
