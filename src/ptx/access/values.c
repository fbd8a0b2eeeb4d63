/* The values of a kernel: registers, and those parts of local memory whose address is always the same constant, in SSA
 * form (values.h). Here: the blocks, one after the other. */
#include "ptx/access/values.h"

#include <string.h>

enum { MOST_VALUES = 100000 };

/* An instruction that changes no register. */
static bool control_instruction(access_maker *m) {
    switch ((ptx_opcode)m->at->opcode) {
    case PTX_OP_brx: access_number_of(m, 1, 0, 0); return true; /* a condition */
    case PTX_OP_bra:
    case PTX_OP_ret:
    case PTX_OP_exit:
    case PTX_OP_trap:
    case PTX_OP_membar:
    case PTX_OP_fence:
    case PTX_OP_prefetch:
    case PTX_OP_prefetchu:
    case PTX_OP_nanosleep:
    case PTX_OP_brkpt:
    case PTX_OP_pmevent:
    case PTX_OP_griddepcontrol:
    case PTX_OP_stackrestore: return true;
    case PTX_OP_bar: return !ptx_has(m->at, PTX_MOD_red);
    default: return false;
    }
}

static bool known_instruction(access_maker *m) {
    return access_memory_instruction(m) || access_arithmetic_instruction(m) ||
           control_instruction(m);
}

static bool gives_no_pointer(const access_maker *m) {
    if (m->at->opcode == PTX_OP_shfl) return false;
    return m->at->type_count && !access_is_integer(access_type_at(m, 0));
}

static void fill_block(access_maker *m, uint32_t block) {
    access_graph *graph = m->graph;
    const access_block *b = &graph->blocks.items[block];
    const ptx_function *f = graph->copies.items[b->copy].function;
    m->block = block;
    m->copy = b->copy;
    for (m->instruction = b->first; m->instruction < b->end; m->instruction++) {
        m->at = &f->instructions[m->instruction];
        if (!known_instruction(m)) access_write_other(m, !gives_no_pointer(m));
    }
    m->is_filled[block] = true;
    /* The condition of an edge is the guard's value at the end of this block. */
    for (uint32_t k = 0; k < b->successor_count; k++) {
        access_block *to = &graph->blocks.items[b->successors[k]];
        if (!to->has_condition || b->end == b->first) continue;
        m->at = &f->instructions[b->end - 1];
        if (m->at->guard >= 0) to->condition = access_read_register(m, (uint32_t)m->at->guard);
    }
}

void access_build_values(access_graph *graph) {
    access_maker m = {.graph = graph};
    mr_map_clear(&graph->definitions);
    mr_map_clear(&graph->numbered);
    graph->values.count = graph->operands.count = graph->arguments.count = 0;
    graph->sites.count = graph->escapes.count = graph->calls.count = 0;
    graph->again = false;
    m.only = access_take(graph, graph->register_count * sizeof *m.only);
    m.only_block = access_take(graph, graph->register_count * sizeof *m.only_block);
    memset(m.only, 0xff, graph->register_count * sizeof *m.only);
    m.is_filled = access_take(graph, graph->blocks.count);
    m.first_incomplete = access_take(graph, graph->blocks.count * sizeof *m.first_incomplete);
    memset(m.first_incomplete, 0xff, graph->blocks.count * sizeof *m.first_incomplete);
    for (uint32_t k = 0; k < graph->order.count; k++) {
        fill_block(&m, graph->order.items[k]);
        access_complete_phis(&m, graph->order.items[k]);
        if (graph->values.count > MOST_VALUES) graph->too_large = true;
        if (graph->too_large) return;
    }
    access_remove_phis(graph);
}
