/* The blocks of a kernel and of the functions that it calls, copied once for each call; dominators, and loops. Calls of
 * functions that are recursive, or only declared, or too many, stay instructions.
 *
 * Easiest to break: an edge may be too many but never missing. */
#include "ptx/access/graph.h"

#include <string.h>

enum { MOST_DEPTH = 24, MOST_INSTRUCTIONS = 100000 };

void *access_take(access_graph *graph, size_t bytes) {
    void *memory = mr_region_alloc(&graph->region, bytes ? bytes : 1);
    if (!memory) longjmp(graph->out_of_memory, 1);
    return memory;
}

void access_reserve(access_graph *graph, void *items, size_t *bytes, size_t wanted) {
    while (*bytes < wanted)
        if (!mr_region_double(&graph->region, items, bytes, 512)) longjmp(graph->out_of_memory, 1);
}

/* ---- copies */

typedef struct {
    uint32_t from, to;
    bool has_condition, condition_true;
} edge;

typedef struct {
    access_graph *graph;
    ACCESS_LIST(edge) edges;
    uint32_t instructions; /* of all copies */
} builder;

static void connect(builder *b, uint32_t from, uint32_t to) {
    edge e = {.from = from, .to = to};
    access_push(b->graph, &b->edges, e);
}

static uint32_t new_block(access_graph *graph, uint32_t copy, uint32_t first, uint32_t end) {
    access_block block = {.copy = copy,
                          .first = first,
                          .end = end,
                          .dominator = ACCESS_NONE,
                          .order = ACCESS_NONE,
                          .loop = ACCESS_NONE,
                          .outer_loop = ACCESS_NONE,
                          .condition = ACCESS_NONE};
    access_push(graph, &graph->blocks, block);
    return graph->blocks.count - 1;
}

static bool is_called_now(const access_graph *graph, uint32_t copy, const ptx_function *function,
                          uint32_t *out_depth) {
    *out_depth = 0;
    for (; copy != ACCESS_NONE; copy = graph->copies.items[copy].caller, ++*out_depth)
        if (graph->copies.items[copy].function == function) return true;
    return false;
}

/* The function that a call calls, if it is to be copied; NULL. */
static const ptx_function *copied_callee(builder *b, uint32_t copy, const ptx_instruction *i) {
    if (i->opcode != PTX_OP_call || i->operand_count < 3 || i->operands[1].kind != PTX_FUNCTION)
        return NULL;
    const ptx_function *callee = &b->graph->tree->functions[i->operands[1].index];
    uint32_t depth;
    if (!callee->is_defined || !callee->block_count) return NULL;
    if (is_called_now(b->graph, copy, callee, &depth) || depth >= MOST_DEPTH) return NULL;
    if (b->instructions + callee->instruction_count > MOST_INSTRUCTIONS) {
        b->graph->too_large = true;
        return NULL;
    }
    const ptx_operand *results = &i->operands[0], *arguments = &i->operands[2];
    if (results->count != callee->signature.result_count ||
        arguments->count != callee->signature.parameter_count)
        return NULL;
    for (uint32_t k = 0; k < results->count + arguments->count; k++) {
        const ptx_operand *o =
            k < results->count ? &results->list[k] : &arguments->list[k - results->count];
        if (o->kind != PTX_LOCAL_VARIABLE && o->kind != PTX_PARAMETER) return NULL;
    }
    return callee;
}

static uint32_t storage_of(const access_copy *copy, const ptx_operand *o) {
    if (o->kind == PTX_LOCAL_VARIABLE) return copy->variables[o->index];
    return copy->parameters ? copy->parameters[o->index] : ACCESS_NONE;
}

/* Parameters first, as the operands of kind PTX_PARAMETER count. */
static const uint32_t *bind_parameters(access_graph *graph, const access_copy *caller,
                                       const ptx_instruction *call) {
    const ptx_operand *results = &call->operands[0], *arguments = &call->operands[2];
    uint32_t *storages = access_take(graph, (results->count + arguments->count) * sizeof *storages);
    for (uint32_t k = 0; k < arguments->count; k++)
        storages[k] = storage_of(caller, &arguments->list[k]);
    for (uint32_t k = 0; k < results->count; k++)
        storages[arguments->count + k] = storage_of(caller, &results->list[k]);
    return storages;
}

static void count_definition(uint8_t *definitions, const ptx_operand *o, bool guarded) {
    if (o->kind == PTX_LIST)
        for (uint32_t k = 0; k < o->count; k++) count_definition(definitions, &o->list[k], guarded);
    else if (o->kind == PTX_REGISTER && !o->is_address && definitions[o->index] < 2)
        definitions[o->index] += guarded ? 2 : 1;
}

/* Operand 0 always counts as written: if it is not, only an optimisation is lost. */
static const uint8_t *count_definitions(access_graph *graph, const ptx_function *function) {
    uint8_t *definitions = access_take(graph, function->register_count);
    for (uint32_t k = 0; k < function->instruction_count; k++) {
        const ptx_instruction *i = &function->instructions[k];
        if (i->operand_count) count_definition(definitions, &i->operands[0], i->guard >= 0);
        if (i->two_results && i->operand_count > 1)
            count_definition(definitions, &i->operands[1], i->guard >= 0);
    }
    return definitions;
}

static const uint32_t *number_variables(access_graph *graph, const ptx_function *function) {
    uint32_t *storages = access_take(graph, function->variable_count * sizeof *storages);
    for (uint32_t k = 0; k < function->variable_count; k++) {
        ptx_space space = function->variables[k].space;
        bool is_storage = space == PTX_LOCAL || space == PTX_PARAM;
        storages[k] = is_storage ? graph->storage_count++ : ACCESS_NONE;
    }
    return storages;
}

static uint32_t block_at(const ptx_function *function, uint32_t instruction) {
    uint32_t low = 0, high = function->block_count; /* blocks lie in the order of the text */
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (function->blocks[middle].first < instruction) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool ends_thread(const ptx_instruction *i) {
    return i->opcode == PTX_OP_exit || i->opcode == PTX_OP_trap;
}

/* The edges out of the last part of a block of the function. */
static void connect_block(builder *b, uint32_t copy, uint32_t number, uint32_t from,
                          uint32_t return_to) {
    const ptx_function *f = b->graph->copies.items[copy].function;
    const uint32_t *block_of = b->graph->copies.items[copy].block_of;
    const ptx_block *block = &f->blocks[number];
    const ptx_instruction *last =
        block->end > block->first ? &f->instructions[block->end - 1] : NULL;
    bool branches = last && last->guard >= 0 &&
                    (last->opcode == PTX_OP_bra || last->opcode == PTX_OP_ret || ends_thread(last));
    uint32_t next = block->end < f->instruction_count ? block_at(f, block->end) : f->block_count;
    uint32_t target = f->block_count;
    if (last && last->opcode == PTX_OP_bra && last->operand_count &&
        last->operands[0].kind == PTX_LABEL && last->operands[0].index < f->instruction_count)
        target = block_at(f, last->operands[0].index);
    for (uint32_t k = 0; k < block->successor_count; k++) {
        uint32_t to = block->successors[k];
        bool leaves = to >= f->block_count;
        if (leaves && (return_to == ACCESS_NONE || (last && ends_thread(last) && last->guard < 0)))
            continue;
        edge e = {.from = from, .to = leaves ? return_to : block_of[to]};
        if (branches && target != next && (to == target || to == next)) {
            e.has_condition = true;
            e.condition_true = (to == target) != last->guard_negated;
        }
        access_push(b->graph, &b->edges, e);
    }
}

static uint32_t copy_function(builder *b, const ptx_function *function, uint32_t caller,
                              const uint32_t *parameters, uint32_t return_to);

/* The parts of one block: it is cut after each call of a copied function. */
static void cut_block(builder *b, uint32_t copy, uint32_t number, uint32_t return_to) {
    access_graph *graph = b->graph;
    const ptx_function *f = graph->copies.items[copy].function;
    const ptx_block *block = &f->blocks[number];
    uint32_t part = graph->copies.items[copy].block_of[number];
    for (uint32_t k = block->first; k < block->end; k++) {
        const ptx_instruction *i = &f->instructions[k];
        const ptx_function *callee = copied_callee(b, copy, i);
        if (!callee) continue;
        graph->copies.items[copy].is_copied_call[k] = true;
        uint32_t rest = new_block(graph, copy, k + 1, block->end);
        graph->blocks.items[part].end = k + 1;
        const uint32_t *parameters = bind_parameters(graph, &graph->copies.items[copy], i);
        uint32_t made = copy_function(b, callee, copy, parameters, rest);
        connect(b, part, graph->copies.items[made].block_of[0]);
        if (i->guard >= 0) connect(b, part, rest);
        part = rest;
    }
    connect_block(b, copy, number, part, return_to);
}

static uint32_t copy_function(builder *b, const ptx_function *function, uint32_t caller,
                              const uint32_t *parameters, uint32_t return_to) {
    access_graph *graph = b->graph;
    access_copy copy = {.function = function, .caller = caller, .parameters = parameters};
    copy.first_register = graph->register_count;
    copy.first_site = graph->site_count;
    graph->register_count += function->register_count;
    graph->site_count += function->instruction_count;
    b->instructions += function->instruction_count;
    copy.variables = number_variables(graph, function);
    copy.is_copied_call = access_take(graph, function->instruction_count);
    copy.definitions = count_definitions(graph, function);
    copy.block_of = access_take(graph, function->block_count * sizeof *copy.block_of);
    uint32_t number = graph->copies.count;
    for (uint32_t k = 0; k < function->block_count; k++)
        copy.block_of[k] =
            new_block(graph, number, function->blocks[k].first, function->blocks[k].end);
    access_push(graph, &graph->copies, copy);
    for (uint32_t k = 0; k < function->block_count; k++) cut_block(b, number, k, return_to);
    return number;
}

/* ---- edges */

/* A condition belongs to a block which has no other predecessor: an edge that leads elsewhere gets an empty block. */
static void split_edges(builder *b) {
    access_graph *graph = b->graph;
    uint32_t *ways_in = access_take(graph, graph->blocks.count * sizeof *ways_in);
    uint32_t edges = b->edges.count;
    for (uint32_t k = 0; k < edges; k++) ways_in[b->edges.items[k].to]++;
    for (uint32_t k = 0; k < edges; k++) {
        edge e = b->edges.items[k];
        if (!e.has_condition || (ways_in[e.to] == 1 && e.to != 0)) continue;
        const access_block *from = &graph->blocks.items[e.from];
        uint32_t between = new_block(graph, from->copy, from->end, from->end);
        b->edges.items[k].to = between;
        connect(b, between, e.to);
    }
}

static void fill_edges(builder *b) {
    access_graph *graph = b->graph;
    for (uint32_t k = 0; k < b->edges.count; k++) {
        graph->blocks.items[b->edges.items[k].from].successor_count++;
        graph->blocks.items[b->edges.items[k].to].predecessor_count++;
    }
    for (uint32_t k = 0; k < graph->blocks.count; k++) {
        access_block *block = &graph->blocks.items[k];
        block->successors = access_take(graph, block->successor_count * sizeof(uint32_t));
        block->predecessors = access_take(graph, block->predecessor_count * sizeof(uint32_t));
        block->successor_count = block->predecessor_count = 0;
    }
    for (uint32_t k = 0; k < b->edges.count; k++) {
        edge e = b->edges.items[k];
        access_block *from = &graph->blocks.items[e.from], *to = &graph->blocks.items[e.to];
        from->successors[from->successor_count++] = e.to;
        to->predecessors[to->predecessor_count++] = e.from;
        if (e.has_condition) to->has_condition = true, to->condition_true = e.condition_true;
    }
}

/* ---- order, dominators, loops */

static void find_order(access_graph *graph) {
    uint32_t n = graph->blocks.count, depth = 0, done = 0;
    uint32_t *stack = access_take(graph, n * sizeof *stack);
    uint32_t *next = access_take(graph, n * sizeof *next);
    uint32_t *postorder = access_take(graph, n * sizeof *postorder);
    stack[depth++] = 0;
    graph->blocks.items[0].reached = true;
    while (depth) {
        access_block *block = &graph->blocks.items[stack[depth - 1]];
        if (next[stack[depth - 1]] == block->successor_count) {
            postorder[done++] = stack[--depth];
            continue;
        }
        uint32_t to = block->successors[next[stack[depth - 1]]++];
        if (graph->blocks.items[to].reached) continue;
        graph->blocks.items[to].reached = true;
        stack[depth++] = to;
    }
    for (uint32_t k = done; k-- > 0;) {
        graph->blocks.items[postorder[k]].order = graph->order.count;
        access_push(graph, &graph->order, postorder[k]);
    }
}

static uint32_t meet(const access_graph *graph, uint32_t a, uint32_t b) {
    const access_block *blocks = graph->blocks.items;
    while (a != b) {
        while (blocks[a].order > blocks[b].order) a = blocks[a].dominator;
        while (blocks[b].order > blocks[a].order) b = blocks[b].dominator;
    }
    return a;
}

/* Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm. */
static void find_dominators(access_graph *graph) {
    access_block *blocks = graph->blocks.items;
    blocks[0].dominator = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = 1; k < graph->order.count; k++) {
            access_block *block = &blocks[graph->order.items[k]];
            uint32_t dominator = ACCESS_NONE;
            for (uint32_t p = 0; p < block->predecessor_count; p++) {
                uint32_t from = block->predecessors[p];
                if (!blocks[from].reached || blocks[from].dominator == ACCESS_NONE) continue;
                dominator = dominator == ACCESS_NONE ? from : meet(graph, from, dominator);
            }
            changed |= dominator != block->dominator;
            block->dominator = dominator;
        }
    }
}

/* Numbers the tree of dominators, so that the blocks under one are an interval. */
static void number_dominators(access_graph *graph) {
    access_block *blocks = graph->blocks.items;
    uint32_t *size = access_take(graph, graph->blocks.count * sizeof *size);
    uint32_t *cursor = access_take(graph, graph->blocks.count * sizeof *cursor);
    for (uint32_t k = graph->order.count; k-- > 0;) {
        uint32_t b = graph->order.items[k];
        size[b]++;
        if (b) size[blocks[b].dominator] += size[b];
    }
    for (uint32_t k = 0; k < graph->order.count; k++) {
        uint32_t b = graph->order.items[k];
        blocks[b].enter = b ? cursor[blocks[b].dominator] : 0;
        if (b) cursor[blocks[b].dominator] += size[b];
        cursor[b] = blocks[b].enter + 1;
        blocks[b].leave = blocks[b].enter + size[b];
    }
}

bool access_dominates(const access_graph *graph, uint32_t a, uint32_t b) {
    const access_block *over = &graph->blocks.items[a], *under = &graph->blocks.items[b];
    return over->enter <= under->enter && under->enter < over->leave;
}

/* Gives the blocks from which `header` can be reached without leaving its loop to that loop. Inner loops are known. */
static void fill_loop(access_graph *graph, uint32_t header) {
    access_block *blocks = graph->blocks.items;
    ACCESS_LIST(uint32_t) stack = {0};
    for (uint32_t p = 0; p < blocks[header].predecessor_count; p++) {
        uint32_t from = blocks[header].predecessors[p];
        if (blocks[from].reached && access_dominates(graph, header, from))
            access_push(graph, &stack, from);
    }
    while (stack.count) {
        uint32_t b = stack.items[--stack.count];
        if (b == header || !blocks[b].reached) continue;
        if (blocks[b].loop == ACCESS_NONE) {
            blocks[b].loop = header;
        } else {
            b = blocks[b].loop;
            while (blocks[b].outer_loop != ACCESS_NONE && b != header) b = blocks[b].outer_loop;
            if (b == header) continue;
            blocks[b].outer_loop = header;
        }
        for (uint32_t p = 0; p < blocks[b].predecessor_count; p++)
            access_push(graph, &stack, blocks[b].predecessors[p]);
    }
    blocks[header].loop = header;
}

static void find_loops(access_graph *graph) {
    access_block *blocks = graph->blocks.items;
    for (uint32_t k = graph->order.count; k-- > 0;) {
        uint32_t header = graph->order.items[k];
        for (uint32_t p = 0; p < blocks[header].predecessor_count; p++) {
            uint32_t from = blocks[header].predecessors[p];
            if (!blocks[from].reached || blocks[from].order < blocks[header].order) continue;
            if (access_dominates(graph, header, from)) blocks[header].is_header = true;
            else blocks[header].is_irreducible = true;
        }
        if (blocks[header].is_header) fill_loop(graph, header);
    }
}

bool access_is_copied(const access_graph *graph, uint32_t copy, uint32_t instruction) {
    return graph->copies.items[copy].is_copied_call[instruction];
}

bool access_in_loop(const access_graph *graph, uint32_t block, uint32_t header) {
    uint32_t loop = graph->blocks.items[block].loop;
    while (loop != ACCESS_NONE && loop != header) loop = graph->blocks.items[loop].outer_loop;
    return loop == header;
}

void access_build_blocks(access_graph *graph) {
    builder b = {.graph = graph};
    copy_function(&b, graph->kernel, ACCESS_NONE, NULL, ACCESS_NONE);
    split_edges(&b);
    fill_edges(&b);
    find_order(graph);
    find_dominators(graph);
    number_dominators(graph);
    find_loops(graph);
}
