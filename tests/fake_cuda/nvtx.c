/* A tool of NVTX, in the fake driver's library (NVTX_INJECTION64_PATH names it): counts ranges and keeps the last name. */
#include "fake.h"

#if __has_include(<nvtx3/nvToolsExt.h>)

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

static int domain; /* what the handle points to */

static nvtxDomainHandle_t NVTX_API create(const char *name) {
    snprintf(fake_cuda.range_domain, sizeof fake_cuda.range_domain, "%s", name);
    return (nvtxDomainHandle_t)(void *)&domain;
}

static int NVTX_API push(nvtxDomainHandle_t of, const nvtxEventAttributes_t *attributes) {
    if ((void *)of == &domain)
        snprintf(fake_cuda.range, sizeof fake_cuda.range, "%s", attributes->message.ascii);
    fake_cuda.ranges++;
    return fake_cuda.open_ranges++;
}

static int NVTX_API pop(nvtxDomainHandle_t of) {
    (void)of;
    return --fake_cuda.open_ranges;
}

/* NVTX calls it once, and then what is put into its tables. */
int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    const NvtxExportTableCallbacks *tables =
        (const NvtxExportTableCallbacks *)get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned size;
    if (!tables || !tables->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}

#endif
