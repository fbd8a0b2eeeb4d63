/* Chooses the compiler: see choose.h. */
#include "compile/call/choose.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "compile/compiler/nvrtc.h"

static bool is_library(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && strstr(slash, "nvrtc");
}

mr_status mr_compile_choose(bool is_confined, mr_compile_choice *out) {
    const char *wanted = getenv("MILLRACE_COMPILER");
    *out = (mr_compile_choice){.may_use_nvrtc = true, .may_use_clang = true};
    if (wanted && *wanted) {
        out->may_use_nvrtc = strcmp(wanted, "nvrtc") == 0 || is_library(wanted);
        out->may_use_clang = !out->may_use_nvrtc;
        if (out->may_use_clang && strcmp(wanted, "clang") != 0) out->only_clang = wanted;
    }
    if (is_confined) out->may_use_clang = false;
    if (out->may_use_nvrtc && !mr_nvrtc_path()) out->may_use_nvrtc = false;
    return out->may_use_clang && !out->may_use_nvrtc ? mr_clang_find(out->only_clang, &out->clangs)
                                                     : MR_OK;
}

static void put_identity(mr_buffer *out, const char *path) {
    struct stat facts;
    if (stat(path, &facts) != 0) return;
    mr_buffer_printf(out, "%s %lld %lld.%09ld %llu\n", path, (long long)facts.st_size,
                     (long long)facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec,
                     (unsigned long long)facts.st_ino);
}

void mr_compile_put_identities(mr_buffer *out, const mr_compile_choice *chosen) {
    mr_buffer_puts(out, "");
    if (chosen->may_use_nvrtc) put_identity(out, mr_nvrtc_path());
    for (int i = 0; i < chosen->clangs.count; i++) put_identity(out, chosen->clangs.paths[i]);
}

#define INSTALL                                                                                    \
    "Install the CUDA toolkit (CUDA_HOME tells where it is) or clang 14 or newer (Debian: "        \
    "apt-get install clang)"

static mr_status no_compiler(const mr_compile_job *job, const char *nvrtc_problem,
                             const char *clang_problem) {
    if (job->source->is_confined)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "in the sandbox only NVRTC compiles kernels, as it can do without files: "
                       "%s. Run without --sandbox, or load PTX",
                       nvrtc_problem);
    return mr_fail(MR_CODE_NOT_SUPPORTED, "no compiler for kernels: %s; %s. " INSTALL,
                   nvrtc_problem, clang_problem);
}

static mr_status compile_by_clang(const mr_compile_job *job, mr_compile_choice *chosen,
                                  const char *nvrtc_problem, mr_compile_result *out) {
    mr_buffer problem = {0};
    if (!chosen->clangs.count) MR_TRY(mr_clang_find(chosen->only_clang, &chosen->clangs));
    const char *path;
    mr_status status = mr_clang_probe(job, &chosen->clangs, out, &path, &problem);
    if (!status)
        status = path ? mr_clang_compile(job, path, out)
                      : no_compiler(job, nvrtc_problem, problem.data ? problem.data : "no clang");
    mr_buffer_free(&problem);
    return status;
}

mr_status mr_compile_by(const mr_compile_job *job, mr_compile_choice *chosen,
                        mr_compile_result *out) {
    char problem[256] = "libnvrtc.so was not found";
    if (chosen->may_use_nvrtc) {
        mr_status status = mr_nvrtc_compile(job, out, problem, sizeof problem);
        if (status || !*problem) return status;
    } else if (mr_nvrtc_path())
        snprintf(problem, sizeof problem, "NVRTC is turned off by MILLRACE_COMPILER");
    if (chosen->may_use_clang) return compile_by_clang(job, chosen, problem, out);
    return no_compiler(job, problem, "MILLRACE_COMPILER allows no other");
}
