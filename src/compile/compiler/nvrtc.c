/* NVRTC: see nvrtc.h. This file finds the library and says what to compile; a worker calls it (worker/nvrtc.c). */
#include "compile/compiler/nvrtc.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/embedded.h"
#include "compile/compiler/worker.h"

/* Written once, under `found_once`. */
static pthread_once_t found_once = PTHREAD_ONCE_INIT;
static char *found;          /* the path */
static char *include_folder; /* of the toolkit, beside the library; NULL: not found */

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

/* TOOLKIT/lib64/libnvrtc.so.13 and TOOLKIT/targets/x86_64-linux/lib/... have TOOLKIT/include and
 * targets/.../include. */
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

/* ---------------------------------------------------------------- what to compile */

static void put_list(mr_buffer *out, const char *const *items, int count) {
    mr_wire_put_number(out, count);
    for (int i = 0; i < count; i++) mr_wire_put_text(out, items[i]);
}

/* The architecture stands last, which the worker adds. */
static void put_options(mr_buffer *out, const mr_compile_job *job) {
    const mr_compile_source *source = job->source;
    char include[4200], library_include[4200], users[4200];
    const char *ours[4] = {"-lineinfo"};
    int count = 1;
    if (mr_compile_put_folder(job, users, sizeof users)) ours[count++] = users;
    if (include_folder &&
        snprintf(include, sizeof include, "-I%s", include_folder) < (int)sizeof include &&
        snprintf(library_include, sizeof library_include, "-I%s/cccl", include_folder) <
            (int)sizeof library_include) {
        ours[count++] = include;
        /* From CUDA 13 on, what <cooperative_groups.h> includes. */
        ours[count++] = library_include;
    }
    mr_wire_put_number(out, count + source->option_count);
    mr_wire_put_text(out, ours[0]);
    for (int i = 0; i < source->option_count; i++) mr_wire_put_text(out, source->options[i]);
    for (int i = 1; i < count; i++) mr_wire_put_text(out, ours[i]);
}

/* The C headers, which NVRTC does not have: their names, or their texts. */
static void put_headers(mr_buffer *out, bool is_text) {
    static const char folder[] = MR_COMPILE_HEADERS_STD;
    int64_t count = 0;
    mr_buffer list = {0};
    for (const mr_embedded *file = mr_embedded_files; file->name; file++) {
        if (strncmp(file->name, folder, sizeof folder - 1) != 0) continue;
        mr_wire_put_text(&list,
                         is_text ? (const char *)file->data : file->name + sizeof folder - 1);
        count++;
    }
    mr_wire_put_number(out, count);
    mr_buffer_add(out, list.data, list.size);
    if (list.failed) out->failed = true;
    mr_buffer_free(&list);
}

/* Writes the request that worker_compile reads. */
static void put_request(mr_buffer *out, const mr_compile_job *job) {
    mr_buffer text = {0};
    mr_compile_put_line(&text, job->line, job->file);
    mr_buffer_add(&text, job->source->text, job->source->size);
    mr_wire_put_number(out, job->architecture);
    mr_wire_put_text(out, job->file);
    mr_wire_put(out, text.data, text.size);
    put_options(out, job);
    put_list(out, job->source->names, job->source->name_count);
    put_headers(out, false);
    put_headers(out, true);
    if (text.failed) out->failed = true;
    mr_buffer_free(&text);
}

static mr_worker_job worker_job(const mr_compile_source *source) {
    return (mr_worker_job){.library = mr_nvrtc_path(),
                           .headers = include_folder,
                           .is_confined = source->is_confined,
                           .time_limit_ms = mr_compile_limit(source),
                           .interrupted = source->interrupted,
                           .context = source->context};
}

/* ---------------------------------------------------------------- what it made */

static mr_status no_memory(const mr_compile_job *job) {
    return mr_no_memory("to compile %s", job->file);
}

static mr_status take_made(const mr_compile_job *job, mr_wire *answer, bool is_rejected,
                           mr_compile_result *out) {
    size_t size;
    const char *text = mr_wire_take(answer, &size);
    mr_buffer_add(&out->log, text, size);
    out->is_rejected = is_rejected;
    if (is_rejected) return MR_OK;
    text = mr_wire_take(answer, &size);
    mr_buffer_add(&out->ptx, text, strnlen(text, size));
    for (int i = 0; i < job->source->name_count; i++) {
        text = mr_wire_take(answer, &size);
        if (size) out->entries[i] = strdup(text);
    }
    return MR_OK;
}

static mr_status take_answer(const mr_compile_job *job, mr_wire *answer, mr_compile_result *out) {
    int64_t result = mr_wire_take_number(answer), detail = 0;
    mr_status status = MR_OK;
    if (result == MR_WIRE_COMPILED || result == MR_WIRE_REJECTED)
        status = take_made(job, answer, result == MR_WIRE_REJECTED, out);
    else detail = mr_wire_take_number(answer);
    if (status || answer->failed)
        return status ? status
                      : mr_fail(MR_CODE_UNKNOWN, "%s gave a damaged answer for %s:%d",
                                out->compiler, job->file, job->line);
    switch (result) {
    case MR_WIRE_COMPILED:
    case MR_WIRE_REJECTED: return MR_OK;
    case MR_WIRE_NO_MEMORY: return no_memory(job);
    case MR_WIRE_NO_ARCHITECTURE:
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "%s knows no architecture that a device of compute capability %d.%d runs",
                       out->compiler, job->architecture / 10, job->architecture % 10);
    case MR_WIRE_BAD_NAME:
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "'%s' cannot be the name of a kernel",
                       detail >= 0 && detail < job->source->name_count ? job->source->names[detail]
                                                                       : "");
    default:
        return mr_fail(MR_CODE_UNKNOWN, "%s failed on %s:%d with its error %d", out->compiler,
                       job->file, job->line, (int)detail);
    }
}

static mr_status judge(const mr_compile_job *job, const mr_worker_result *result,
                       mr_compile_result *out) {
    switch (result->end) {
    case MR_WORKER_INTERRUPTED:
        return mr_fail(MR_CODE_INTERRUPTED, "compiling %s was interrupted", job->file);
    case MR_WORKER_LATE:
        return mr_fail(MR_CODE_UNKNOWN, "NVRTC did not finish %s:%d within %g s and was ended",
                       job->file, job->line, mr_compile_limit(job->source) / 1000.0);
    case MR_WORKER_MISSING: return MR_OK;
    case MR_WORKER_CRASHED:
        return mr_fail(MR_CODE_UNKNOWN, "%s crashed on %s:%d (signal %d, %s)",
                       *result->name ? result->name : "NVRTC", job->file, job->line, result->signal,
                       result->signal ? strsignal(result->signal) : "it ended by itself");
    case MR_WORKER_ANSWERED: break;
    }
    mr_wire answer = {.at = result->answer.data + sizeof(uint64_t),
                      .end = result->answer.data + result->answer.size};
    mr_compile_set_name(out->compiler, sizeof out->compiler, result->name);
    return take_answer(job, &answer, out);
}

mr_status mr_nvrtc_compile(const mr_compile_job *job, mr_compile_result *out, char *out_problem,
                           size_t problem_size) {
    mr_buffer request = {0};
    mr_worker_result result = {.end = MR_WORKER_ANSWERED};
    mr_worker_job work = worker_job(job->source);
    put_request(&request, job);
    if (!request.failed) mr_worker_run(&work, &request, &result);
    mr_status status = request.failed ? no_memory(job) : judge(job, &result, out);
    snprintf(out_problem, problem_size, "%s",
             result.end == MR_WORKER_MISSING ? result.problem : "");
    mr_buffer_free(&request);
    mr_buffer_free(&result.answer);
    return status;
}

bool mr_nvrtc_probe(const mr_compile_source *source, char *out_name, size_t name_size,
                    char *out_problem, size_t problem_size) {
    mr_worker_result result;
    if (!mr_nvrtc_path()) {
        snprintf(out_problem, problem_size, "libnvrtc.so was not found");
        return false;
    }
    mr_worker_job work = worker_job(source);
    mr_worker_run(&work, NULL, &result);
    snprintf(out_name, name_size, "%s", result.name);
    snprintf(out_problem, problem_size, "%s",
             result.end == MR_WORKER_MISSING ? result.problem : "it cannot be opened");
    mr_buffer_free(&result.answer);
    return result.end == MR_WORKER_ANSWERED;
}
