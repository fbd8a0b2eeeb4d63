/* Opens the system's first CBLAS, at the first product that is large enough. So start-up takes no time for it, and it
 * is optional. The library keeps its own choice of threads.
 *
 * OpenBLAS tries to allocate its buffers until it succeeds, so for ever if the address space is used up. It needs one
 * when each of its threads starts, one at the first call, and one more for each further caller at a time. So it is
 * opened only where they fit. Where the address space is bounded, callers take turns. */
#include "ops/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *const names[] = {"libopenblas.so.0", "libcblas.so.3", "libblas.so.3"};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static mr_blas blas;
static const char *found, *missing = "no BLAS library was found (install libopenblas0)";

static bool is_bounded; /* the address space */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

#define MEGABYTE      ((size_t)1 << 20)
#define LIBRARY_SPACE (64 * MEGABYTE)  /* OpenBLAS for all processors: 38 */
#define THREAD_SPACE  (160 * MEGABYTE) /* a buffer, of 128 or less, and a stack */
#define MOST_THREADS  128              /* that it is built for, at most */

static bool has_limit(int resource) {
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

static bool has_space(void) {
    long threads = sysconf(_SC_NPROCESSORS_ONLN);
    if (threads < 1 || threads > MOST_THREADS) threads = MOST_THREADS;
    size_t size = LIBRARY_SPACE + (size_t)threads * THREAD_SPACE;
    void *space = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return false;
    munmap(space, size);
    return true;
}

/* ISO C has no cast from an object pointer to a function pointer; POSIX gives dlsym's this meaning. */
static bool find(void *library, const char *symbol, void *out_function) {
    void *address = dlsym(library, symbol);
    memcpy(out_function, &address, sizeof address);
    return address != NULL;
}

/* In the child of a fork: another thread of the parent may have held the lock. */
static void forget_turn(void) {
    pthread_mutex_init(&turn, NULL);
}

static void open_library(void) {
    pthread_atfork(NULL, NULL, forget_turn);
    is_bounded = has_limit(RLIMIT_AS) || has_limit(RLIMIT_DATA);
    if (!has_space()) {
        missing = "the address space is too small for a BLAS library (ulimit -v)";
        return;
    }
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

void mr_blas_enter(void) {
    if (is_bounded) pthread_mutex_lock(&turn);
}

void mr_blas_leave(void) {
    if (is_bounded) pthread_mutex_unlock(&turn);
}

const char *mr_blas_name(const char **out_missing) {
    const char *name = mr_blas_open() ? found : NULL;
    if (!name) *out_missing = missing;
    return name;
}
