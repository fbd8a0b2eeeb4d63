/* Selects a backend of this build, and has the entry point of the Lua module: see module.h. */
#include "host/module.h"

#include <stdlib.h>
#include <string.h>

#include "bind/bind.h"
#include "bind/hazard/hazard.h"
#include "bind/source.h"
#include "bind/hazard/waits.h"
#include "model/backend.h"
#include "virtual/virtual.h"
#if MR_HAVE_CUDA
#include "cuda/cuda.h"
#endif

/* Selects a GPU if one can be used. The reason why none can be used is dropped here; `millrace doctor` prints it. A
 * device model or a chooser needs the virtual GPU, and so selects it. */
static const mr_backend *select_automatically(const mr_machine_options *options) {
#if MR_HAVE_CUDA
    if (!options->model && !options->chooser) {
        mr_status status = mr_cuda_probe();
        if (!status) return &mr_cuda_backend;
        mr_error_destroy(status);
    }
#else
    (void)options;
#endif
    return &mr_virtual_backend;
}

static mr_status select_cuda(const mr_machine_options *options, const mr_backend **out_backend) {
#if MR_HAVE_CUDA
    if (options->model || options->chooser)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "--model and --chooser need --device virtual");
    *out_backend = &mr_cuda_backend;
    return MR_OK;
#else
    (void)options, (void)out_backend;
    return mr_fail(MR_CODE_NOT_SUPPORTED,
                   "this build has no CUDA backend: use --device virtual, which needs no GPU");
#endif
}

mr_status mr_backend_select(mr_machine_options *options, const mr_backend **out_backend) {
    if (options->device && strcmp(options->device, "auto") == 0) options->device = NULL;
    const char *device = options->device;
    size_t length = device ? strcspn(device, ":") : 0;
    *out_backend = NULL;
    if (!device) {
        *out_backend = select_automatically(options);
        return MR_OK;
    }
    if (length == 7 && strncmp(device, "virtual", 7) == 0) {
        *out_backend = &mr_virtual_backend;
        return MR_OK;
    }
    if (length == 4 && strncmp(device, "cuda", 4) == 0) return select_cuda(options, out_backend);
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "there is no device `%s`: use auto, virtual, virtual:N, cuda or cuda:I", device);
}

const mr_backend *mr_backend_simulated(void) {
    return &mr_virtual_backend;
}

__attribute__((visibility("default"))) int luaopen_millrace(lua_State *L) {
    if (mr_bind_push(L)) return 1;
    mr_machine_options options = {.device = getenv("MILLRACE_DEVICE")};
    const mr_backend *backend;
    mr_status status = mr_backend_select(&options, &backend);
    if (!status) status = mr_bind_open(L, backend, &options);
    if (!status) mr_bind_waits_predict(L, mr_backend_simulated());
    const char *check = getenv("MILLRACE_CHECK");
    if (!status && check && *check) status = mr_bind_check(L, check, false);
    if (!status) {
        mr_source_watch(L);
        return 1;
    }
    lua_pushfstring(L, "millrace: %s", status->message);
    mr_error_destroy(status);
    return lua_error(L);
}
