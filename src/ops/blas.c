/* Opens the first CBLAS that the system has, at the first product that is worth it: start-up does not
 * pay for it, and a machine without one runs all the same. The library keeps its own choice of threads. */
#include "ops/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static const char *const names[] = {"libopenblas.so.0", "libcblas.so.3", "libblas.so.3"};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static mr_blas blas;
static const char *found;

/* ISO C has no cast from an object pointer to a function pointer; POSIX gives dlsym's this meaning. */
static bool find(void *library, const char *symbol, void *out_function) {
    void *address = dlsym(library, symbol);
    memcpy(out_function, &address, sizeof address);
    return address != NULL;
}

static void open_library(void) {
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) continue;
        if (find(library, "cblas_sgemm", &blas.sgemm) &&
            find(library, "cblas_dgemm", &blas.dgemm) &&
            find(library, "cblas_sgemv", &blas.sgemv) && find(library, "cblas_dgemv", &blas.dgemv))
            found = names[i];
        else dlclose(library);
    }
}

const mr_blas *mr_blas_open(void) {
    pthread_once(&once, open_library);
    return found ? &blas : NULL;
}

const char *mr_blas_name(void) {
    return mr_blas_open() ? found : NULL;
}
