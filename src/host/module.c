/* The backends of this build, and the entry point of the loadable module: see module.h. */
#include "host/module.h"

#include <stdlib.h>
#include <string.h>

#include "bind/bind.h"
#include "model/backend.h"
#include "virtual/virtual.h"

mr_status mr_backend_select(mr_machine_options *options, const mr_backend **out_backend) {
    if (options->device && strcmp(options->device, "auto") == 0) options->device = NULL;
    const char *device = options->device;
    size_t length = device ? strcspn(device, ":") : 0;
    *out_backend = &mr_virtual_backend;
    if (!device) return MR_OK;
    if (length == 7 && strncmp(device, "virtual", 7) == 0) return MR_OK;
    *out_backend = NULL;
    if (length == 4 && strncmp(device, "cuda", 4) == 0)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "this build has no CUDA backend: --device virtual runs without a GPU");
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "there is no device `%s`: known are auto, virtual and virtual:N", device);
}

int luaopen_millrace(lua_State *L) {
    mr_machine_options options = {.device = getenv("MILLRACE_DEVICE")};
    const mr_backend *backend;
    mr_status status = mr_backend_select(&options, &backend);
    if (!status) status = mr_bind_open(L, backend, &options);
    if (!status) return 1;
    lua_pushfstring(L, "millrace: %s", status->message);
    mr_error_destroy(status);
    return lua_error(L);
}
