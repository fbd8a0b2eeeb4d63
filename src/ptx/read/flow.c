/* Basic blocks, and for each one its immediate post-dominator: the first block that every path from it to the
 * function's exit comes through. There the lanes of a warp that took different ways meet again.
 *
 * Post-dominators are the dominators of the reversed graph from the exit. They are found by the algorithm of Lengauer
 * and Tarjan with path compression, whose time is O(m log n) for any graph, however the text was made. Paths that never
 * reach the exit (into an endless loop) do not count: they must not keep lanes apart that go on. A block of such a loop
 * has the exit as its post-dominator.
 *
 * Nothing here recurses: a function may have 100,000 blocks in a row. */
#include <stdlib.h>
#include <string.h>

#include "ptx/read/reader.h"

/* ---- blocks */

static bool ends_block(const ptx_instruction *i) {
    switch (i->opcode) {
    case PTX_OP_bra:
    case PTX_OP_brx:
    case PTX_OP_ret:
    case PTX_OP_exit:
    case PTX_OP_trap: return true;
    default: return false;
    }
}

/* The indices of the instructions that a branch names; NULL: it is not a branch. */
static const uint32_t *branch_targets(const ptx_function *f, const ptx_instruction *i,
                                      uint32_t *out_count) {
    *out_count = 0;
    if (i->opcode == PTX_OP_brx) {
        const ptx_targets *targets = &f->targets[i->operands[1].index];
        *out_count = targets->count;
        return targets->items;
    }
    if (i->opcode != PTX_OP_bra) return NULL;
    *out_count = 1;
    return &i->operands[0].index;
}

/* leader[i]: a block begins at instruction i. Returns how many there are. */
static uint32_t mark_leaders(const ptx_function *f, bool *leader) {
    uint32_t n = f->instruction_count, count = 0, target_count;
    if (n) leader[0] = true;
    for (uint32_t i = 0; i < n; i++) {
        if (!ends_block(&f->instructions[i])) continue;
        const uint32_t *targets = branch_targets(f, &f->instructions[i], &target_count);
        for (uint32_t t = 0; t < target_count; t++) leader[targets[t]] = true;
        leader[i + 1] = true;
    }
    for (uint32_t i = 0; i < n; i++) count += leader[i];
    return count;
}

/* Where instructions lie, and which blocks were already named as a successor of the block at hand. */
typedef struct {
    const ptx_function *function;
    uint32_t block_count;
    uint32_t *block_of; /* by instruction; instruction_count: the exit */
    uint32_t *named_by; /* by block: one more than the last block that named it */
} layout;

static void add_successor(layout *l, uint32_t block, uint32_t successor, uint32_t *out,
                          uint32_t *count) {
    if (l->named_by[successor] == block + 1) return;
    l->named_by[successor] = block + 1;
    out[(*count)++] = successor;
}

/* Returns how many there are; `out` has room for one more than the targets of the block's branch. */
static uint32_t find_successors(layout *l, uint32_t block, uint32_t end, uint32_t *out) {
    const ptx_instruction *last = &l->function->instructions[end - 1];
    uint32_t count = 0, target_count;
    const uint32_t *targets = branch_targets(l->function, last, &target_count);
    for (uint32_t t = 0; t < target_count; t++)
        add_successor(l, block, l->block_of[targets[t]], out, &count);
    bool branches = last->opcode == PTX_OP_bra || last->opcode == PTX_OP_brx;
    if (ends_block(last) && !branches) add_successor(l, block, l->block_count, out, &count);
    if (!ends_block(last) || last->guard >= 0)
        add_successor(l, block, l->block_of[end], out, &count);
    return count;
}

static void cut(const ptx_function *f, const bool *leader, ptx_block *blocks, uint32_t *block_of) {
    uint32_t block = 0;
    for (uint32_t i = 0; i < f->instruction_count; i++) {
        if (leader[i] && i) block++;
        if (leader[i]) blocks[block].first = i;
        blocks[block].end = i + 1;
        block_of[i] = block;
    }
    block_of[f->instruction_count] = f->block_count;
}

static bool link_blocks(layout *l, ptx_block *blocks, mr_region *arena) {
    for (uint32_t b = 0; b < l->block_count; b++) {
        uint32_t room;
        branch_targets(l->function, &l->function->instructions[blocks[b].end - 1], &room);
        uint32_t *successors = mr_region_alloc(arena, (room + 1) * sizeof *successors);
        if (!successors) return false;
        blocks[b].successor_count = find_successors(l, b, blocks[b].end, successors);
        blocks[b].successors = successors;
    }
    return true;
}

/* ---- post-dominators */

/* All arrays are by node; a node is a block, and block_count is the exit. `order` numbers the nodes as the depth-first
 * search from the exit against the edges meets them; `vertex` is its inverse. The names are those of Lengauer and
 * Tarjan's paper. */
typedef struct {
    const ptx_block *blocks;
    uint32_t count; /* of blocks */
    uint32_t *first_predecessor,
        *predecessors; /* of node n: [first_predecessor[n], first_predecessor[n + 1]) */
    uint32_t *order, *vertex, *parent, *semi, *ancestor, *label, *bucket, *next, *dominator;
    uint32_t *stack, *cursor;
    uint32_t found; /* nodes that can reach the exit */
} dominance;

#define NONE UINT32_MAX

static void list_predecessors(dominance *d) {
    for (uint32_t b = 0; b < d->count; b++)
        for (uint32_t s = 0; s < d->blocks[b].successor_count; s++)
            d->first_predecessor[d->blocks[b].successors[s] + 1]++;
    for (uint32_t n = 0; n <= d->count; n++) d->first_predecessor[n + 1] += d->first_predecessor[n];
    memcpy(d->cursor, d->first_predecessor, (d->count + 1) * sizeof *d->cursor);
    for (uint32_t b = 0; b < d->count; b++)
        for (uint32_t s = 0; s < d->blocks[b].successor_count; s++)
            d->predecessors[d->cursor[d->blocks[b].successors[s]]++] = b;
}

static void meet(dominance *d, uint32_t node, uint32_t parent) {
    d->parent[node] = parent;
    d->order[node] = d->semi[node] = d->found;
    d->vertex[d->found++] = node;
    d->label[node] = node;
    d->cursor[node] = d->first_predecessor[node];
}

/* Depth first, from the exit. */
static void number_nodes(dominance *d) {
    uint32_t depth = 0;
    memset(d->order, 0xFF, (d->count + 1) * sizeof *d->order);
    meet(d, d->count, NONE);
    d->stack[depth++] = d->count;
    while (depth) {
        uint32_t node = d->stack[depth - 1];
        if (d->cursor[node] == d->first_predecessor[node + 1]) {
            depth--;
            continue;
        }
        uint32_t next = d->predecessors[d->cursor[node]++];
        if (d->order[next] != NONE) continue;
        meet(d, next, node);
        d->stack[depth++] = next;
    }
}

/* The node with the least semidominator on the way up to the root of its tree in the forest; shortens that way. */
static uint32_t evaluate(dominance *d, uint32_t node) {
    uint32_t depth = 0;
    if (d->ancestor[node] == NONE) return d->label[node];
    for (uint32_t n = node; d->ancestor[d->ancestor[n]] != NONE; n = d->ancestor[n])
        d->stack[depth++] = n;
    while (depth) {
        uint32_t n = d->stack[--depth], up = d->ancestor[n];
        if (d->semi[d->label[up]] < d->semi[d->label[n]]) d->label[n] = d->label[up];
        d->ancestor[n] = d->ancestor[up];
    }
    return d->label[node];
}

static void semidominator(dominance *d, uint32_t node) {
    for (uint32_t s = 0; s < d->blocks[node].successor_count; s++) {
        uint32_t successor = d->blocks[node].successors[s];
        if (d->order[successor] == NONE) continue;
        uint32_t candidate = d->semi[evaluate(d, successor)];
        if (candidate < d->semi[node]) d->semi[node] = candidate;
    }
}

static void find_dominators(dominance *d) {
    memset(d->ancestor, 0xFF, (d->count + 1) * sizeof *d->ancestor);
    memset(d->bucket, 0xFF, (d->count + 1) * sizeof *d->bucket);
    for (uint32_t i = d->found - 1; i > 0; i--) {
        uint32_t node = d->vertex[i], parent = d->parent[node];
        semidominator(d, node);
        uint32_t home = d->vertex[d->semi[node]];
        d->next[node] = d->bucket[home];
        d->bucket[home] = node;
        d->ancestor[node] = parent;
        for (uint32_t n = d->bucket[parent]; n != NONE; n = d->next[n]) {
            uint32_t best = evaluate(d, n);
            d->dominator[n] = d->semi[best] < d->semi[n] ? best : parent;
        }
        d->bucket[parent] = NONE;
    }
    for (uint32_t i = 1; i < d->found; i++) {
        uint32_t node = d->vertex[i];
        if (d->dominator[node] != d->vertex[d->semi[node]])
            d->dominator[node] = d->dominator[d->dominator[node]];
    }
}

static bool find_post_dominators(ptx_block *blocks, uint32_t count) {
    size_t edges = 0, nodes = (size_t)count + 2;
    for (uint32_t b = 0; b < count; b++) edges += blocks[b].successor_count;
    uint32_t *memory = calloc(13 * nodes + edges, sizeof *memory);
    if (memory) {
        dominance d = {.blocks = blocks, .count = count};
        uint32_t **arrays[] = {
            &d.first_predecessor, &d.order,  &d.vertex, &d.parent, &d.semi,      &d.label,
            &d.ancestor,          &d.bucket, &d.next,   &d.stack,  &d.dominator, &d.cursor};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) *arrays[i] = memory + i * nodes;
        d.predecessors = memory + 12 * nodes;
        list_predecessors(&d);
        number_nodes(&d);
        find_dominators(&d);
        for (uint32_t b = 0; b < count; b++)
            blocks[b].post_dominator = d.order[b] == NONE ? count : d.dominator[b];
    }
    free(memory);
    return memory != NULL;
}

/* ---- both */

bool ptx_find_blocks(ptx_function *f, mr_region *arena) {
    size_t n = f->instruction_count;
    bool *leader = calloc(n + 1, sizeof *leader), done = false;
    uint32_t *block_of = calloc(n + 1, sizeof *block_of);
    uint32_t *named_by = calloc(n + 1, sizeof *named_by);
    if (leader && block_of && named_by) {
        f->block_count = mark_leaders(f, leader);
        ptx_block *blocks = mr_region_alloc(arena, f->block_count * sizeof *blocks + 1);
        layout l = {f, f->block_count, block_of, named_by};
        if (blocks) cut(f, leader, blocks, block_of);
        done = blocks && link_blocks(&l, blocks, arena) &&
               find_post_dominators(blocks, f->block_count);
        f->blocks = blocks;
    }
    free(leader);
    free(block_of);
    free(named_by);
    return done;
}
