/* Whether this process was started as one of several ranks, and the library that connects them (fabric.h). */
#ifndef MR_COLLECTIVE_TRANSPORT_H
#define MR_COLLECTIVE_TRANSPORT_H

#include "base/status.h"
#include "collective/fabric.h"

typedef struct {
    const char *by; /* the launcher: "mpirun", "srun", "torchrun"; NULL: none, it is alone */
    uint32_t rank, size;
    uint32_t local_rank; /* its rank on its computer; 0 also if it is unknown */
} mr_started;

/* Reads the variables of the environment. A world of one rank counts as not started. */
mr_started mr_started_find(void);

/* Joins the ranks of `launch`. NOT_SUPPORTED: the module is not there, MPI does not know of them, or they did not all
 * come within `timeout` seconds. If MPI has started them, MPI itself waits for them, without a limit. */
mr_status mr_transport_open(const mr_started *launch, double timeout, mr_fabric **out_fabric);
/* For `doctor`: whether the module and mpirun are there. */
void mr_transport_describe(void (*say)(const char *what, const char *text));

#endif
