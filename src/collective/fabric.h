/* The contract of a transport: what carries bytes between the processes of a world. src/mpi is the only one.
 *
 * A transport is a library of its own, which is opened at run time (transport.h). So it uses nothing of this program,
 * and errors are texts. One thread calls; nothing blocks. */
#ifndef MR_COLLECTIVE_FABRIC_H
#define MR_COLLECTIVE_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_FABRIC_VERSION 1

typedef enum { MR_ARRIVAL_NONE, MR_ARRIVAL_MESSAGE, MR_ARRIVAL_GONE } mr_arrival;

typedef struct mr_fabric mr_fabric;
struct mr_fabric {
    uint32_t version;
    uint32_t rank, size; /* of the world */
    uint32_t local_rank; /* among the ranks of this computer */
    /* At least one byte. Messages of one rank to another arrive in their order. Takes `bytes`, which came from malloc.
     * NULL, or a text that says what failed. */
    const char *(*send)(mr_fabric *fabric, uint32_t to, void *bytes, size_t size);
    /* MESSAGE: the caller frees *out_bytes. GONE: that rank has closed its fabric; nothing more will come from it. */
    mr_arrival (*receive)(mr_fabric *fabric, uint32_t from, void **out_bytes, size_t *out_size);
    /* Called after the last send. When the process exits, it waits until all ranks have closed, because launchers end
     * the others when one exits with an error. `failed`: if they do not close within seconds, it ends all of them. A
     * process that exits without it closes, too. */
    void (*close)(mr_fabric *fabric, bool failed);
};

/* The function that the library exports under the name "mr_fabric_open": joins the world. NULL, or a text that says why
 * not. */
typedef const char *mr_fabric_open_function(mr_fabric **out_fabric);

#endif
