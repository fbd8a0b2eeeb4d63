/* All conditions that an access in a block depends on: a chain of conditions and loops from the block up to the entry.
 * If all are true, the access happens; launch.c only knows that it may.
 *
 * A block is reached whenever another one is if every way on from there leads through it: if it postdominates it. A way
 * back counts as the ways out of its loop, so that this holds for each iteration by itself.
 *
 * Easiest to break: an edge that is forgotten makes an access certain that is not. */
#include <string.h>

#include "ptx/access/graph.h"

enum { MOST_BLOCKS = 1024, MOST_ATOMS = 32, MOST_DEPTH = 6 };

struct access_paths {
    access_graph *graph;
    uint32_t words;
    uint64_t *through; /* by block in order: the blocks that every way on leads through */
    /* by block in order, for headers: the blocks to which the loop's exits lead */
    uint64_t *out;
    bool is_known;
};

static const access_block *block_at(const access_graph *graph, uint32_t b) {
    return &graph->blocks.items[b];
}

static bool is_way_back(const access_graph *graph, uint32_t from, uint32_t to) {
    return block_at(graph, to)->is_header && access_dominates(graph, to, from);
}

static uint64_t *set_of(uint64_t *sets, const access_paths *p, uint32_t block) {
    return sets + (size_t)block_at(p->graph, block)->order * p->words;
}

static void put(uint64_t *set, uint32_t bit) {
    set[bit / 64] |= UINT64_C(1) << (bit % 64);
}

/* Outer headers come first, so that a way out of a loop that leads back to the next outer one is known. */
static void find_ways_out(access_paths *p, uint32_t header) {
    access_graph *graph = p->graph;
    uint64_t *out = set_of(p->out, p, header);
    for (uint32_t k = 0; k < graph->order.count; k++) {
        uint32_t from = graph->order.items[k];
        const access_block *b = block_at(graph, from);
        if (!access_in_loop(graph, from, header)) continue;
        for (uint32_t s = 0; s < b->successor_count; s++) {
            uint32_t to = b->successors[s];
            if (access_in_loop(graph, to, header)) continue;
            if (!is_way_back(graph, from, to)) {
                put(out, block_at(graph, to)->order);
                continue;
            }
            const uint64_t *outer = set_of(p->out, p, to);
            for (uint32_t w = 0; w < p->words; w++) out[w] |= outer[w];
        }
    }
}

static void meet(const access_paths *p, uint64_t *to, uint32_t order) {
    const uint64_t *from = p->through + (size_t)order * p->words;
    for (uint32_t w = 0; w < p->words; w++) to[w] &= from[w];
}

static bool is_trap(const access_graph *graph, const access_block *b) {
    const ptx_function *f = graph->copies.items[b->copy].function;
    return b->end > b->first && f->instructions[b->end - 1].opcode == PTX_OP_trap &&
           f->instructions[b->end - 1].guard < 0;
}

/* Some threads can end at the last instruction of the block, and the others go on. */
static bool may_end_thread(const access_graph *graph, const access_block *b) {
    const access_copy *copy = &graph->copies.items[b->copy];
    if (b->end == b->first) return false;
    const ptx_instruction *last = &copy->function->instructions[b->end - 1];
    bool leaves =
        last->opcode == PTX_OP_exit || (last->opcode == PTX_OP_ret && copy->caller == ACCESS_NONE);
    return leaves && last->guard >= 0;
}

/* Every way from a block that ends with an error leads everywhere: that launch does not end. */
static bool update(access_paths *p, uint32_t block, uint64_t *scratch) {
    access_graph *graph = p->graph;
    const access_block *b = block_at(graph, block);
    uint64_t *through = set_of(p->through, p, block);
    bool ends = true, changed = false;
    memset(scratch, 0xff, p->words * sizeof *scratch);
    for (uint32_t s = 0; s < b->successor_count; s++) {
        uint32_t to = b->successors[s];
        bool back = is_way_back(graph, block, to);
        const uint64_t *out = set_of(p->out, p, to);
        for (uint32_t k = 0; k < graph->order.count && back; k++) {
            if (!access_has(out, k)) continue;
            meet(p, scratch, k);
            ends = false;
        }
        if (back) continue;
        meet(p, scratch, block_at(graph, to)->order);
        ends = false;
    }
    if ((ends && !is_trap(graph, b)) || may_end_thread(graph, b))
        memset(scratch, 0, p->words * sizeof *scratch);
    put(scratch, b->order);
    for (uint32_t w = 0; w < p->words; w++) changed |= through[w] != scratch[w];
    memcpy(through, scratch, p->words * sizeof *scratch);
    return changed;
}

const access_paths *access_find_paths(access_graph *graph) {
    access_paths *p = access_take(graph, sizeof *p);
    uint32_t n = graph->order.count;
    p->graph = graph;
    p->words = (n + 63) / 64;
    if (n > MOST_BLOCKS) return p;
    for (uint32_t k = 0; k < n; k++)
        if (block_at(graph, graph->order.items[k])->is_irreducible) return p;
    p->is_known = true;
    p->through = access_take(graph, (size_t)n * p->words * sizeof *p->through);
    p->out = access_take(graph, (size_t)n * p->words * sizeof *p->out);
    memset(p->through, 0xff, (size_t)n * p->words * sizeof *p->through);
    uint64_t *scratch = access_take(graph, p->words * sizeof *scratch);
    for (uint32_t k = 0; k < n; k++)
        if (block_at(graph, graph->order.items[k])->is_header)
            find_ways_out(p, graph->order.items[k]);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = n; k-- > 0;) changed |= update(p, graph->order.items[k], scratch);
    }
    return p;
}

/* ---- conditions */

/* Whether the comparisons that hold if the predicate is `is_true` are equivalent to the predicate. */
static bool is_complete(const access_graph *graph, uint32_t predicate, bool is_true, int depth,
                        uint32_t *atoms) {
    const access_value *v = access_value_at(graph, predicate);
    if (depth > MOST_DEPTH || *atoms > MOST_ATOMS || v->bits != 1) return false;
    if (v->op == ACCESS_COMPARE) {
        ++*atoms;
        return true;
    }
    if (v->op == (is_true ? ACCESS_AND : ACCESS_OR))
        return is_complete(graph, access_operand(graph, v, 0), is_true, depth + 1, atoms) &&
               is_complete(graph, access_operand(graph, v, 1), is_true, depth + 1, atoms);
    if (v->op != ACCESS_XOR) return false;
    const access_value *other = access_value_at(graph, access_operand(graph, v, 1));
    return other->op == ACCESS_CONSTANT &&
           is_complete(graph, access_operand(graph, v, 0), is_true != (other->constant != 0),
                       depth + 1, atoms);
}

static bool has_condition(const access_graph *graph, uint32_t block, uint32_t *out_atoms) {
    const access_block *b = block_at(graph, block);
    *out_atoms = 0;
    return b->has_condition && b->condition != ACCESS_NONE && b->predecessor_count == 1 &&
           is_complete(graph, b->condition, b->condition_true, 0, out_atoms);
}

/* The block after the test of a loop that ends in one place only, by one comparison, which every iteration comes to;
 * ACCESS_NONE: it is not such a loop. */
static uint32_t block_behind_test(const access_graph *graph, uint32_t header) {
    uint32_t behind = ACCESS_NONE, from = ACCESS_NONE, atoms;
    for (uint32_t k = 0; k < graph->order.count; k++) {
        uint32_t block = graph->order.items[k];
        const access_block *b = block_at(graph, block);
        if (!access_in_loop(graph, block, header)) continue;
        if (may_end_thread(graph, b)) return ACCESS_NONE;
        for (uint32_t s = 0; s < b->successor_count; s++) {
            if (access_in_loop(graph, b->successors[s], header)) continue;
            if (from != ACCESS_NONE || b->successor_count != 2) return ACCESS_NONE;
            from = block;
            behind = b->successors[1 - s];
        }
    }
    if (from == ACCESS_NONE || !access_in_loop(graph, behind, header)) return ACCESS_NONE;
    const access_block *h = block_at(graph, header);
    for (uint32_t k = 0; k < h->predecessor_count; k++)
        if (is_way_back(graph, h->predecessors[k], header) &&
            !access_dominates(graph, from, h->predecessors[k]))
            return ACCESS_NONE;
    return has_condition(graph, behind, &atoms) && atoms == 1 ? behind : ACCESS_NONE;
}

/* ---- chains */

static uint32_t climb(const access_paths *p, uint32_t subject, uint32_t loop) {
    const access_graph *graph = p->graph;
    uint32_t bit = block_at(graph, subject)->order, at = subject;
    while (at != 0 && at != loop) {
        uint32_t above = block_at(graph, at)->dominator;
        if (!access_has(set_of(p->through, p, above), bit)) break;
        at = above;
    }
    return at;
}

static bool has_link(const access_link *links, uint32_t count, uint32_t block) {
    for (uint32_t k = 0; k < count; k++)
        if (links[k].kind == ACCESS_LINK_CONDITION && links[k].block == block) return true;
    return false;
}

mr_ptx_reason access_links(const access_paths *p, uint32_t block, access_link *out,
                           uint32_t *out_count) {
    const access_graph *graph = p->graph;
    uint32_t subject = block, loop = block_at(graph, block)->loop, atoms;
    *out_count = 0;
    if (!p->is_known) return MR_PTX_SIZE;
    for (;;) {
        uint32_t at = climb(p, subject, loop);
        if (block_at(graph, at)->loop != loop) return MR_PTX_CONDITION;
        if (*out_count == ACCESS_MOST_LINKS) return MR_PTX_SIZE;
        if (at == loop) { /* its header, which is executed once more in each iteration */
            uint32_t behind = block_behind_test(graph, loop);
            if (behind == ACCESS_NONE) return MR_PTX_LOOP;
            bool is_tested = has_link(out, *out_count, behind);
            out[(*out_count)++] = (access_link){
                .kind = is_tested ? ACCESS_LINK_TESTED : ACCESS_LINK_LOOP, .block = loop};
            loop = block_at(graph, loop)->outer_loop;
            subject = at;
            if (at == 0) return MR_PTX_CERTAIN;
            continue;
        }
        if (at == 0) return MR_PTX_CERTAIN;
        if (!has_condition(graph, at, &atoms)) return MR_PTX_CONDITION;
        out[(*out_count)++] = (access_link){.kind = ACCESS_LINK_CONDITION, .block = at};
        subject = block_at(graph, at)->dominator;
        if (block_at(graph, subject)->loop != loop) return MR_PTX_CONDITION;
    }
}
