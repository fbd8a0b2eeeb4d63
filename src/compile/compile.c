/* CUDA C++ to PTX: see compile.h. Chooses the compiler, asks the cache, and turns what a compiler says into an error. */
#include "compile/compile.h"

#include <stdlib.h>
#include <string.h>

#include "compile/clang.h"
#include "compile/internal.h"
#include "compile/nvrtc.h"
#include "compile/ptx.h"

void mr_compiled_free(mr_compiled *compiled) {
    free(compiled->ptx);
    free(compiled->log);
    for (int i = 0; i < compiled->entry_count; i++) free(compiled->entries[i]);
    free(compiled->entries);
    *compiled = (mr_compiled){0};
}

mr_status mr_compile(const mr_compile_source *source, mr_compiled *out) {
    mr_compile_job job = {.source = source,
                          .file = source->file ? source->file : "kernel.cu",
                          .line = source->line > 0 ? source->line : 1,
                          .architecture = source->compute_major * 10 + source->compute_minor};
    mr_compile_result result = {0};
    mr_clang_list list = {0};
    *out = (mr_compiled){0};
    result.entries = calloc((size_t)source->name_count + 1, sizeof *result.entries);
    const char *which = getenv("MILLRACE_COMPILER");
    mr_status status;
    if (which && strcmp(which, "clang") == 0) {
        status = mr_clang_find(NULL, &list);
        if (!status) status = mr_clang_compile(&job, &list, &result);
    } else status = mr_nvrtc_compile(&job, &result);
    if (!status && result.is_rejected)
        status = mr_fail(MR_CODE_INVALID_ARGUMENT, "%s", result.log.data);
    if (status) return status;
    mr_ptx_name_file(&result.ptx, job.file);
    out->ptx = result.ptx.data;
    out->size = result.ptx.size;
    out->entries = result.entries;
    out->entry_count = source->name_count;
    out->log = result.log.data;
    strcpy(out->compiler, result.compiler);
    return MR_OK;
}
