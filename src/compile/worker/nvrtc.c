/* The calls of NVRTC: see worker.h.
 *
 * The declarations are our own, so a build without a toolkit has this file, too. Easiest to break: a newer release of
 * the library must not need a change here, so the architectures come from the library. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/worker/worker.h"

#define FIRST_ARCHITECTURE 75
#define MOST_STRINGS       4096

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
} api;

/* ISO C has no cast from an object pointer to a function pointer; POSIX gives dlsym's this meaning. */
static bool look_up(void *library, const char *symbol, void *out_function) {
    void *address = dlsym(library, symbol);
    memcpy(out_function, &address, sizeof address);
    return address != NULL;
}

bool worker_open(const char *path, char *name, size_t name_size, char *missing,
                 size_t missing_size) {
    int major = 0, minor = 0;
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(missing, missing_size, "%s", reason ? reason : "the library cannot be opened");
        return false;
    }
    bool is_whole = true;
#define X(function, symbol, parameters) is_whole &= look_up(library, symbol, &api.function);
    NVRTC_LIST(X)
#undef X
    if (!is_whole || api.version(&major, &minor) != SUCCESS) {
        snprintf(missing, missing_size, "%s lacks a function: it is older than CUDA 11.2", path);
        return false;
    }
    snprintf(name, name_size, "NVRTC %d.%d", major, minor);
    return true;
}

/* The newest of the library's architectures that the device can run; 0: none. */
static int choose_architecture(int64_t wanted) {
    int count = 0, best = 0;
    if (api.architecture_count(&count) != SUCCESS || count <= 0) return 0;
    int *list = calloc((size_t)count, sizeof *list);
    if (list && api.architectures(list) == SUCCESS)
        for (int i = 0; i < count; i++)
            if (list[i] <= wanted && list[i] > best) best = list[i];
    free(list);
    return best < FIRST_ARCHITECTURE ? 0 : best;
}

void worker_warm_up(void) {
    static const char text[] = "__global__ void f(float *x) { *x = 1; }";
    char option[40];
    const char *const options[] = {option};
    program handle = NULL;
    snprintf(option, sizeof option, "--gpu-architecture=compute_%d", choose_architecture(1000));
    if (api.create(&handle, text, "warm_up.cu", 0, NULL, NULL) != SUCCESS) return;
    api.compile(handle, 1, options);
    api.destroy(&handle);
}

/* Appends the text that a pair of the library's functions returns. Sizes include the NUL. */
static bool put_text(program handle, int (*size_of)(program, size_t *), int (*get)(program, char *),
                     mr_buffer *out) {
    size_t size = 0;
    if (size_of(handle, &size) != SUCCESS) return false;
    char *text = calloc(size + 1, 1);
    bool is_there = text && (size == 0 || get(handle, text) == SUCCESS);
    if (is_there) mr_wire_put_text(out, text);
    free(text);
    return is_there;
}

typedef struct {
    const char *items[MOST_STRINGS];
    int count;
} strings;

static void take_strings(mr_wire *request, strings *out) {
    int64_t count = mr_wire_take_number(request);
    if (count < 0 || count > MOST_STRINGS - 1) request->failed = true;
    while (!request->failed && out->count < count)
        out->items[out->count++] = mr_wire_take(request, NULL);
}

static void put_entries(program handle, const strings *names, mr_buffer *answer) {
    for (int i = 0; i < names->count; i++) {
        const char *lowered = NULL;
        bool is_known = api.lowered_name(handle, names->items[i], &lowered) == SUCCESS && lowered;
        mr_wire_put_text(answer, is_known ? lowered : "");
    }
}

static void answer_failure(mr_buffer *answer, mr_wire_result result, int64_t detail) {
    mr_buffer_free(answer);
    mr_wire_put_number(answer, result);
    mr_wire_put_number(answer, detail);
}

static void compile_program(program handle, const strings *options, const strings *names,
                            mr_buffer *answer) {
    for (int i = 0; i < names->count; i++)
        if (api.add_name(handle, names->items[i]) != SUCCESS) {
            answer_failure(answer, MR_WIRE_BAD_NAME, i);
            return;
        }
    int result = api.compile(handle, options->count, options->items);
    bool is_rejected = result == COMPILATION || result == INVALID_OPTION;
    mr_wire_put_number(answer, is_rejected ? MR_WIRE_REJECTED : MR_WIRE_COMPILED);
    bool is_whole = put_text(handle, api.log_size, api.log, answer);
    if (result == SUCCESS) {
        is_whole = is_whole && put_text(handle, api.ptx_size, api.ptx, answer);
        put_entries(handle, names, answer);
    }
    if (result == OUT_OF_MEMORY || !is_whole || answer->failed)
        answer_failure(answer, MR_WIRE_NO_MEMORY, 0);
    else if (result != SUCCESS && !is_rejected) answer_failure(answer, MR_WIRE_FAILED, result);
}

/* The fields: the device's architecture, the file's name, the text, options, names, names of headers, their texts. */
bool worker_compile(mr_wire *request, mr_buffer *answer) {
    static strings options, names, headers, texts;
    char arch[40];
    program handle = NULL;
    options.count = names.count = headers.count = texts.count = 0;
    int architecture = choose_architecture(mr_wire_take_number(request));
    const char *file = mr_wire_take(request, NULL), *text = mr_wire_take(request, NULL);
    snprintf(arch, sizeof arch, "--gpu-architecture=compute_%d", architecture);
    take_strings(request, &options);
    options.items[options.count++] = arch;
    take_strings(request, &names);
    take_strings(request, &headers);
    take_strings(request, &texts);
    if (request->failed || headers.count != texts.count) return false;
    if (!architecture) {
        answer_failure(answer, MR_WIRE_NO_ARCHITECTURE, 0);
        return true;
    }
    if (api.create(&handle, text, file, headers.count, texts.items, headers.items) != SUCCESS) {
        answer_failure(answer, MR_WIRE_NO_MEMORY, 0);
        return true;
    }
    compile_program(handle, &options, &names, answer);
    api.destroy(&handle);
    return true;
}
