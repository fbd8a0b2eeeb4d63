/* Ranges of NVTX: see nvtx.h. NVTX is a header: it finds the tool by itself, in the library that NVTX_INJECTION64_PATH
 * names, or in one that the tool has linked. So its functions and their state are compiled into this file. */
#include "cuda/runs/nvtx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

static bool is_wanted(void) {
    const char *wanted = getenv("MILLRACE_NVTX");
    if (wanted && wanted[0]) return strcmp(wanted, "0") != 0;
    const char *tool = getenv("NVTX_INJECTION64_PATH");
    return tool && tool[0];
}

void *mr_cuda_nvtx_open(void) {
    return is_wanted() ? nvtxDomainCreateA("millrace") : NULL;
}

void mr_cuda_nvtx_close(void *domain) {
    if (domain) nvtxDomainDestroy(domain);
}

void mr_cuda_nvtx_push(void *domain, const mr_command *command) {
    char text[256];
    const char *name = command->name;
    if (command->where.file) {
        snprintf(text, sizeof text, "%.100s %.120s:%d", name, command->where.file,
                 command->where.line);
        name = text;
    }
    nvtxEventAttributes_t range = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                   .message.ascii = name};
    nvtxDomainRangePushEx(domain, &range);
}

void mr_cuda_nvtx_pop(void *domain) {
    nvtxDomainRangePop(domain);
}

#else

void *mr_cuda_nvtx_open(void) {
    return NULL;
}
void mr_cuda_nvtx_close(void *domain) {
    (void)domain;
}
void mr_cuda_nvtx_push(void *domain, const mr_command *command) {
    (void)domain, (void)command;
}
void mr_cuda_nvtx_pop(void *domain) {
    (void)domain;
}

#endif
