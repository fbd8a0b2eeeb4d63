/* The pointers that an access computes its address from, by instruction: see sources.h.
 *
 * Easiest to break: the list of an instruction must be complete, or a correct kernel fails. An address with any other
 * source has no list at all: a pointer in memory, or bits that were put together in a way that was not followed.
 * Code that is also reached in ways that the graph does not contain has no lists either. */
#include "ptx/access/sources.h"

#include <stdlib.h>
#include <string.h>

#define OTHER_SOURCE UINT32_MAX
#define VARIABLES    (UINT32_MAX - 1)

typedef struct {
    const ptx_instruction *instruction;
    uint32_t piece; /* or VARIABLES, or OTHER_SOURCE, which sorts last */
} source_pair;

struct access_sources {
    source_pair *pairs;      /* sorted, each once */
    ptx_pointer_place *list; /* by pair */
    uint32_t count;
};

typedef struct {
    access_graph *graph;
    const access_origins *origins;
    ACCESS_LIST(source_pair) pairs;
    bool only_kernel; /* other functions are also called in ways that are not followed */
} collection;

static void add(collection *c, const ptx_instruction *instruction, uint32_t piece) {
    access_push(c->graph, &c->pairs, ((source_pair){instruction, piece}));
}

/* The pieces in `mixed` may be in the address in a form that was not recognised. */
static bool has_piece(const access_origin *o, uint32_t bit) {
    return access_has(o->plus, bit) || access_has(o->distance, bit) || access_has(o->mixed, bit);
}

static void add_site(collection *c, const access_site *site) {
    const access_origins *all = c->origins;
    const access_copy *copy = &c->graph->copies.items[site->copy];
    const ptx_instruction *instruction = &copy->function->instructions[site->instruction];
    if (site->space != PTX_GENERIC && site->space != PTX_GLOBAL && site->space != PTX_CONST) return;
    if (site->is_followed) return; /* local memory */
    const access_origin *o = &all->origins[access_find(c->graph, site->address)];
    bool is_other = !o->is_known || access_has(o->plus, ORIGIN_MEMORY) ||
                    (c->only_kernel && copy->function != c->graph->kernel);
    bool has_pointer = access_has(o->plus, ORIGIN_VARIABLES);
    if (has_piece(o, ORIGIN_VARIABLES)) add(c, instruction, VARIABLES);
    for (uint32_t p = 0; p < all->piece_count; p++) {
        if (!has_piece(o, ORIGIN_FIRST_PIECE + p)) continue;
        has_pointer |= access_has(o->plus, ORIGIN_FIRST_PIECE + p);
        add(c, instruction, p);
    }
    if (is_other || !has_pointer) add(c, instruction, OTHER_SOURCE);
}

static bool is_followed_everywhere(const access_graph *graph) {
    for (uint32_t k = 0; k < graph->calls.count; k++)
        if (!access_is_harmless(graph->calls.items[k].function)) return false;
    return true;
}

static int by_instruction(const void *a, const void *b) {
    const source_pair *x = a, *y = b;
    if (x->instruction != y->instruction) return x->instruction < y->instruction ? -1 : 1;
    return x->piece < y->piece ? -1 : x->piece > y->piece;
}

static uint32_t unique(source_pair *pairs, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!kept || by_instruction(&pairs[kept - 1], &pairs[i])) pairs[kept++] = pairs[i];
    return kept;
}

const access_sources *access_find_sources(access_graph *graph, const access_origins *origins,
                                          mr_region *region) {
    collection c = {
        .graph = graph, .origins = origins, .only_kernel = !is_followed_everywhere(graph)};
    for (uint32_t k = 0; k < graph->sites.count; k++) add_site(&c, &graph->sites.items[k]);
    if (c.pairs.count) qsort(c.pairs.items, c.pairs.count, sizeof *c.pairs.items, by_instruction);
    uint32_t count = unique(c.pairs.items, c.pairs.count);
    access_sources *sources = mr_region_alloc(region, sizeof *sources);
    if (!sources) return NULL;
    sources->count = count;
    sources->pairs = mr_region_alloc(region, (count + 1) * sizeof *sources->pairs);
    sources->list = mr_region_alloc(region, (count + 1) * sizeof *sources->list);
    if (!sources->pairs || !sources->list) return NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t piece = c.pairs.items[i].piece;
        sources->pairs[i] = c.pairs.items[i];
        if (piece == OTHER_SOURCE) continue;
        sources->list[i].param =
            piece == VARIABLES ? PTX_SOURCE_VARIABLES : origins->pieces[piece].param;
        if (piece != VARIABLES) sources->list[i].offset = origins->pieces[piece].offset;
    }
    return sources;
}

uint32_t access_sources_of(const access_sources *sources, const ptx_instruction *instruction,
                           const ptx_pointer_place **out_list) {
    uint32_t first = 0, end = sources->count;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if ((uintptr_t)sources->pairs[middle].instruction < (uintptr_t)instruction)
            first = middle + 1;
        else end = middle;
    }
    *out_list = &sources->list[first];
    for (end = first; end < sources->count && sources->pairs[end].instruction == instruction; end++)
        if (sources->pairs[end].piece == OTHER_SOURCE) return 0;
    return end - first;
}
