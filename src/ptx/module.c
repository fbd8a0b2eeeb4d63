/* Loaded modules: their lifetime, their kernels, the initial values of their variables. decode/load.c makes them. */
#include "ptx/module.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/access/access.h"

static void destroy(mr_ptx_module *m) {
    for (uint32_t i = 0; m->kernels && i < m->kernel_count; i++) {
        ptx_access_free((ptx_access *)(uintptr_t)m->kernels[i].access); /* ours until now */
    }
    if (m->printing) pthread_mutex_destroy(m->printing);
    free(m->printing);
    free(m->name);
    free(m->constants);
    mr_vec_free(&m->slots);
    mr_region_free(&m->region);
    ptx_tree_free(&m->tree);
    free(m);
}

void mr_ptx_module_retain(mr_ptx_module *m) {
    atomic_fetch_add(&m->references, 1);
}

void mr_ptx_module_release(mr_ptx_module *m) {
    if (m && atomic_fetch_sub(&m->references, 1) == 1) destroy(m);
}

const ptx_tree *mr_ptx_module_tree(const mr_ptx_module *m) {
    return &m->tree;
}

uint32_t mr_ptx_kernel_count(const mr_ptx_module *m) {
    return m->kernel_count;
}

const mr_ptx_kernel *mr_ptx_kernel_at(const mr_ptx_module *m, uint32_t i) {
    return i < m->kernel_count ? &m->kernels[i] : NULL;
}

const mr_ptx_kernel *mr_ptx_kernel_find(const mr_ptx_module *m, const char *name) {
    for (uint32_t i = 0; i < m->kernel_count; i++) {
        if (strcmp(m->kernels[i].name, name) == 0) return &m->kernels[i];
    }
    return NULL;
}

/* ---- initial values */

static uint64_t address_in(const mr_ptx_module *m, const ptx_relocation *r,
                           const uint64_t *addresses) {
    if (r->function >= 0) return PTX_WINDOW(PTX_TOP_FUNCTION) + 16 * (uint64_t)r->function;
    return r->variable >= 0 && (uint32_t)r->variable < m->tree.variable_count
               ? addresses[r->variable] + (uint64_t)r->addend
               : 0;
}

void mr_ptx_variable_init(const mr_ptx_module *m, uint32_t i, const uint64_t *addresses,
                          void *out) {
    const ptx_variable *v = &m->tree.variables[i];
    memset(out, 0, v->bytes);
    if (v->init) memcpy(out, v->init, v->init_bytes < v->bytes ? v->init_bytes : v->bytes);
    for (uint32_t k = 0; k < v->relocation_count; k++) {
        const ptx_relocation *r = &v->relocations[k];
        uint64_t address = address_in(m, r, addresses);
        uint32_t size = r->size < 8 ? r->size : 8;
        if (r->offset <= v->bytes && size <= v->bytes - r->offset) {
            memcpy((char *)out + r->offset, &address, size);
        }
    }
}
