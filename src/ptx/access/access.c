/* The accesses of a kernel through each of its parameters: those of the graph, each given to the pointers that its
 * address is derived from (origin.c). The file also has the data that a module keeps about a kernel.
 *
 * Easiest to break: an access whose address is not understood must count for every pointer that it can come from, or as
 * memory that the kernel finds by itself (follows_memory). */
#include "ptx/access/access.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/access/graph.h"
#include "ptx/access/launch.h"
#include "ptx/access/outcome.h"
#include "ptx/access/sources.h"

enum { MOST_REMEMBERED = 16, REASON_BYTES = 192 };

struct ptx_access {
    ptx_access_facts facts;
    uint32_t param_count, param_bytes;
    const bool *as_number;         /* by piece; NULL: not known */
    mr_region region;              /* of all that is here */
    const access_program *program; /* NULL: a launch cannot be analysed */
    const access_sources *sources; /* NULL: unknown */
    uint32_t *param_offsets;
    access_piece *pieces; /* what can be a pointer in the parameters */
    uint32_t piece_count;

    /* The last launch and its result. Several threads may launch: a thread that does not get the lock computes the
     * result again. */
    pthread_mutex_t lock;
    bool has_last;
    mr_ptx_plan last_plan;
    void *last_params;
    uint32_t *last_pointers;
    mr_ptx_extent *last;
    uint32_t last_count;
};

typedef struct {
    ptx_access *access;
    const access_graph *graph;
    const access_origins *origins;
    uint64_t *bases;        /* of the site at hand */
    bool *is_pointer;       /* by piece: alone it is the base of an address */
    bool *has_element;      /* by parameter: `element` has been set */
    uint8_t through_memory; /* what is done through pointers that were found in memory */
    const access_site *memory_site;
} inference;

/* ---- reasons */

static void give_up(inference *in, uint32_t param, const char *what, const access_site *site,
                    const char *rest) {
    mr_ptx_param_access *p = &in->access->facts.params[param];
    p->access = MR_PTX_READS | MR_PTX_WRITES;
    if (!p->known) return;
    p->known = false;
    char *text = mr_region_alloc(&in->access->region, REASON_BYTES);
    p->reason = text ? text : what;
    if (!text) return;
    char where[96] = "";
    if (site) {
        const ptx_function *f = in->graph->copies.items[site->copy].function;
        ptx_place_text(in->graph->tree, &f->instructions[site->instruction].place, where,
                       sizeof where);
    }
    snprintf(text, REASON_BYTES, "%s%s%s", what, where, rest);
}

/* ---- sites */

static bool reaches_other_memory(const access_site *site) {
    return site->space == PTX_GENERIC || site->space == PTX_GLOBAL || site->space == PTX_CONST;
}

static void find_bases(inference *in, const access_site *site) {
    memset(in->bases, 0, in->origins->set_words * sizeof *in->bases);
    access_bases(in->origins, access_find(in->graph, site->address), in->bases);
}

static uint32_t count_pointers(const inference *in, bool only_certain, uint32_t *out_piece) {
    uint32_t count = 0;
    for (uint32_t p = 0; p < in->origins->piece_count; p++) {
        if (!access_has(in->bases, ORIGIN_FIRST_PIECE + p)) continue;
        if (only_certain && !in->is_pointer[p]) continue;
        *out_piece = p;
        count++;
    }
    return count;
}

static void find_certain_pointers(inference *in) {
    for (uint32_t k = 0; k < in->graph->sites.count; k++) {
        const access_site *site = &in->graph->sites.items[k];
        uint32_t piece;
        if (!reaches_other_memory(site)) continue;
        find_bases(in, site);
        if (count_pointers(in, false, &piece) == 1) in->is_pointer[piece] = true;
    }
}

static void note(inference *in, uint32_t param, const access_site *site) {
    mr_ptx_param_access *p = &in->access->facts.params[param];
    p->access |= site->access;
    if (!in->has_element[param]) p->element = (ptx_type)site->element;
    else if (p->element != (ptx_type)site->element) p->element = PTX_NO_TYPE;
    in->has_element[param] = true;
}

static void judge_site(inference *in, const access_site *site) {
    if (site->is_followed || !reaches_other_memory(site)) return;
    const access_origins *all = in->origins;
    const access_origin *o = &all->origins[access_find(in->graph, site->address)];
    find_bases(in, site);
    uint32_t piece, certain = count_pointers(in, true, &piece);
    bool is_sum = o->is_exact && certain > 1, any = false;
    for (uint32_t p = 0; p < all->piece_count; p++) {
        if (!access_has(in->bases, ORIGIN_FIRST_PIECE + p)) continue;
        any = true;
        uint32_t param = all->pieces[p].param;
        note(in, param, site);
        if (is_sum) give_up(in, param, "the address at ", site, " is the sum of two pointers");
        else if (!access_has(o->plus, ORIGIN_FIRST_PIECE + p))
            give_up(in, param, "the address at ", site, " is calculated from the pointer's value");
    }
    if (access_has(in->bases, ORIGIN_SHARED)) any = true;
    if (access_has(in->bases, ORIGIN_WORKSPACE)) any = true;
    for (uint32_t b = all->first_param_address; b < all->set_bits; b++)
        any |= access_has(in->bases, b); /* the block of parameters, local memory */
    if (access_has(in->bases, ORIGIN_VARIABLES)) any = true;
    if (any && !access_has(in->bases, ORIGIN_MEMORY)) return;
    in->access->facts.follows_memory = true;
    in->through_memory |= site->access;
    in->memory_site = site;
}

/* A load may find a value that was stored before. */
static void judge_memory(inference *in) {
    if (!in->through_memory) return;
    for (uint32_t p = 0; p < in->origins->piece_count; p++)
        if (access_has(in->origins->memory_holds, ORIGIN_FIRST_PIECE + p))
            give_up(in, in->origins->pieces[p].param,
                    "the pointer is stored to memory, and the address at ", in->memory_site,
                    " comes from memory");
}

static void judge_call(inference *in, const access_call *c) {
    if (access_is_harmless(c->function)) return;
    in->access->facts.follows_memory = true;
    access_site site = {.copy = c->copy, .instruction = c->instruction};
    bool recursive = c->function && c->function->is_defined;
    for (uint32_t v = c->first_of[0]; v < c->first_of[c->argument_count]; v++) {
        uint32_t value = access_find(in->graph, in->graph->arguments.items[v]);
        const access_origin *o = &in->origins->origins[value];
        for (uint32_t p = 0; p < in->origins->piece_count; p++) {
            uint32_t bit = ORIGIN_FIRST_PIECE + p;
            if (access_has(o->plus, bit) || access_has(o->mixed, bit))
                give_up(in, in->origins->pieces[p].param, "the pointer is passed on at ", &site,
                        recursive ? " to a function that calls itself"
                                  : " to a function that is not known");
        }
    }
    for (uint32_t p = 0; p < in->origins->piece_count; p++)
        if (access_has(in->origins->memory_holds, ORIGIN_FIRST_PIECE + p) ||
            access_has(in->origins->shared_holds, ORIGIN_FIRST_PIECE + p))
            give_up(in, in->origins->pieces[p].param,
                    "the pointer is stored to memory, and the function called at ", &site,
                    " can find it there");
}

static void judge(inference *in) {
    find_certain_pointers(in);
    for (uint32_t k = 0; k < in->graph->sites.count; k++)
        judge_site(in, &in->graph->sites.items[k]);
    for (uint32_t k = 0; k < in->graph->calls.count; k++)
        judge_call(in, &in->graph->calls.items[k]);
    judge_memory(in);
}

/* ---- */

/* Returns the bytes of the block of parameters; `out` gets where each begins. */
static uint32_t bytes_of(const ptx_signature *signature, uint32_t *out) {
    uint64_t end = 0;
    for (uint32_t p = 0; p < signature->parameter_count; p++) {
        uint64_t align = signature->parameters[p].align ? signature->parameters[p].align : 1;
        end = (end + align - 1) / align * align;
        out[p] = (uint32_t)end;
        end += signature->parameters[p].bytes;
    }
    return (uint32_t)end;
}

static uint32_t count_pieces(const ptx_signature *signature, access_piece *out) {
    uint32_t count = 0;
    for (uint32_t p = 0; p < signature->parameter_count; p++) {
        const ptx_variable *v = &signature->parameters[p];
        if (mr_ptx_types[v->type].sort == PTX_FLOAT) continue;
        for (uint32_t offset = 0; offset + 8 <= v->bytes; offset += 8, count++)
            if (out) out[count] = (access_piece){p, offset};
    }
    return count;
}

static bool allocate(ptx_access *access, const ptx_signature *signature) {
    mr_region *region = &access->region;
    access->param_count = signature->parameter_count;
    access->piece_count = count_pieces(signature, NULL);
    access->pieces = mr_region_alloc(region, access->piece_count * sizeof *access->pieces + 1);
    if (!access->pieces) return false;
    count_pieces(signature, access->pieces);
    access->param_offsets =
        mr_region_alloc(region, access->param_count * sizeof *access->param_offsets + 1);
    if (!access->param_offsets) return false;
    access->param_bytes = bytes_of(signature, access->param_offsets);
    access->facts.params =
        mr_region_alloc(region, (access->param_count + 1) * sizeof *access->facts.params);
    access->last_params = mr_region_alloc(region, access->param_bytes + 1);
    access->last = mr_region_alloc(region, MOST_REMEMBERED * sizeof *access->last);
    size_t pointers = access->piece_count * sizeof *access->last_pointers;
    access->last_pointers = mr_region_alloc(region, pointers + 1);
    if (!access->facts.params || !access->last_params || !access->last || !access->last_pointers)
        return false;
    for (uint32_t p = 0; p < access->param_count; p++)
        access->facts.params[p] = (mr_ptx_param_access){.known = true};
    return true;
}

static void know_nothing(ptx_access *access, const char *reason) {
    access->facts.follows_memory = true;
    access->facts.order = (access_order){.matters = true, .may_matter = true};
    access->facts.uses_variables = true;
    for (uint32_t p = 0; p < access->param_count; p++)
        access->facts.params[p] =
            (mr_ptx_param_access){.access = MR_PTX_READS | MR_PTX_WRITES, .reason = reason};
}

static bool judge_outcome(ptx_access *access, access_graph *graph, const access_origins *origins) {
    bool *as_number = mr_region_alloc(&access->region, origins->piece_count + 1);
    if (!as_number) return false;
    access->facts.uses_variables = access_find_numbers(graph, origins, as_number);
    access->facts.order = access_find_order(graph, origins);
    access->facts.has_block_atomics = access_has_block_atomics(graph);
    access->as_number = as_number;
    return true;
}

static bool analyse(ptx_access *access, access_graph *graph) {
    if (setjmp(graph->out_of_memory)) return false;
    access_build_blocks(graph);
    access_origins origins = {0};
    if (!graph->too_large) access_settle(graph, &origins);
    if (graph->too_large) {
        know_nothing(access, "the kernel and what it calls are too long to be analysed");
        return true;
    }
    inference in = {.access = access, .graph = graph, .origins = &origins};
    in.bases = access_take(graph, origins.set_words * sizeof *in.bases);
    in.is_pointer = access_take(graph, origins.piece_count);
    in.has_element = access_take(graph, access->param_count);
    judge(&in);
    if (!judge_outcome(access, graph, &origins)) return false;
    access->sources = access_find_sources(graph, &origins, &access->region);
    access->program = access_compile(graph, &origins, access->param_offsets, &access->region);
    return access->program && access->sources;
}

ptx_access *ptx_access_infer(const ptx_tree *tree, const ptx_function *kernel) {
    ptx_access *access = calloc(1, sizeof *access);
    access_graph *graph = calloc(1, sizeof *graph);
    bool done = access && graph && !pthread_mutex_init(&access->lock, NULL);
    if (!done) {
        free(access);
        free(graph);
        return NULL;
    }
    graph->tree = tree;
    graph->kernel = kernel;
    done = allocate(access, &kernel->signature);
    if (done && kernel->block_count) done = analyse(access, graph);
    mr_region_free(&graph->region);
    mr_map_free(&graph->definitions);
    mr_map_free(&graph->numbered);
    free(graph);
    if (done) return access;
    ptx_access_free(access);
    return NULL;
}

void ptx_access_free(ptx_access *access) {
    if (!access) return;
    pthread_mutex_destroy(&access->lock);
    mr_region_free(&access->region);
    free(access);
}

const ptx_access_facts *ptx_access_facts_of(const ptx_access *access) {
    return &access->facts;
}

bool ptx_access_uses_address(const ptx_access *access, uint32_t at) {
    for (uint32_t k = 0; k < access->piece_count; k++)
        if (access->param_offsets[access->pieces[k].param] + access->pieces[k].offset == at)
            return !access->as_number || access->as_number[k];
    return false;
}

uint32_t ptx_access_sources(const ptx_access *access, const ptx_instruction *instruction,
                            const ptx_pointer_place **out_list) {
    return access->sources ? access_sources_of(access->sources, instruction, out_list) : 0;
}

/* ---- launches */

static void add_extent(mr_ptx_extent extent, mr_ptx_extent *out, uint32_t *count, uint32_t most) {
    if (*count < most) out[*count] = extent;
    ++*count;
}

static bool is_pointer(const ptx_access *access, const mr_ptx_plan *plan, access_piece piece) {
    for (uint32_t k = 0; k < plan->pointer_count; k++)
        if (plan->pointers[k] == access->param_offsets[piece.param] + piece.offset) return true;
    return false;
}

static uint32_t find_extents(const ptx_access *access, const mr_ptx_plan *plan, mr_ptx_extent *out,
                             uint32_t most) {
    uint32_t found = 0, count = 0;
    if (access->program) found = access_evaluate(access->program, plan, out, most);
    /* Memory on which the inference gave up can be accessed in ways that no address shows. */
    for (uint32_t k = 0; k < found; k++) {
        if (k >= most) count++;
        else if (access->facts.params[out[k].param].known ||
                 !is_pointer(access, plan, (access_piece){out[k].param, out[k].offset}))
            out[count++] = out[k];
    }
    for (uint32_t k = 0; k < access->piece_count; k++) {
        access_piece piece = access->pieces[k];
        if (access->facts.params[piece.param].known || !is_pointer(access, plan, piece)) continue;
        mr_ptx_extent all = {.param = piece.param,
                             .offset = piece.offset,
                             .access = MR_PTX_READS | MR_PTX_WRITES,
                             .reason = access->program ? MR_PTX_KEPT : MR_PTX_SIZE,
                             .first = INT64_MIN,
                             .end = INT64_MAX};
        add_extent(all, out, &count, most);
    }
    return count;
}

static bool has_same_pointers(const mr_ptx_plan *a, const mr_ptx_plan *b) {
    bool same = a->pointer_count == b->pointer_count;
    for (uint32_t k = 0; k < a->pointer_count && same; k++) same = a->pointers[k] == b->pointers[k];
    return same;
}

static bool is_last(const ptx_access *access, const mr_ptx_plan *plan) {
    const mr_ptx_plan *last = &access->last_plan;
    return access->has_last && !memcmp(last->grid, plan->grid, sizeof plan->grid) &&
           !memcmp(last->block, plan->block, sizeof plan->block) &&
           !memcmp(last->params, plan->params, access->param_bytes) &&
           has_same_pointers(last, plan);
}

static void remember(ptx_access *access, const mr_ptx_plan *plan, const mr_ptx_extent *out,
                     uint32_t count) {
    size_t bytes = plan->pointer_count * sizeof *plan->pointers;
    if (plan->pointer_count > access->piece_count) return;
    memcpy(access->last_params, plan->params, access->param_bytes);
    if (bytes) memcpy(access->last_pointers, plan->pointers, bytes);
    access->last_plan = *plan;
    access->last_plan.params = access->last_params;
    access->last_plan.pointers = access->last_pointers;
    memcpy(access->last, out, count * sizeof *out);
    access->last_count = count;
    access->has_last = true;
}

uint32_t ptx_access_extents(const ptx_access *access, const mr_ptx_plan *plan, mr_ptx_extent *out,
                            uint32_t most) {
    ptx_access *cache =
        (ptx_access *)access; /* const for the callers: only what is remembered changes */
    bool locked = !pthread_mutex_trylock(&cache->lock);
    uint32_t count;
    if (locked && is_last(access, plan)) {
        count = access->last_count;
        memcpy(out, access->last, (count < most ? count : most) * sizeof *out);
    } else {
        count = find_extents(access, plan, out, most);
        if (locked && count <= most && count <= MOST_REMEMBERED) remember(cache, plan, out, count);
    }
    if (locked) pthread_mutex_unlock(&cache->lock);
    return count;
}
