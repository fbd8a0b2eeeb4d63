/* Groups of races: see groups.h. */
#include "explore/groups.h"

#include <stdlib.h>
#include <string.h>

static bool has(const uint64_t *row, uint32_t n) {
    return row[n / 64] >> n % 64 & 1;
}

static void set(uint64_t *row, uint32_t n) {
    row[n / 64] |= (uint64_t)1 << n % 64;
}

/* ---- strongly connected components, by Kosaraju's algorithm on rows of bits */

typedef struct {
    uint32_t count, words;
    uint64_t *behind; /* by node: the nodes at the other ends of its edges */
    uint64_t *ahead;  /* and of the edges that lead to it */
    uint64_t *left;   /* not visited yet */
    uint32_t *stack, *order;
} graph;

static uint64_t *row_of(const graph *g, uint64_t *rows, uint32_t n) {
    return rows + (size_t)n * g->words;
}

static void add_edge(const graph *g, uint32_t from, uint32_t to) {
    set(row_of(g, g->behind, from), to);
    set(row_of(g, g->ahead, to), from);
}

static void add_edges(const graph *g, const race_graph *given) {
    for (uint32_t n = 0; n < g->count; n++) {
        const uint64_t *before = given->before + (size_t)n * given->words,
                       *races = given->races + (size_t)n * given->words;
        for (uint32_t m = 0; m < n; m++) {
            if (has(before, m) || has(races, m)) add_edge(g, m, n);
            if (has(races, m)) add_edge(g, n, m);
        }
    }
}

static void leave_all(const graph *g) {
    memset(g->left, 0, g->words * sizeof *g->left);
    for (uint32_t n = 0; n < g->count; n++) set(g->left, n);
}

static uint32_t next_left(const graph *g, const uint64_t *row) {
    for (uint32_t i = 0; i < g->words; i++)
        if (row[i] & g->left[i]) return i * 64 + (uint32_t)__builtin_ctzll(row[i] & g->left[i]);
    return NO_GROUP;
}

/* Visits all nodes that can be reached. Appends each to `out` after all nodes behind it. */
static uint32_t visit(const graph *g, uint64_t *edges, uint32_t from, uint32_t *out) {
    uint32_t depth = 0, count = 0;
    g->stack[depth++] = from;
    g->left[from / 64] &= ~((uint64_t)1 << from % 64);
    while (depth) {
        uint32_t next = next_left(g, row_of(g, edges, g->stack[depth - 1]));
        if (next == NO_GROUP) {
            out[count++] = g->stack[--depth];
            continue;
        }
        g->left[next / 64] &= ~((uint64_t)1 << next % 64);
        g->stack[depth++] = next;
    }
    return count;
}

/* A component gets the number of one of its nodes. */
static void find_components(const graph *g, uint32_t *out_component, uint32_t *room) {
    uint32_t visited = 0;
    leave_all(g);
    for (uint32_t n = 0; n < g->count; n++)
        if (has(g->left, n)) visited += visit(g, g->behind, n, g->order + visited);
    leave_all(g);
    while (visited-- > 0) {
        uint32_t root = g->order[visited];
        if (!has(g->left, root)) continue;
        uint32_t size = visit(g, g->ahead, root, room);
        for (uint32_t i = 0; i < size; i++) out_component[room[i]] = root;
    }
}

static bool graph_open(graph *g, const race_graph *given) {
    size_t bits = (size_t)given->count * given->words + 1;
    *g = (graph){.count = given->count,
                 .words = given->words,
                 .behind = calloc(bits, sizeof *g->behind),
                 .ahead = calloc(bits, sizeof *g->ahead),
                 .left = calloc(given->words + 1, sizeof *g->left),
                 .stack = calloc(given->count + 1, sizeof *g->stack),
                 .order = calloc(given->count + 1, sizeof *g->order)};
    return g->behind && g->ahead && g->left && g->stack && g->order;
}

static void graph_close(graph *g) {
    free(g->behind);
    free(g->ahead);
    free(g->left);
    free(g->stack);
    free(g->order);
}

/* ---- groups */

static uint32_t find(const groups *g, uint32_t group) {
    while (group != NO_GROUP && g->joined[group] != group) group = g->joined[group];
    return group;
}

/* The group of both; one of them may be NO_GROUP. */
static uint32_t join(groups *g, uint32_t a, uint32_t b) {
    a = find(g, a);
    b = find(g, b);
    if (a == NO_GROUP) return b;
    if (b != NO_GROUP) g->joined[b] = a;
    return a;
}

static void forget_components_without_races(groups *g, const race_graph *given, bool *racing) {
    for (uint32_t n = 0; n < given->count; n++)
        for (uint32_t i = 0; i < given->words; i++)
            if (given->races[(size_t)n * given->words + i]) racing[g->of[n]] = true;
    for (uint32_t n = 0; n < given->count; n++)
        if (!racing[g->of[n]]) g->of[n] = NO_GROUP;
}

static bool find_groups(groups *g, const race_graph *given) {
    graph made;
    bool *racing = calloc(given->count + 1, sizeof *racing);
    bool fine = graph_open(&made, given) && racing;
    if (fine) {
        add_edges(&made, given);
        find_components(&made, g->of, g->joined);
        for (uint32_t n = 0; n < given->count; n++) g->joined[n] = n;
        forget_components_without_races(g, given, racing);
    }
    graph_close(&made);
    free(racing);
    return fine;
}

mr_status groups_open(groups *g, const race_graph *given, uint32_t memories) {
    *g = (groups){.nodes = given->count,
                  .memories = memories,
                  .of = calloc(given->count + 1, sizeof *g->of),
                  .joined = calloc(given->count + 1, sizeof *g->joined),
                  .taints = malloc((memories + 1) * sizeof *g->taints)};
    if (g->of && g->joined && g->taints && find_groups(g, given)) {
        for (uint32_t m = 0; m < memories; m++) g->taints[m] = NO_GROUP;
        return MR_OK;
    }
    groups_close(g);
    return mr_no_memory("for groups of races");
}

void groups_close(groups *g) {
    free(g->of);
    free(g->joined);
    free(g->taints);
    mr_vec_free(&g->all);
    *g = (groups){0};
}

/* ---- taint */

static bool overlaps(const group_taint *t, const group_touch *touch) {
    return t->first < touch->end && touch->first < t->end;
}

uint32_t groups_taint_of(const groups *g, const group_touch *touch) {
    for (uint32_t i = g->taints[touch->memory]; i != NO_GROUP; i = g->all.items[i].next)
        if (overlaps(&g->all.items[i], touch)) return find(g, g->all.items[i].group);
    return NO_GROUP;
}

static uint32_t join_taints(groups *g, const group_touch *touch, uint32_t group) {
    for (uint32_t i = g->taints[touch->memory]; i != NO_GROUP; i = g->all.items[i].next)
        if (overlaps(&g->all.items[i], touch)) group = join(g, group, g->all.items[i].group);
    return group;
}

static bool has_taint(const groups *g, const group_touch *touch) {
    for (uint32_t i = g->taints[touch->memory]; i != NO_GROUP; i = g->all.items[i].next) {
        const group_taint *t = &g->all.items[i];
        if (t->first <= touch->first && touch->end <= t->end) return true;
    }
    return false;
}

/* By now the existing taints of this memory belong to the same group. */
static bool taint(groups *g, const group_touch *touch, uint32_t group) {
    if (touch->first >= touch->end || has_taint(g, touch)) return true;
    group_taint t = {touch->first, touch->end, group, g->taints[touch->memory]};
    if (!mr_vec_push(&g->all, t)) return false;
    g->taints[touch->memory] = (uint32_t)g->all.count - 1;
    return true;
}

mr_status groups_pass(groups *g, uint32_t first, uint32_t end, const group_touch *touches,
                      size_t count) {
    uint32_t group = NO_GROUP;
    for (uint32_t n = first; n < end; n++) group = join(g, group, g->of[n]);
    for (size_t i = 0; i < count; i++)
        if (touches[i].reads) group = join_taints(g, &touches[i], group);
    if (group == NO_GROUP) return MR_OK;
    for (size_t i = 0; i < count; i++)
        if (touches[i].writes) group = join_taints(g, &touches[i], group);
    for (size_t i = 0; i < count; i++)
        if (touches[i].writes && !taint(g, &touches[i], group))
            return mr_no_memory("for groups of races");
    return MR_OK;
}

/* `joined` then has the number of each group that is left. */
uint32_t groups_number(groups *g) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < g->nodes; n++) g->of[n] = find(g, g->of[n]);
    for (size_t i = 0; i < g->all.count; i++)
        g->all.items[i].group = find(g, g->all.items[i].group);
    for (uint32_t n = 0; n < g->nodes; n++) g->joined[n] = NO_GROUP;
    for (uint32_t n = 0; n < g->nodes; n++) {
        if (g->of[n] == NO_GROUP) continue;
        if (g->joined[g->of[n]] == NO_GROUP) g->joined[g->of[n]] = count++;
        g->of[n] = g->joined[g->of[n]];
    }
    for (size_t i = 0; i < g->all.count; i++)
        g->all.items[i].group = g->joined[g->all.items[i].group];
    return count;
}
