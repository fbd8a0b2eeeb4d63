/* `millrace doctor` prints what the program found on this machine: see doctor.h. It changes nothing. */
#include "host/doctor.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <lua.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if MR_HAVE_READLINE
#include <readline/readline.h>
#endif

#include "base/buffer.h"
#include "base/embedded.h"
#include "collective/transport.h"
#include "compile/compile.h"
#include "host/call.h"
#include "host/module.h"
#include "model/backend.h"
#include "model/device.h"
#include "virtual/device_model.h"
#include "ops/blas.h"
#if MR_HAVE_CUDA
#include "cuda/cuda.h"
#endif

static void say(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const char *what, const char *format, ...) {
    va_list args;
    printf("%-16s", what);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static void say_build(void) {
    say("version", "millrace " MR_VERSION);
#if defined(__clang__)
    say("compiler", "clang %s", __clang_version__);
#else
    say("compiler", "gcc %s", __VERSION__);
#endif
    say("lua", LUA_RELEASE);
#if MR_HAVE_READLINE
    say("prompt", "GNU readline %s", rl_library_version);
#else
    say("prompt", "built without readline: the prompt has no history and no editing keys");
#endif
}

/* A model, and how many of its figures were measured: a prediction is as good as they are. */
static void say_model(const char *name) {
    device_model model;
    mr_status status = mr_device_model_load(name, &model);
    if (status) {
        say(name, "%s", status->message);
        mr_error_destroy(status);
        return;
    }
    char label[80];
    snprintf(label, sizeof label, "model %s", name);
    say(label, "%s: %d figures measured, %d told by the driver, %d published, %d assumed",
        model.name, model.figures.measured, model.figures.property, model.figures.published,
        model.figures.assumed + model.figures.untold);
}

static void say_models(void) {
    static const char folder[] = "models/", ending[] = ".model";
    for (const mr_embedded *file = mr_embedded_files; file->name; file++) {
        char name[64];
        size_t length = strlen(file->name);
        if (strncmp(file->name, folder, sizeof folder - 1) != 0) continue;
        length -= sizeof folder - 1;
        if (length > sizeof ending - 1) length -= sizeof ending - 1;
        snprintf(name, sizeof name, "%.*s", (int)length, file->name + sizeof folder - 1);
        say_model(name);
    }
}

static void say_devices(const mr_machine *machine) {
#if MR_HAVE_CUDA
    say("backend", "%s (this build has cuda and virtual)", machine->backend->name);
#else
    say("backend", "%s (this build has no other; it was built without CUDA)",
        machine->backend->name);
#endif
    for (int i = 0; i < machine->device_count; i++) {
        const mr_device_properties *properties = &machine->devices[i]->properties;
        char what[24];
        snprintf(what, sizeof what, "device %d", i);
        say(what, "%s, %d SMs, %.1f GB", properties->name, properties->sm_count,
            (double)properties->total_memory / 1e9);
    }
}

/* The memory of a virtual device is memory of this machine. `limit`: how many bytes the device may use; 0 on a real
 * GPU, which has its own memory. */
static void say_memory(uint64_t limit, const char *source) {
    double all = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (limit)
        say("memory", "%.1f GB in this machine; tensors on the device can use %.1f GB: %s",
            all / 1e9, (double)limit / 1e9, source);
    else say("memory", "%.1f GB in this machine", all / 1e9);
    say("processors", "%ld", sysconf(_SC_NPROCESSORS_ONLN));
}

static void say_blas(void) {
    const char *missing, *name = mr_blas_name(&missing);
    if (name) say("matrix product", "%s", name);
    else
        say("matrix product", "the built-in kernel, which is slower for large matrices: %s",
            missing);
}

static void say_line(const char *what, const char *text) {
    say(what, "%s", text);
}

#if MR_HAVE_CUDA
static void say_gpu(void) {
    mr_cuda_describe(say_line);
}
#else
static bool can_open(const char *library) {
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (handle) dlclose(handle);
    return handle != NULL;
}

static void say_gpu(void) {
    if (can_open("libcuda.so.1"))
        say("gpu driver",
            "libcuda.so.1 was found, but this build has no CUDA backend that could use it");
    else say("gpu driver", "none (there is no libcuda.so.1); the virtual GPU does not need one");
    say("nccl", "not used: it needs a build with CUDA; collectives of virtual GPUs need none");
}
#endif

int mr_doctor(mr_machine_options *options) {
    mr_machine *machine = NULL;
    const mr_backend *backend;
    say_build();
    say_models();
    mr_status status = mr_backend_select(options, &backend);
    if (!status) status = mr_machine_open(backend, options, &machine);
    if (status) {
        say_gpu(); /* its lines often tell the reason */
        return mr_host_complain_open(status);
    }
    say_devices(machine);
    const mr_device_properties *properties = &machine->first_device->properties;
    say_memory(properties->memory_limit, properties->memory_limit_source);
    mr_machine_close(machine);
    say_blas();
    mr_compile_describe(say_line);
    say_gpu();
    mr_transport_describe(say_line);
    return MR_EXIT_OK;
}
