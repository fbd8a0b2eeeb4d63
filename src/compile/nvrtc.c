/* NVRTC: see nvrtc.h.
 *
 * The declarations are our own, so a build without a toolkit has this file, too. Easiest to break: a newer release of
 * the library must not need a change here, so the architectures come from the library, and a name that it lacks only
 * turns off what needs it. */
#include "compile/nvrtc.h"
#include "compile/signals.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/embedded.h"

typedef struct program_handle *program;
enum { SUCCESS = 0, OUT_OF_MEMORY = 1, INVALID_OPTION = 5, COMPILATION = 6 };

#define NVRTC_LIST(X)                                                                              \
    X(version, "nvrtcVersion", (int *major, int *minor))                                           \
    X(create, "nvrtcCreateProgram",                                                                \
      (program * out, const char *text, const char *name, int header_count,                        \
       const char *const *headers, const char *const *include_names))                              \
    X(destroy, "nvrtcDestroyProgram", (program * handle))                                          \
    X(add_name, "nvrtcAddNameExpression", (program handle, const char *name))                      \
    X(compile, "nvrtcCompileProgram",                                                              \
      (program handle, int option_count, const char *const *options))                              \
    X(log_size, "nvrtcGetProgramLogSize", (program handle, size_t * size))                         \
    X(log, "nvrtcGetProgramLog", (program handle, char *log))                                      \
    X(ptx_size, "nvrtcGetPTXSize", (program handle, size_t * size))                                \
    X(ptx, "nvrtcGetPTX", (program handle, char *ptx))                                             \
    X(lowered_name, "nvrtcGetLoweredName", (program handle, const char *name, const char **out))   \
    X(architecture_count, "nvrtcGetNumSupportedArchs", (int *count))                               \
    X(architectures, "nvrtcGetSupportedArchs", (int *list))

static struct {
#define X(name, symbol, parameters) int(*name) parameters;
    NVRTC_LIST(X)
#undef X
    int (*set_flow)(program handle, int (*callback)(void *, void *),
                    void *payload); /* may be NULL */
} api;

/* Written once, under `found_once` and `opened_once`. */
static pthread_once_t found_once = PTHREAD_ONCE_INIT, opened_once = PTHREAD_ONCE_INIT;
static char *found;          /* the path */
static char *include_folder; /* of the toolkit, beside the library; NULL: not found */
static void *library;
static char name[48];
static char missing[256];

#define MOST_HEADERS 64

static const char *const versions[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
#define VERSION_COUNT (sizeof versions / sizeof *versions)

/* ---------------------------------------------------------------- where it is */

static bool set_found(const char *folder, const char *file) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, file) < 0) return false;
    if (access(path, R_OK) != 0) {
        free(path);
        return false;
    }
    found = path;
    return true;
}

static bool find_in(const char *folder) {
    for (size_t i = 0; i < VERSION_COUNT; i++)
        if (set_found(folder, versions[i])) return true;
    return false;
}

static bool find_in_toolkit(const char *toolkit) {
    static const char *const folders[] = {"lib64", "targets/x86_64-linux/lib",
                                          "targets/sbsa-linux/lib", "lib"};
    char path[4096];
    for (size_t i = 0; toolkit && *toolkit && i < sizeof folders / sizeof *folders; i++)
        if (snprintf(path, sizeof path, "%s/%s", toolkit, folders[i]) < (int)sizeof path &&
            find_in(path))
            return true;
    return false;
}

/* The loader's own places: its cache, LD_LIBRARY_PATH. */
static bool find_by_loader(void) {
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        void *handle = dlopen(versions[i], RTLD_LAZY | RTLD_LOCAL);
        struct link_map *map;
        if (!handle) continue;
        if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name && *map->l_name)
            found = strdup(map->l_name);
        dlclose(handle);
        if (found) return true;
    }
    return false;
}

/* The newest python3.N of one prefix: PREFIX/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib. */
static bool find_in_python(const char *prefix) {
    static const char *const packages[] = {"site-packages", "dist-packages"};
    static const char *const folders[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};
    char path[4096];
    if (!prefix || !*prefix) return false;
    for (int minor = 20; minor >= 8; minor--)
        for (int i = 0; i < 4; i++)
            if (snprintf(path, sizeof path, "%s/lib/python3.%d/%s/%s", prefix, minor,
                         packages[i / 2], folders[i % 2]) < (int)sizeof path &&
                find_in(path))
                return true;
    return false;
}

static bool find_in_user_python(void) {
    char path[4096];
    const char *home = getenv("HOME");
    return home && snprintf(path, sizeof path, "%s/.local", home) < (int)sizeof path &&
           find_in_python(path);
}

/* TOOLKIT/lib64/libnvrtc.so.13 and TOOLKIT/targets/x86_64-linux/lib/... have TOOLKIT/include and targets/.../include. */
static void find_include_folder(void) {
    char *path = realpath(found, NULL);
    char *end = path ? strrchr(path, '/') : NULL;
    if (end) *end = '\0';
    end = end ? strrchr(path, '/') : NULL;
    if (end && asprintf(&include_folder, "%.*s/include", (int)(end - path), path) < 0)
        include_folder = NULL;
    free(path);
    if (include_folder && access(include_folder, R_OK) != 0) {
        free(include_folder);
        include_folder = NULL;
    }
}

static bool is_chosen(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && strstr(slash, "nvrtc");
}

static void find(void) {
    const char *chosen = getenv("MILLRACE_COMPILER");
    if (is_chosen(chosen)) {
        found = strdup(chosen);
        if (found) find_include_folder();
        return;
    }
    if (find_in_toolkit(getenv("CUDA_HOME")) || find_in_toolkit(getenv("CUDA_PATH")) ||
        find_in_toolkit("/usr/local/cuda") || find_in_toolkit("/opt/cuda") || find_by_loader() ||
        find_in_python(getenv("VIRTUAL_ENV")) || find_in_python(getenv("CONDA_PREFIX")) ||
        find_in_user_python() || find_in_python("/usr/local"))
        find_include_folder();
}

const char *mr_nvrtc_path(void) {
    pthread_once(&found_once, find);
    return found;
}

/* ---------------------------------------------------------------- opening it */

/* ISO C has no cast from an object pointer to a function pointer; POSIX gives dlsym's this meaning. */
static bool look_up(const char *symbol, void *out_function) {
    void *address = dlsym(library, symbol);
    memcpy(out_function, &address, sizeof address);
    return address != NULL;
}

static void open_library(void) {
    int major = 0, minor = 0;
    if (!mr_nvrtc_path()) {
        snprintf(missing, sizeof missing, "libnvrtc.so was not found");
        return;
    }
    library = dlopen(found, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(missing, sizeof missing, "%s", reason ? reason : "the library cannot be opened");
        return;
    }
    bool is_whole = true;
#define X(function, symbol, parameters) is_whole &= look_up(symbol, &api.function);
    NVRTC_LIST(X)
#undef X
    look_up("nvrtcSetFlowCallback", &api.set_flow);
    if (!is_whole || api.version(&major, &minor) != SUCCESS) {
        snprintf(missing, sizeof missing, "%s lacks a function: it is older than CUDA 11.2", found);
        return;
    }
    snprintf(name, sizeof name, "NVRTC %d.%d", major, minor);
}

const char *mr_nvrtc_open(const char **out_missing) {
    pthread_once(&opened_once, open_library);
    *out_missing = missing;
    return *name ? name : NULL;
}

/* ---------------------------------------------------------------- compiling */

/* The newest of the library's architectures that the device can run; 0: none. */
static int choose_architecture(int wanted) {
    int count = 0, best = 0;
    if (api.architecture_count(&count) != SUCCESS || count <= 0) return 0;
    int *list = calloc((size_t)count, sizeof *list);
    if (list && api.architectures(list) == SUCCESS)
        for (int i = 0; i < count; i++)
            if (list[i] <= wanted && list[i] > best) best = list[i];
    free(list);
    return best < MR_FIRST_ARCHITECTURE ? 0 : best;
}

/* The C headers, which NVRTC does not have: names and texts, as many as MOST_HEADERS. */
static int list_headers(const char **out_names, const char **out_texts) {
    static const char folder[] = MR_COMPILE_HEADERS_STD;
    int count = 0;
    for (const mr_embedded *file = mr_embedded_files; file->name && count < MOST_HEADERS; file++) {
        if (strncmp(file->name, folder, sizeof folder - 1) != 0) continue;
        out_names[count] = file->name + sizeof folder - 1;
        out_texts[count++] = (const char *)file->data;
    }
    return count;
}

typedef struct {
    const mr_compile_source *source;
    struct timespec end;
    bool is_late, is_stopped;
} watch;

/* Several threads of the library may ask at a time; once the answer is 1 it stays so. */
static int must_stop(void *context, void *unused) {
    watch *w = context;
    struct timespec now;
    (void)unused;
    if (__atomic_load_n(&w->is_late, __ATOMIC_RELAXED) ||
        __atomic_load_n(&w->is_stopped, __ATOMIC_RELAXED))
        return 1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > w->end.tv_sec ||
        (now.tv_sec == w->end.tv_sec && now.tv_nsec > w->end.tv_nsec)) {
        __atomic_store_n(&w->is_late, true, __ATOMIC_RELAXED);
        return 1;
    }
    if (w->source->interrupted && w->source->interrupted(w->source->context)) {
        __atomic_store_n(&w->is_stopped, true, __ATOMIC_RELAXED);
        return 1;
    }
    return 0;
}

/* Appends what a pair of the library's functions gives. Sizes include the NUL. */
static bool take_text(program handle, int (*size_of)(program, size_t *),
                      int (*get)(program, char *), mr_buffer *out) {
    size_t size = 0;
    if (size_of(handle, &size) != SUCCESS || size == 0) return false;
    char *text = malloc(size);
    if (!text || get(handle, text) != SUCCESS) {
        free(text);
        return false;
    }
    mr_buffer_add(out, text, strnlen(text, size));
    free(text);
    return !out->failed;
}

static int run(program handle, const mr_compile_job *job, int architecture) {
    const mr_compile_source *source = job->source;
    char arch[40], include[4200], library_include[4200], users[4200];
    int count = 0;
    const char **options = calloc((size_t)source->option_count + 5, sizeof *options);
    if (!options) return OUT_OF_MEMORY;
    snprintf(arch, sizeof arch, "--gpu-architecture=compute_%d", architecture);
    options[count++] = arch;
    options[count++] = "-lineinfo";
    for (int i = 0; i < source->option_count; i++) options[count++] = source->options[i];
    if (mr_compile_put_folder(job, users, sizeof users)) options[count++] = users;
    if (include_folder &&
        snprintf(include, sizeof include, "-I%s", include_folder) < (int)sizeof include &&
        snprintf(library_include, sizeof library_include, "-I%s/cccl", include_folder) <
            (int)sizeof library_include) {
        options[count++] = include;
        options[count++] =
            library_include; /* from CUDA 13 on, what <cooperative_groups.h> includes */
    }
    mr_signal_guard guard;
    mr_signal_guard_begin(&guard);
    int result = api.compile(handle, count, options);
    mr_signal_guard_end(&guard);
    free(options);
    return result;
}

static void take_entries(program handle, const mr_compile_source *source, mr_compile_result *out) {
    for (int i = 0; i < source->name_count; i++) {
        const char *lowered = NULL;
        if (api.lowered_name(handle, source->names[i], &lowered) == SUCCESS && lowered)
            out->entries[i] = strdup(lowered);
    }
}

static mr_status compile_program(program handle, const mr_compile_job *job, int architecture,
                                 mr_compile_result *out) {
    const mr_compile_source *source = job->source;
    int limit = mr_compile_limit(source);
    watch w = {.source = source};
    clock_gettime(CLOCK_MONOTONIC, &w.end);
    w.end.tv_sec += limit / 1000;
    w.end.tv_nsec += limit % 1000 * 1000000L;
    for (int i = 0; i < source->name_count; i++)
        if (api.add_name(handle, source->names[i]) != SUCCESS)
            return mr_fail(MR_CODE_INVALID_ARGUMENT, "'%s' cannot be the name of a kernel",
                           source->names[i]);
    if (api.set_flow) api.set_flow(handle, must_stop, &w);

    int result = run(handle, job, architecture);
    if (w.is_stopped)
        return mr_fail(MR_CODE_INTERRUPTED, "compiling %s was interrupted", job->file);
    if (w.is_late)
        return mr_fail(MR_CODE_UNKNOWN, "NVRTC did not finish %s:%d within %g s", job->file,
                       job->line, limit / 1000.0);
    if (result == OUT_OF_MEMORY)
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "there is no memory to compile %s", job->file);
    take_text(handle, api.log_size, api.log, &out->log);
    if (result != SUCCESS) {
        out->is_rejected = result == COMPILATION || result == INVALID_OPTION;
        if (out->is_rejected) return MR_OK;
        return mr_fail(MR_CODE_UNKNOWN, "NVRTC failed on %s:%d with its error %d", job->file,
                       job->line, result);
    }
    if (!take_text(handle, api.ptx_size, api.ptx, &out->ptx))
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "there is no memory for the PTX of %s", job->file);
    take_entries(handle, source, out);
    return MR_OK;
}

static int create(const mr_compile_job *job, program *out) {
    const char *names[MOST_HEADERS], *texts[MOST_HEADERS];
    int count = list_headers(names, texts);
    mr_buffer text = {0};
    mr_compile_put_line(&text, job->line, job->file);
    mr_buffer_add(&text, job->source->text, job->source->size);
    int result =
        text.failed ? OUT_OF_MEMORY : api.create(out, text.data, job->file, count, texts, names);
    mr_buffer_free(&text);
    return result;
}

mr_status mr_nvrtc_compile(const mr_compile_job *job, mr_compile_result *out) {
    program handle = NULL;
    int architecture = choose_architecture(job->architecture);
    if (!architecture)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "%s knows no architecture that a device of compute capability %d.%d runs",
                       name, job->architecture / 10, job->architecture % 10);
    if (create(job, &handle) != SUCCESS)
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "there is no memory to compile %s", job->file);
    mr_compile_set_name(out->compiler, sizeof out->compiler, name);
    mr_status status = compile_program(handle, job, architecture, out);
    api.destroy(&handle);
    return status;
}
