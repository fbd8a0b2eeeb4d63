/* Allocations of a run: see ranges.h. All of this runs only when an access leaves the allocation that it used last, so
 * checks cost nothing where kernels spend their time. */
#include "ptx/run/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/access/access.h"
#include "ptx/run/fault.h"

static ptx_known_range *add_range(ptx_run_state *run, const mr_ptx_range *range) {
    ptx_known_range *known = mr_vec_reserve_one(&run->ranges) ? calloc(1, sizeof *known) : NULL;
    if (!known) return NULL;
    known->range = *range;
    mr_vec_push(&run->ranges, known);
    return known;
}

ptx_known_range *ptx_range_at(ptx_warp *warp, uint64_t address) {
    ptx_run_state *run = warp->run;
    for (uint32_t i = 0; i < run->ranges.count; i++) {
        const mr_ptx_range *r = &run->ranges.items[i]->range;
        if (address >= r->first && address < r->end) return run->ranges.items[i];
    }
    const mr_ptx_memory *memory = &run->launch->memory;
    mr_ptx_range range;
    uint32_t *workspace = run->launch->workspace;
    if (workspace && address - MR_PTX_WORKSPACE < MR_PTX_WORKSPACE_WORDS * sizeof *workspace)
        range = (mr_ptx_range){.first = MR_PTX_WORKSPACE,
                               .end = MR_PTX_WORKSPACE + MR_PTX_WORKSPACE_WORDS * sizeof *workspace,
                               .access = MR_PTX_READS | MR_PTX_WRITES,
                               .host = (char *)workspace};
    else if (!memory->find || !memory->find(memory->context, address, &range)) return NULL;
    ptx_known_range *known = add_range(run, &range);
    if (!known) ptx_fault_memory(warp);
    else if (range.first == MR_PTX_WORKSPACE)
        known->told = known->may_write = true; /* not the caller's */
    return known;
}

/* ---- what an address was computed from */

static uint32_t sources_of(const ptx_warp *warp, const ptx_code *code,
                           const ptx_pointer_place **out_list) {
    const mr_ptx_launch *launch = warp->run->launch;
    if (!launch->check_sources || !code->source || !launch->kernel->access) return 0;
    return ptx_access_sources(launch->kernel->access, code->source, out_list);
}

static uint64_t pointer_at(const ptx_warp *warp, const ptx_pointer_place *source) {
    const mr_ptx_param *param = &warp->run->launch->kernel->params[source->param];
    uint64_t pointer;
    memcpy(&pointer, warp->run->params + param->offset + source->offset, sizeof pointer);
    return pointer;
}

/* Goes through all that a list of sources stands for. False: that was all. */
typedef struct {
    const ptx_pointer_place *sources;
    uint32_t count, at, variable;
} source_walk;

static bool next_source(const ptx_warp *warp, source_walk *w, uint64_t *out_address) {
    const ptx_tree *tree = &warp->run->module->tree;
    for (; w->at < w->count; w->at++, w->variable = 0) {
        const ptx_pointer_place *source = &w->sources[w->at];
        if (source->param != PTX_SOURCE_VARIABLES) {
            *out_address = pointer_at(warp, source);
            w->at++;
            return true;
        }
        while (w->variable < tree->variable_count) {
            *out_address = warp->run->launch->variables[w->variable++];
            if (*out_address) return true;
        }
    }
    return false;
}

/* A source that is in no allocation is NULL, or no pointer. If none is in one, there is nothing to compare with. */
static bool is_meant(ptx_warp *warp, const ptx_code *code, const ptx_known_range *known) {
    source_walk walk = {0};
    uint64_t address;
    walk.count = sources_of(warp, code, &walk.sources);
    bool any = false;
    while (next_source(warp, &walk, &address)) {
        const ptx_known_range *to = ptx_range_at(warp, address);
        if (to == known) return true;
        any |= to != NULL;
    }
    return !any;
}

bool ptx_range_may_be_used(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *m,
                           const ptx_known_range *known) {
    const mr_ptx_launch *launch = warp->run->launch;
    bool meant = is_meant(warp, code, known);
    if (!meant && !launch->may_stray) return false;
    if (launch->strayed && (!meant || (m->access & ~known->range.access)))
        launch->strayed(launch->context);
    return true;
}

uint64_t ptx_meant_address(ptx_warp *warp, const ptx_code *code, uint64_t address) {
    source_walk walk = {0};
    uint64_t nearest = 0, least = UINT64_MAX, pointer;
    walk.count = sources_of(warp, code, &walk.sources);
    while (next_source(warp, &walk, &pointer)) {
        const ptx_known_range *to = ptx_range_at(warp, pointer);
        if (!to) continue;
        uint64_t distance =
            address < to->range.first ? to->range.first - address : address - to->range.first;
        if (distance >= least) continue;
        least = distance;
        nearest = pointer;
    }
    return nearest;
}
