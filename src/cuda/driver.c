/* Opens CUDA's libraries and finds their functions: see driver.h. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "cuda/state.h"

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

/* What opening each library gave. Written once, under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool tried, open;
    char *path;    /* NULL: no file */
    char *problem; /* one sentence, NULL: none */
} found[MR_CUDA_LIBRARY_COUNT];
static int version;
static bool eager;
static atomic_bool forked;

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
/* What it writes into its records is that of the build's toolkit, or begins in the same way. */
static char *check_cupti_version(void) {
    uint32_t found_version = 0;
    if (mr_cupti.GetVersion) mr_cupti.GetVersion(&found_version);
    if (found_version >= MR_CUDA_CUPTI_OLDEST && found_version <= MR_CUDA_CUPTI_NEWEST) return NULL;
    return sentence("it is of version %u, and this build needs %d to %d", found_version,
                    MR_CUDA_CUPTI_OLDEST, MR_CUDA_CUPTI_NEWEST);
}
#endif

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

/* ---- forks */

/* Runs in the child of a fork. Its only thread has no context. Another thread of the parent may have held the lock when
 * the process forked, so the lock is made anew. */
static void forget_driver(void) {
    pthread_mutex_init(&lock, NULL);
    mr_cuda_current = NULL;
    mr_cuda_turn_forget();
    atomic_store(&forked, true);
}

bool mr_cuda_is_forked(void) {
    return atomic_load_explicit(&forked, memory_order_relaxed);
}

mr_status mr_cuda_forked(void) {
    return mr_fail(MR_CODE_NOT_SUPPORTED,
                   "this process was forked from one that uses the GPU, and CUDA does not work in "
                   "such a child: use the GPU in the parent, or start a new program for the child");
}

/* ---- starting the driver */

/* CUDA often finds no GPU because CUDA_VISIBLE_DEVICES hides it. */
static mr_status no_device(void) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && !visible[0])
        return mr_fail(MR_CODE_INVALID_DEVICE,
                       "CUDA_VISIBLE_DEVICES is empty, which hides every GPU: unset it");
    if (visible)
        return mr_fail(MR_CODE_INVALID_DEVICE,
                       "CUDA_VISIBLE_DEVICES is `%s`, and there is no such GPU: unset it, or name "
                       "one that `nvidia-smi -L` lists",
                       visible);
    return mr_fail(
        MR_CODE_INVALID_DEVICE,
        "the NVIDIA driver is installed, but it finds no GPU: see what `nvidia-smi` says");
}

static mr_status cannot_start(CUresult result) {
    switch (result) {
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE: return no_device();
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "the NVIDIA driver in the kernel and libcuda.so.1 have different versions: "
                       "restart the computer after an update of the driver");
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "the compatibility package of CUDA does not work with this GPU: remove its "
                       "folder from LD_LIBRARY_PATH");
    case CUDA_ERROR_SYSTEM_NOT_READY:
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "the GPUs of this system are not ready: start the NVIDIA fabric manager");
    case CUDA_ERROR_STUB_LIBRARY:
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "%s is the toolkit's stub and not a driver: remove its folder from "
                       "LD_LIBRARY_PATH",
                       found[MR_CUDA_LIBRARY_DRIVER].path);
    default: return mr_cuda_complain(result, "the NVIDIA driver does not start");
    }
}

/* With this setting all kernels are loaded together with their module, before anything runs. By default CUDA loads a
 * kernel at its first launch, and that load waits for the device, so two streams would not overlap at their first
 * launches. The setting makes the start about ten milliseconds longer. A value that the user has set is kept. */
static void load_eagerly(void) {
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    eager = strcmp(getenv("CUDA_MODULE_LOADING"), "EAGER") == 0;
}

bool mr_cuda_loads_eagerly(void) {
    return eager;
}

/* Called once in a process, because setenv is not safe while another thread calls getenv. */
static void prepare(void) {
    load_eagerly();
    pthread_atfork(NULL, NULL, forget_driver);
}

mr_status mr_cuda_driver_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (mr_cuda_is_forked()) return mr_cuda_forked();
    MR_TRY(mr_cuda_library_open(MR_CUDA_LIBRARY_DRIVER));
    pthread_once(&once, prepare);
    CUresult result = mr_cu.Init(0);
    if (result != CUDA_SUCCESS) return cannot_start(result);
    int count = 0;
    result = mr_cu.DeviceGetCount(&count);
    if (result != CUDA_SUCCESS) return cannot_start(result);
    return count ? MR_OK : no_device();
}

int mr_cuda_driver_version(void) {
    return version;
}
