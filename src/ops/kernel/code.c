/* The compiled code of a source, with a count of references: see kernel.h. */
#include <stdlib.h>
#include <string.h>

#include "ops/kernel.h"
#include "ops/kernel_time.h"
#include "ptx/run/profile.h"

static void destroy(mr_kernel_code *code) {
    for (uint32_t i = 0; code->timings && i < mr_ptx_kernel_count(code->ptx); i++) {
        mr_ptx_profile_destroy(code->timings[i].sample);
        free(code->timings[i].known);
    }
    free(code->timings);
    for (uint32_t i = 0; code->counts && i < mr_ptx_kernel_count(code->ptx); i++) {
        mr_ptx_profile_destroy(code->counts[i].profile);
        mr_vec_free(&code->counts[i].running);
    }
    free(code->counts);
    free(code->uses);
    free(code->once);
    mr_ptx_module_release(code->ptx);
    free(code->text);
    free(code);
}

static bool find_uses(mr_kernel_code *code) {
    uint32_t kernels = mr_ptx_kernel_count(code->ptx);
    size_t variables = mr_ptx_module_tree(code->ptx)->variable_count;
    code->uses = calloc(kernels * variables + 1, 1);
    for (uint32_t i = 0; code->uses && i < kernels; i++)
        if (!mr_ptx_kernel_uses(mr_ptx_kernel_at(code->ptx, i), code->uses + i * variables))
            return false;
    return code->uses != NULL;
}

static bool find_courses(mr_kernel_code *code) {
    uint32_t kernels = mr_ptx_kernel_count(code->ptx);
    code->once = calloc(kernels + 1u, sizeof *code->once);
    for (uint32_t i = 0; code->once && i < kernels; i++)
        if (!mr_ptx_kernel_course(mr_ptx_kernel_at(code->ptx, i), code->once[i].course,
                                  code->once[i].bytes))
            return false;
    return code->once != NULL;
}

mr_status mr_kernel_code_load(char *text, size_t size, const char *name,
                              mr_kernel_code **out_code) {
    static atomic_uint_fast64_t ids;
    *out_code = NULL;
    mr_kernel_code *code = calloc(1, sizeof *code);
    if (!code) {
        free(text);
        return mr_no_memory("for a module of kernels");
    }
    code->text = text;
    code->size = size;
    code->prints = strstr(text, "vprintf") != NULL;
    mr_status status = mr_ptx_module_load(text, size, name, &code->ptx);
    if (!status) {
        code->counts = calloc(mr_ptx_kernel_count(code->ptx) + 1, sizeof *code->counts);
        code->timings = calloc(mr_ptx_kernel_count(code->ptx) + 1, sizeof *code->timings);
        if (!code->counts || !code->timings || !find_uses(code) || !find_courses(code))
            status = mr_no_memory("for a module of kernels");
    }
    if (status) {
        destroy(code);
        return status;
    }
    atomic_init(&code->refs, 1);
    code->id = atomic_fetch_add(&ids, 1) + 1;
    *out_code = code;
    return MR_OK;
}

void mr_kernel_code_retain(mr_kernel_code *code) {
    atomic_fetch_add_explicit(&code->refs, 1, memory_order_relaxed);
}

void mr_kernel_code_release(mr_kernel_code *code) {
    if (!code || atomic_fetch_sub_explicit(&code->refs, 1, memory_order_acq_rel) != 1) return;
    destroy(code);
}

void mr_kernel_arguments_retain(void *arguments) {
    mr_kernel_code_retain(((mr_kernel_arguments *)arguments)->code);
}

void mr_kernel_arguments_release(void *arguments) {
    if (arguments) mr_kernel_code_release(((mr_kernel_arguments *)arguments)->code);
}

static size_t index_of(const mr_kernel_code *code, const mr_ptx_kernel *kernel) {
    return (size_t)(kernel - mr_ptx_kernel_at(code->ptx, 0));
}

const uint8_t *mr_kernel_code_uses(const mr_kernel_code *code, const mr_ptx_kernel *kernel) {
    return code->uses + index_of(code, kernel) * mr_ptx_module_tree(code->ptx)->variable_count;
}

const mr_kernel_once *mr_kernel_code_once(const mr_kernel_code *code, const mr_ptx_kernel *kernel) {
    return &code->once[index_of(code, kernel)];
}

mr_kernel_timing *mr_kernel_code_timing(const mr_kernel_code *code, const mr_ptx_kernel *kernel) {
    return &code->timings[index_of(code, kernel)];
}

mr_kernel_count *mr_kernel_code_count(const mr_kernel_code *code, const mr_ptx_kernel *kernel) {
    return &code->counts[index_of(code, kernel)];
}

void mr_kernel_code_forget(const mr_kernel_code *code, const mr_ptx_kernel *kernel) {
    mr_kernel_count *count = mr_kernel_code_count(code, kernel);
    mr_ptx_profile_destroy(count->profile);
    mr_vec_free(&count->running);
    *count = (mr_kernel_count){0};
}
