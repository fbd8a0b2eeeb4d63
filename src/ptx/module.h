/* A loaded module: the tree, its decoded functions, and data that launches share. Nothing changes after loading, except
 * the count of references. */
#ifndef MR_PTX_MODULE_H
#define MR_PTX_MODULE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/region.h"
#include "base/vec.h"
#include "ptx/code.h"

/* For a kernel. */
typedef struct {
    /* offset of each variable of the module in shared memory; UINT64_MAX: not used here */
    uint64_t *shared_of_module;
    /* by function, of each of its variables; NULL: it is not called */
    uint64_t **shared_of_function;
    uint32_t static_shared; /* where dynamic shared memory begins */
} ptx_shared_layout;

struct mr_ptx_module {
    _Atomic uint32_t references;
    char *name;
    ptx_tree tree;
    mr_region region;      /* of all that was decoded */
    ptx_routine *routines; /* by function; codes NULL: only declared */
    uint32_t code_count;   /* of all routines */
    uint32_t access_count; /* of loads, stores and atomics: indices of ptx_memory_code */

    mr_ptx_kernel *kernels;
    ptx_shared_layout *layouts; /* by kernel */
    uint32_t kernel_count;

    pthread_mutex_t *printing; /* held while a launch prints */

    char *constants; /* 64-byte aligned */
    size_t constant_bytes;
    MR_VEC(ptx_address_slot) slots;
    uint32_t launch_bytes; /* of the launch's area */
};

#endif
