/* Opens CUDA's libraries and finds their functions: see driver.h. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

mr_cuda_driver_table mr_cu;
mr_cuda_blas_table mr_cublas;
mr_cuda_nccl_table mr_nccl;
#if MR_CUDA_HAS_CUPTI
mr_cuda_cupti_table mr_cupti;
#endif

/* A program runs with each driver of the toolkit's major version of CUDA, or of a later one. */
#define NEEDED_VERSION (CUDA_VERSION / 1000 * 1000)

typedef struct {
    const char *text;
    size_t offset; /* of the function in its table */
} symbol;

static const symbol driver_symbols[] = {
#define X(name, text, parameters) {text, offsetof(mr_cuda_driver_table, name)},
    MR_CUDA_DRIVER_LIST(X)
#undef X
        {NULL, 0}};

static const symbol blas_symbols[] = {
#define X(name, text, parameters) {text, offsetof(mr_cuda_blas_table, name)},
    MR_CUDA_BLAS_LIST(X)
#undef X
        {NULL, 0}};

static const symbol nccl_symbols[] = {
#define X(name, text, parameters) {text, offsetof(mr_cuda_nccl_table, name)},
    MR_CUDA_NCCL_LIST(X)
#undef X
        {"ncclGetErrorString", offsetof(mr_cuda_nccl_table, GetErrorString)},
    {"ncclGetLastError", offsetof(mr_cuda_nccl_table, GetLastError)},
    {NULL, 0}};

#if MR_CUDA_HAS_CUPTI
static const symbol cupti_symbols[] = {
#define X(name, text, parameters) {text, offsetof(mr_cuda_cupti_table, name)},
    MR_CUDA_CUPTI_LIST(X)
#undef X
        {NULL, 0}};
#endif

static const struct {
    const char *title, *variable,
        *names; /* each name ends with a NUL, the list with an empty one */
} about[] = {
#define X(id, title, variable, names) {title, variable, names},
    MR_CUDA_LIBRARY_LIST(X)
#undef X
};

static char *check_version(void);
#if MR_CUDA_HAS_CUPTI
static char *check_cupti_version(void);
#endif

static const struct {
    const symbol *symbols;
    void *table;
    char *(*check_version)(void); /* optional: why it cannot be used, owned; NULL: it can */
} tables[] = {
    [MR_CUDA_LIBRARY_DRIVER] = {driver_symbols, &mr_cu, check_version},
    [MR_CUDA_LIBRARY_BLAS] = {blas_symbols, &mr_cublas, NULL},
    [MR_CUDA_LIBRARY_NCCL] = {nccl_symbols, &mr_nccl, NULL},
#if MR_CUDA_HAS_CUPTI
    [MR_CUDA_LIBRARY_CUPTI] = {cupti_symbols, &mr_cupti, check_cupti_version},
#endif
};

/* The result of opening each library. Written once, under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool tried, open;
    char *path;    /* NULL: no file */
    char *problem; /* one sentence, NULL: none */
} found[MR_CUDA_LIBRARY_COUNT];
static int version;

/* ---- finding */

/* The path of the file that dlopen found for a name without a folder. */
static char *path_of(void *library, const char *name) {
    struct link_map *map = NULL;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0])
        return strdup(map->l_name);
    return strdup(name);
}

static void *open_first(mr_cuda_library which) {
    const char *given = getenv(about[which].variable);
    bool is_given = given && given[0];
    mr_buffer why = {0};
    for (const char *name = is_given ? given : about[which].names; *name;
         name += strlen(name) + 1) {
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library) {
            found[which].path = path_of(library, name);
            mr_buffer_free(&why);
            return library;
        }
        const char *error = dlerror();
        if (why.size) mr_buffer_puts(&why, "; ");
        mr_buffer_puts(&why, error ? error : name);
        if (is_given) break;
    }
    found[which].problem = why.data;
    return NULL;
}

/* ISO C cannot cast an object pointer to a function pointer. POSIX says that the bytes of dlsym's result are a function
 * pointer, so they are copied. */
static const char *find_symbols(void *library, mr_cuda_library which) {
    const char *missing = NULL;
    for (const symbol *s = tables[which].symbols; s->text; s++) {
        void *address = dlsym(library, s->text);
        if (!address && !missing) missing = s->text;
        memcpy((char *)tables[which].table + s->offset, &address, sizeof address);
    }
    return missing;
}

static char *sentence(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *sentence(const char *format, ...) {
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) text = NULL;
    va_end(args);
    return text;
}

/* Called before missing functions are reported: an old driver lacks some, and its version is the better reason. */
static char *check_version(void) {
    if (!mr_cu.DriverGetVersion || mr_cu.DriverGetVersion(&version) != CUDA_SUCCESS) version = 0;
    if (version >= NEEDED_VERSION) return NULL;
    return sentence(
        "it supports CUDA %d.%d, and this build needs %d.%d or later: update the driver",
        version / 1000, version % 1000 / 10, NEEDED_VERSION / 1000, NEEDED_VERSION % 1000 / 10);
}

#if MR_CUDA_HAS_CUPTI
/* CUPTI of these versions writes records as the build's toolkit has them, or records that begin in the same way. */
static char *check_cupti_version(void) {
    uint32_t found_version = 0;
    if (mr_cupti.GetVersion) mr_cupti.GetVersion(&found_version);
    if (found_version >= MR_CUDA_CUPTI_OLDEST && found_version <= MR_CUDA_CUPTI_NEWEST) return NULL;
    return sentence("it is of version %u, and this build needs %d to %d", found_version,
                    MR_CUDA_CUPTI_OLDEST, MR_CUDA_CUPTI_NEWEST);
}
#endif

/* In the child of a fork: another thread of the parent may have held the lock. */
static void renew_lock(void) {
    pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, renew_lock);
}

static void open_library(mr_cuda_library which) {
    found[which].tried = true;
    void *library = open_first(which);
    if (!library) return;
    const char *missing = find_symbols(library, which);
    if (tables[which].check_version) found[which].problem = tables[which].check_version();
    if (missing && !found[which].problem)
        found[which].problem = sentence("it lacks the function %s", missing);
    if (found[which].problem) dlclose(library);
    else found[which].open = true;
}

mr_status mr_cuda_library_open(mr_cuda_library which) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    if (!found[which].tried) open_library(which);
    pthread_mutex_unlock(&lock);
    if (found[which].open) return MR_OK;
    const char *problem = found[which].problem ? found[which].problem : "no memory to open it";
    if (found[which].path)
        return mr_fail(MR_CODE_NOT_SUPPORTED, "%s (%s) cannot be used: %s", about[which].title,
                       found[which].path, problem);
    return mr_fail(MR_CODE_NOT_SUPPORTED, "%s cannot be opened: %s", about[which].title, problem);
}

const char *mr_cuda_library_path(mr_cuda_library which) {
    pthread_mutex_lock(&lock);
    const char *path = found[which].path;
    pthread_mutex_unlock(&lock);
    return path;
}

int mr_cuda_driver_version(void) {
    return version;
}
