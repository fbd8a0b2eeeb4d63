/* See naive_watch.h. Every lane's access, fence and barrier is a node; `before[n]` is the set of nodes that are ordered
 * before n (PTX: base causality order). Nothing here is fast or shared with src/ptx. */
#include "naive_watch.h"

#include <string.h>

#define MOST_NODES 2400
#define WORDS      ((MOST_NODES + 63) / 64)
typedef struct {
    uint64_t bits[WORDS];
} node_set;

typedef enum { NODE_ACCESS, NODE_FENCE, NODE_JOIN } node_kind;
typedef struct {
    node_kind kind;
    uint32_t event, lane, block, warp, thread; /* thread: of the launch */
    ptx_space space;
    uint64_t address;
    uint32_t bytes;
    bool reads, writes, strong, wide, acquires, releases;
    bool is_exchange; /* volatile, in shared memory */
    bool is_spread;   /* lanes of one event at several places */
} node;

static node nodes[MOST_NODES];
static node_set before[MOST_NODES];
static node_set by_barriers[MOST_NODES]; /* of `before` what no message between threads has told */
static node_set observed[MOST_NODES]; /* writes that a strong read has seen, through atomics too */
static uint32_t node_count;
static int last_of_thread[8 * 128];
static int writer_of_byte[NAIVE_BYTES]; /* -1: none */
static int arrived[8];                  /* by block: a node, or -1 */
static bool pair_races[MOST_NODES][MOST_NODES];

static bool has(const node_set *s, uint32_t n) {
    return s->bits[n / 64] >> n % 64 & 1;
}
static void add(node_set *s, uint32_t n) {
    s->bits[n / 64] |= (uint64_t)1 << n % 64;
}
static void add_all(node_set *s, const node_set *other) {
    for (int i = 0; i < WORDS; i++) s->bits[i] |= other->bits[i];
}

uint32_t naive_byte(ptx_space space, uint32_t block, uint64_t address) {
    return space == PTX_SHARED ? REGION_BYTES * (block + 1) + (uint32_t)address
                               : (uint32_t)(address - GLOBAL_START);
}

static uint32_t node_add(node n) {
    uint32_t i = node_count++;
    nodes[i] = n;
    memset(&before[i], 0, sizeof before[i]);
    memset(&by_barriers[i], 0, sizeof by_barriers[i]);
    memset(&observed[i], 0, sizeof observed[i]);
    return i;
}

static void told(uint32_t n, uint32_t earlier) {
    add(&before[n], earlier);
    add_all(&before[n], &before[earlier]);
}
static void after(uint32_t n, int earlier) {
    if (earlier < 0) return;
    told(n, (uint32_t)earlier);
    add(&by_barriers[n], (uint32_t)earlier);
    add_all(&by_barriers[n], &by_barriers[earlier]);
}

static bool scopes_hold(const node *a, const node *b) {
    return a->block == b->block || (a->wide && b->wide);
}

static bool same_place(const node *a, const node *b) {
    return a->space == b->space && a->address == b->address && a->bytes == b->bytes &&
           (a->space != PTX_SHARED || a->block == b->block);
}

static bool morally_strong(const node *a, const node *b) {
    return a->strong && b->strong && same_place(a, b) && scopes_hold(a, b);
}

/* `last` ends acquire patterns: of each strong read of its thread (on its own location, if it is an access). */
static void synchronize(uint32_t last) {
    const node *l = &nodes[last];
    for (uint32_t z = 0; z <= last; z++) {
        const node *read = &nodes[z];
        if (read->kind != NODE_ACCESS || !read->reads || !read->strong ||
            read->thread != l->thread || (l->kind == NODE_ACCESS && !same_place(read, l)))
            continue;
        for (uint32_t w = 0; w < z; w++) {
            if (!has(&observed[z], w)) continue;
            for (uint32_t f = 0; f <= w; f++) {
                const node *first = &nodes[f];
                bool begins = first->releases && first->thread == nodes[w].thread &&
                              (first->kind == NODE_FENCE || same_place(first, &nodes[w]));
                if (begins && scopes_hold(first, l)) told(last, f);
            }
        }
    }
}

static void observe(uint32_t z) {
    const node *read = &nodes[z];
    uint32_t first = naive_byte(read->space, read->block, read->address);
    int w = writer_of_byte[first];
    for (uint32_t b = 1; b < read->bytes; b++)
        if (writer_of_byte[first + b] != w) return;
    if (w < 0 || !morally_strong(&nodes[w], read)) return;
    add(&observed[z], (uint32_t)w);
    if (nodes[w].reads) add_all(&observed[z], &observed[w]);
}

static uint32_t thread_of(const trace *t, const event *e, uint32_t lane) {
    return e->block * t->threads + 32 * e->warp + lane;
}

static bool has_several_addresses(const event *e) {
    for (uint32_t i = 0; i < 32; i++)
        for (uint32_t k = 0; k < i; k++)
            if (e->mask >> i & e->mask >> k & 1 && e->address[i] != e->address[k]) return true;
    return false;
}

/* Lanes of a warp that exchange values in volatile shared memory: strong accesses, and yet unordered. */
static bool exchange(const node *a, const node *b) {
    return a->is_exchange && b->is_exchange && a->writes != b->writes &&
           (a->is_spread || b->is_spread) && a->warp == b->warp;
}

static void access_node(const trace *t, uint32_t index, uint32_t lane, uint64_t address,
                        uint32_t bytes) {
    const event *e = &t->events[index];
    bool wide =
        e->order == PTX_VOLATILE || e->scope == PTX_SCOPE_NONE || e->scope >= PTX_SCOPE_DEVICE;
    bool both = e->order == PTX_ACQ_REL || e->order == PTX_SEQ_CST;
    bool reads = e->access & MR_PTX_READS, writes = e->access & MR_PTX_WRITES;
    uint32_t n = node_add(
        (node){.kind = NODE_ACCESS,
               .event = index,
               .lane = lane,
               .block = e->block,
               .thread = thread_of(t, e, lane),
               .warp = e->warp,
               .space = e->space,
               .address = address,
               .bytes = bytes,
               .reads = reads,
               .writes = writes,
               .strong = e->atomic || e->order >= PTX_VOLATILE,
               .wide = wide,
               .is_exchange = e->space == PTX_SHARED && e->order == PTX_VOLATILE && reads != writes,
               .is_spread = has_several_addresses(e),
               .acquires = reads && (both || e->order == PTX_ACQUIRE),
               .releases = writes && (both || e->order == PTX_RELEASE)});
    after(n, last_of_thread[nodes[n].thread]);
    last_of_thread[nodes[n].thread] = (int)n;
    if (nodes[n].strong && reads) observe(n);
    if (nodes[n].acquires) synchronize(n);
    if (!writes) return;
    for (uint32_t b = 0; b < bytes; b++)
        writer_of_byte[naive_byte(e->space, e->block, address) + b] = (int)n;
}

static void fence_node(const trace *t, uint32_t index, uint32_t lane) {
    const event *e = &t->events[index];
    uint32_t n = node_add((node){.kind = NODE_FENCE,
                                 .event = index,
                                 .block = e->block,
                                 .thread = thread_of(t, e, lane),
                                 .wide = e->scope >= PTX_SCOPE_DEVICE,
                                 .acquires = e->order != PTX_RELEASE,
                                 .releases = e->order != PTX_ACQUIRE});
    after(n, last_of_thread[nodes[n].thread]);
    last_of_thread[nodes[n].thread] = (int)n;
    if (nodes[n].acquires) synchronize(n);
}

/* Threads of the block: of some warps, or of some lanes of one warp. */
static bool takes_part(const event *e, uint32_t thread) {
    if (e->kind == EVENT_WARP_SYNC) return thread / 32 == e->warp && e->mask >> thread % 32 & 1;
    if (e->kind == EVENT_ARRIVE) return thread / 32 == e->warp;
    return !e->mask || e->mask >> thread / 32 & 1;
}

static void join_node(const trace *t, uint32_t index) {
    const event *e = &t->events[index];
    uint32_t n = node_add(
        (node){.kind = NODE_JOIN, .event = index, .block = e->block, .thread = UINT32_MAX});
    int *of_block = &last_of_thread[e->block * t->threads];
    for (uint32_t i = 0; i < t->threads; i++)
        if (takes_part(e, i)) after(n, of_block[i]);
    if (e->kind == EVENT_ARRIVE) {
        after(n, arrived[e->block]);
        arrived[e->block] = (int)n;
        return;
    }
    if (e->kind == EVENT_BARRIER_ARRIVED) {
        after(n, arrived[e->block]);
        arrived[e->block] = -1;
    }
    for (uint32_t i = 0; i < t->threads; i++)
        if (takes_part(e, i)) of_block[i] = (int)n;
}

/* X is over for Y: Y comes after a strong read that saw X, or a later write of X's thread in the same manner. */
static bool is_seen(uint32_t x, uint32_t y) {
    if (!nodes[x].strong || !nodes[x].writes) return false;
    for (uint32_t w = x; w < y; w++) {
        const node *later = &nodes[w];
        if (later->kind != NODE_ACCESS || !later->strong || !later->writes ||
            later->thread != nodes[x].thread || !same_place(later, &nodes[x]) ||
            later->wide != nodes[x].wide || later->is_exchange != nodes[x].is_exchange ||
            (later->is_exchange && later->is_spread != nodes[x].is_spread))
            continue;
        for (uint32_t z = w + 1; z < y; z++)
            if (has(&observed[z], w) && has(&before[y], z)) return true;
    }
    return false;
}

static bool meet(const node *a, const node *b) {
    if (a->kind != NODE_ACCESS || b->kind != NODE_ACCESS || a->thread == b->thread) return false;
    if (!(a->writes || b->writes) || a->space != b->space) return false;
    if (a->space == PTX_SHARED && a->block != b->block) return false;
    return a->address + a->bytes > b->address && b->address + b->bytes > a->address;
}

/* No barrier says which of the two comes first, and they are not both atomic operations. */
static bool is_open(uint32_t x, uint32_t y) {
    const node *a = &nodes[x], *b = &nodes[y];
    bool updates = a->strong && b->strong && a->reads && a->writes && b->reads && b->writes;
    return meet(a, b) && !updates && !has(&by_barriers[y], x);
}

static bool races(uint32_t x, uint32_t y) {
    const node *a = &nodes[x], *b = &nodes[y];
    return meet(a, b) && (exchange(a, b) || !morally_strong(a, b)) && !has(&before[y], x) &&
           !is_seen(x, y);
}

bool naive_is_race(uint32_t first, uint32_t first_lane, uint32_t second, uint32_t second_lane) {
    for (uint32_t y = 0; y < node_count; y++) {
        if (nodes[y].event != second || nodes[y].lane != second_lane) continue;
        for (uint32_t x = 0; x < y; x++)
            if (nodes[x].event == first && nodes[x].lane == first_lane && pair_races[x][y])
                return true;
    }
    return false;
}

static void run(const trace *t, uint32_t index) {
    const event *e = &t->events[index];
    if (e->kind == EVENT_BEGIN || e->kind == EVENT_END) return;
    if (e->kind != EVENT_ACCESS && e->kind != EVENT_FENCE) {
        join_node(t, index);
        return;
    }
    for (uint32_t lane = 0; lane < 32; lane++) {
        if (!(e->mask >> lane & 1)) continue;
        if (e->kind == EVENT_FENCE) fence_node(t, index, lane);
        for (uint32_t d = 0; e->kind == EVENT_ACCESS && d < e->bytes; d += e->element)
            access_node(t, index, lane, e->address[lane] + d, e->element);
    }
}

void naive_watch(const trace *t, naive_verdict *out) {
    node_count = 0;
    memset(out, 0, sizeof *out);
    memset(last_of_thread, -1, sizeof last_of_thread);
    memset(writer_of_byte, -1, sizeof writer_of_byte);
    memset(arrived, -1, sizeof arrived);
    for (uint32_t i = 0; i < t->count; i++) run(t, i);
    for (uint32_t y = 0; y < node_count; y++)
        for (uint32_t x = 0; x < y; x++) {
            pair_races[x][y] = races(x, y);
            out->order_matters |= is_open(x, y);
            if (!pair_races[x][y]) continue;
            out->has_race = true;
            const node *a = &nodes[x], *b = &nodes[y];
            uint64_t first = a->address > b->address ? a->address : b->address;
            uint64_t a_end = a->address + a->bytes, b_end = b->address + b->bytes;
            for (uint64_t i = first; i < a_end && i < b_end; i++)
                out->racy[naive_byte(a->space, a->block, i)] = true;
        }
}
