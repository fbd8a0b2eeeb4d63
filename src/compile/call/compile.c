/* CUDA C++ to PTX: see compile.h. Checks the arguments, asks the cache, and turns a compiler's messages into an error.
 * choose.c has the compiler. */
#include "compile/compile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/cache/cache.h"
#include "compile/cache/entry.h"
#include "compile/call/advice.h"
#include "compile/call/choose.h"
#include "compile/internal.h"
#include "compile/text/messages.h"
#include "compile/text/ptx.h"
#include "compile/text/scan.h"

/* ---------------------------------------------------------------- the arguments */

static mr_status no_memory(const mr_compile_job *job) {
    return mr_no_memory("to compile %s", job->file);
}

/* A name becomes a part of the text that is compiled, so it must be an expression on one line. */
static mr_status check_name(const char *name) {
    if (!*name || strlen(name) > 1000)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "the name of a kernel has 1 to 1000 characters");
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && (unsigned char)*c < 0x80 &&
            !strchr("_:<>,*&()-+ []'.|%!~/", *c))
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "'%s' cannot be the name of a kernel: expected a name such as 'saxpy' "
                           "or 'block_sum<256>'",
                           name);
    if (strstr(name, "//") || strstr(name, "/*"))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "'%s' cannot be the name of a kernel: it contains a comment", name);
    return MR_OK;
}

static mr_status check_option(const char *option) {
    static const char *const refused[] = {"-arch", "--gpu-architecture", "--cuda-gpu-arch",
                                          "--offload-arch"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strncmp(option, refused[i], strlen(refused[i])) == 0)
            return mr_fail(
                MR_CODE_INVALID_ARGUMENT,
                "the compiler option '%s' must be left out: the architecture is that of the device",
                option);
    return MR_OK;
}

static mr_status check(const mr_compile_job *job) {
    const mr_compile_source *source = job->source;
    if (!source->text || source->size > MR_LONGEST_SOURCE)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s:%d: the text has more than %zu MiB", job->file,
                       job->line, MR_LONGEST_SOURCE >> 20);
    const char *zero = memchr(source->text, '\0', source->size);
    if (zero)
        return mr_fail(
            MR_CODE_INVALID_ARGUMENT,
            "%s:%d: the text has a zero byte (at byte %zu), which CUDA C++ does not allow",
            job->file, job->line, (size_t)(zero - source->text) + 1);
    for (int i = 0; i < source->name_count; i++) MR_TRY(check_name(source->names[i]));
    for (int i = 0; i < source->option_count; i++) MR_TRY(check_option(source->options[i]));
    return MR_OK;
}

/* ---------------------------------------------------------------- what a compiler made */

static mr_status bad_name(const mr_compile_job *job, int index, const char *problem) {
    mr_buffer code = {0}, kernels = {0};
    const char *name = job->source->names[index];
    mr_scan_code(job->source->text, job->source->size, &code);
    if (code.data) mr_scan_kernels(code.data, &kernels);
    mr_status status =
        kernels.size
            ? mr_fail(MR_CODE_INVALID_ARGUMENT,
                      "there is no kernel '%s' in the text at %s:%d; the text has: %s (the "
                      "compiler says: %s)",
                      name, job->file, job->line, kernels.data, problem)
            : mr_fail(
                  MR_CODE_INVALID_ARGUMENT,
                  "there is no kernel '%s' in the text at %s:%d: no function of it is __global__",
                  name, job->file, job->line);
    mr_buffer_free(&code);
    mr_buffer_free(&kernels);
    return status;
}

static mr_status rejected_text(const mr_compile_job *job, const mr_messages *said) {
    mr_buffer advice = {0};
    mr_compile_advise(said->text.data, job->source->is_confined, &advice);
    mr_status status = mr_fail(MR_CODE_INVALID_ARGUMENT, "%s%s%s", said->text.data,
                               advice.size ? "\n" : "", advice.size ? advice.data : "");
    mr_buffer_free(&advice);
    return status;
}

static mr_status rejected(const mr_compile_job *job, const mr_compile_result *result) {
    mr_messages said;
    const mr_compile_source *source = job->source;
    const char *log = result->log.data ? result->log.data : "";
    mr_status status;
    mr_messages_read(log, source->names, source->name_count, &said);
    if (said.error_count == 0 && said.bad_name >= 0)
        status = bad_name(job, said.bad_name,
                          said.name_problem.data ? said.name_problem.data : "it is not known");
    else if (said.error_count > 0) status = rejected_text(job, &said);
    else if (said.text
                 .size) /* about no line: an option that it does not know, or its own failure */
        status = mr_fail(strstr(log, "Stack dump") ? MR_CODE_UNKNOWN : MR_CODE_INVALID_ARGUMENT,
                         "%s failed on %s:%d: %.*s", result->compiler, job->file, job->line,
                         (int)strcspn(said.text.data, "\n"), said.text.data);
    else
        status = mr_fail(MR_CODE_UNKNOWN, "%s failed on %s:%d and gave no reason", result->compiler,
                         job->file, job->line);
    mr_messages_free(&said);
    return status;
}

/* Moves the contents of the result to `out`. */
static mr_status take(const mr_compile_job *job, mr_compile_result *result, mr_compiled *out) {
    const mr_compile_source *source = job->source;
    mr_messages said;
    mr_ptx_name_file(&result->ptx, job->file);
    if (result->ptx.failed || result->log.failed) return no_memory(job);
    for (int i = 0; i < source->name_count; i++)
        if (!result->entries[i] || !mr_ptx_has_entry(result->ptx.data, result->entries[i]))
            return bad_name(job, i, "it is not a __global__ function");
    mr_messages_read(result->log.data ? result->log.data : "", source->names, source->name_count,
                     &said);
    if (said.text.size) {
        out->log = said.text.data;
        said.text = (mr_buffer){0};
    }
    mr_messages_free(&said);
    mr_compile_set_name(out->compiler, sizeof out->compiler, result->compiler);
    out->ptx = result->ptx.data;
    out->size = result->ptx.size;
    out->entries = result->entries;
    out->entry_count = source->name_count;
    result->ptx = (mr_buffer){0};
    result->entries = NULL;
    return MR_OK;
}

static mr_status compile_now(const mr_compile_job *job, mr_compile_choice *chosen,
                             mr_compiled *out) {
    mr_compile_result result = {
        .entries = calloc((size_t)job->source->name_count + 1, sizeof *result.entries)};
    if (!result.entries) return no_memory(job);
    mr_status status = mr_compile_by(job, chosen, &result);
    if (!status) status = result.is_rejected ? rejected(job, &result) : take(job, &result, out);
    for (int i = 0; result.entries && i < job->source->name_count; i++) free(result.entries[i]);
    free(result.entries);
    mr_buffer_free(&result.ptx);
    mr_buffer_free(&result.log);
    return status;
}

/* ---------------------------------------------------------------- the entry points */

static bool get(const mr_cache *cache, const mr_cache_key *key, const mr_compile_job *job,
                mr_compiled *out) {
    mr_buffer entry = {0};
    bool is_found = mr_cache_get(cache, key, &entry) && mr_entry_read(job, &entry, out);
    mr_buffer_free(&entry);
    return is_found;
}

static void store(const mr_cache *cache, const mr_cache_key *key, const mr_compile_job *job,
                  const mr_compiled *compiled) {
    mr_buffer entry = {0};
    mr_entry_write(job, compiled, &entry);
    if (!entry.failed) mr_cache_put(cache, key, entry.data, entry.size);
    mr_buffer_free(&entry);
}

static mr_status compile_cached(const mr_compile_job *job, mr_compile_choice *chosen,
                                const mr_cache *cache, mr_compiled *out) {
    mr_buffer compilers = {0};
    mr_cache_key key;
    mr_compile_put_identities(&compilers, chosen);
    bool may_store = cache->folder && !compilers.failed && compilers.size &&
                     mr_entry_key(job, compilers.data, &key);
    mr_buffer_free(&compilers);
    if (may_store && get(cache, &key, job, out)) return MR_OK;
    MR_TRY(compile_now(job, chosen, out));
    if (may_store) store(cache, &key, job, out);
    return MR_OK;
}

mr_status mr_compile(const mr_compile_source *source, mr_compiled *out) {
    const char *file = source->file && *source->file ? source->file : "kernel.cu";
    const mr_compile_job job = {.source = source,
                                .file = file,
                                .beside = source->beside ? source->beside : file,
                                .line = source->line > 0 ? source->line : 1,
                                .architecture = source->compute_major * 10 + source->compute_minor};
    mr_cache cache = {NULL};
    mr_compile_choice chosen = {.may_use_nvrtc = false};
    *out = (mr_compiled){.ptx = NULL};
    MR_TRY(check(&job));
    mr_status status = mr_compile_choose(source->is_confined, &chosen);
    if (!source->is_confined) mr_cache_open(&cache);
    if (!status) status = compile_cached(&job, &chosen, &cache, out);
    mr_cache_close(&cache);
    mr_clang_free(&chosen.clangs);
    if (status) mr_compiled_free(out);
    return status;
}
