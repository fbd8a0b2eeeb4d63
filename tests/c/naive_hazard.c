/* The simple checker: see naive_hazard.h. */
#include "naive_hazard.h"

#include <string.h>

/* Which stream a variable holds at a step: replacing makes a new one. */
static int identity(const sample_program *p, int step, int variable) {
    int generation = 0;
    for (int i = 0; i < step; i++)
        if (p->step[i].kind == STEP_REPLACE_STREAM && p->step[i].stream == variable) generation++;
    return variable + 1000 * generation;
}

static bool on_stream(const sample_step *s) {
    switch (s->kind) {
    case STEP_OP:
    case STEP_COPY:
    case STEP_RECORD:
    case STEP_WAIT:
    case STEP_HOST_FUNCTION:
    case STEP_ALLOC: return true;
    case STEP_FREE: return !s->synchronous;
    default: return false;
    }
}

static bool by_host(const sample_step *s) {
    switch (s->kind) {
    case STEP_STREAM_SYNC:
    case STEP_EVENT_SYNC:
    case STEP_DEVICE_SYNC:
    case STEP_STREAM_QUERY:
    case STEP_EVENT_QUERY:
    case STEP_HOST_ACCESS: return true;
    case STEP_FREE: return s->synchronous;
    default: return false;
    }
}

copy_rules naive_copy_rules(const sample_program *p, const sample_step *s) {
    copy_rules r = {0};
    int to = s->access[0].tensor, from = s->access[1].tensor;
    bool to_device = p->tensor[to].memory == MEMORY_DEVICE,
         from_device = p->tensor[from].memory == MEMORY_DEVICE;
    for (int i = 0; i < 2; i++)
        r.advisory[i] = p->tensor[s->access[i].tensor].memory == MEMORY_PAGEABLE && !s->synchronous;
    if (!to_device && !from_device) { /* host to host: always done on return */
        r.waits = true;
        r.advisory[0] = r.advisory[1] = false;
    } else if (s->synchronous && to_device && from_device) {
        r.peer = p->tensor[to].device != p->tensor[from].device;
    } else if (s->synchronous) {
        r.staged = to_device && p->tensor[from].memory == MEMORY_PAGEABLE;
        r.waits = !r.staged;
    }
    return r;
}

static bool group(const sample_program *p, int stream) {
    return p->stream[stream].legacy || p->stream[stream].per_thread || p->stream[stream].blocking;
}

static bool in_barrier(const sample_program *p, int a, int b) {
    return p->stream[a].device == p->stream[b].device && group(p, a) && group(p, b) &&
           (p->stream[a].legacy || p->stream[b].legacy);
}

/* The record that a wait, synchronise or query at step j is bound to, or -1. */
static int bound_record(const sample_program *p, int j) {
    for (int i = j - 1; i >= 0; i--)
        if (p->step[i].kind == STEP_RECORD && p->step[i].event == p->step[j].event) return i;
    return -1;
}

/* A synchronous copy between devices: of both, and of the one that was current (R60). */
static bool is_wall_of(const sample_program *p, const sample_step *s, int device) {
    if (s->kind != STEP_COPY || !naive_copy_rules(p, s).peer) return false;
    return s->device == device || p->tensor[s->access[0].tensor].device == device ||
           p->tensor[s->access[1].tensor].device == device;
}

/* Would work of stream variable `stream`, submitted at step j, come right after step i? */
static bool stream_edge(const sample_program *p, int i, int j, int stream) {
    const sample_step *a = &p->step[i];
    if (!on_stream(a)) return false;
    if (identity(p, i, a->stream) == identity(p, j, stream)) return true;
    if (in_barrier(p, a->stream, stream)) return true;
    return is_wall_of(p, a, p->stream[stream].device);
}

/* Does the host, when it goes on from step j, know step i to be done? */
static bool host_edge(const sample_program *p, int i, int j) {
    const sample_step *a = &p->step[i], *s = &p->step[j];
    if (s->kind == STEP_STREAM_SYNC || s->kind == STEP_STREAM_QUERY) {
        /* The default stream too: its own commands, and what was before them. */
        return on_stream(a) && identity(p, i, a->stream) == identity(p, j, s->stream);
    }
    if (s->kind == STEP_EVENT_SYNC || s->kind == STEP_EVENT_QUERY) return bound_record(p, j) == i;
    if (s->kind == STEP_DEVICE_SYNC)
        return on_stream(a) && p->stream[a->stream].device == s->device;
    return false;
}

/* An edge from i to j, i < j. */
static bool edge(const sample_program *p, int i, int j) {
    const sample_step *a = &p->step[i], *b = &p->step[j];
    bool later = on_stream(b) || by_host(b);
    if (!later) return false;
    if (by_host(a)) return true; /* the host's order of calls, and what it submits after them */
    if (a->kind == STEP_COPY && naive_copy_rules(p, a).waits) return true;
    if (on_stream(b)) {
        if (stream_edge(p, i, j, b->stream)) return true;
        if (b->kind == STEP_WAIT && bound_record(p, j) == i) return true;
        if (on_stream(a) && is_wall_of(p, b, p->stream[a->stream].device)) return true;
        for (int d = 0; d < p->device_count; d++)
            if (is_wall_of(p, a, d) && is_wall_of(p, b, d)) return true;
    }
    if (by_host(b)) return host_edge(p, i, j);
    return false;
}

static bool covers_byte(const sample_view *v, int byte) {
    for (int i = 0; i < v->shape[0]; i++) {
        for (int k = 0; k < (v->ndim > 1 ? v->shape[1] : 1); k++) {
            int element = v->offset + i * v->stride[0] + (v->ndim > 1 ? k * v->stride[1] : 0);
            if (byte >= element * v->size && byte < (element + 1) * v->size) return true;
        }
    }
    return false;
}

/* The accesses of a step to a byte: the certain ones, and, shifted by BYTE_ASSUMED, the assumed ones. */
enum { BYTE_READ = 1, BYTE_WRITE = 2, BYTE_UPDATE = 4, BYTE_ASSUMED = 4 };

static uint8_t byte_access(uint8_t access) {
    uint8_t at = access & NAIVE_ATOMIC ? BYTE_UPDATE : access & (NAIVE_READ | NAIVE_WRITE);
    return access & NAIVE_ASSUMED ? (uint8_t)(at << BYTE_ASSUMED) : at;
}

static bool conflicting(uint8_t a, uint8_t b, bool certain) {
    if (!certain) a |= a >> BYTE_ASSUMED, b |= b >> BYTE_ASSUMED;
    uint8_t plain_a = a & (BYTE_READ | BYTE_WRITE), plain_b = b & (BYTE_READ | BYTE_WRITE);
    if (plain_a && (b & BYTE_UPDATE)) return true;
    if (plain_b && (a & BYTE_UPDATE)) return true;
    return plain_a && plain_b && ((plain_a | plain_b) & BYTE_WRITE);
}

/* The access of a step to a byte: 0: none. The source of a staged copy is pageable memory that the host
 * reads itself: nothing else can be at it. Advisory ones are none for what comes later, since the copy may have waited;
 * that is no order for what came earlier. */
static uint8_t access_at(const sample_program *p, int step, int tensor, int byte, bool later) {
    const sample_step *s = &p->step[step];
    uint8_t access = 0;
    copy_rules r = {0};
    if (s->kind == STEP_COPY) r = naive_copy_rules(p, s);
    if (s->kind == STEP_RUN) return 0; /* its accesses are the host function's */
    for (int i = 0; i < s->access_count; i++)
        if (s->access[i].tensor == tensor && (later || !r.advisory[i]) && !(r.staged && i == 1) &&
            covers_byte(&s->access[i].view, byte))
            access |= byte_access(s->access[i].access);
    return access;
}

bool naive_conflict_at(const sample_program *p, int i, int j, int tensor, int byte, bool certain) {
    return conflicting(access_at(p, i, tensor, byte, false), access_at(p, j, tensor, byte, true),
                       certain);
}

/* access_at of every byte, asked once: each step is compared with each other one. */
typedef struct {
    bool any[MOST_STEPS][MOST_TENSORS], any_later[MOST_STEPS][MOST_TENSORS];
    uint8_t at[MOST_STEPS][MOST_TENSORS][MOST_BYTES], later[MOST_STEPS][MOST_TENSORS][MOST_BYTES];
} byte_accesses;

static void find_accesses(const sample_program *p, byte_accesses *all) {
    memset(all, 0, sizeof *all);
    for (int i = 0; i < p->step_count; i++) {
        for (int k = 0; k < p->step[i].access_count; k++) {
            int t = p->step[i].access[k].tensor;
            for (int byte = 0; byte < MOST_BYTES; byte++) {
                all->at[i][t][byte] = access_at(p, i, t, byte, false);
                all->later[i][t][byte] = access_at(p, i, t, byte, true);
                all->any[i][t] |= all->at[i][t][byte] != 0;
                all->any_later[i][t] |= all->later[i][t][byte] != 0;
            }
        }
    }
}

static bool any_conflict(const sample_program *p, const byte_accesses *all, int i, int j) {
    for (int t = 0; t < p->tensor_count; t++) {
        for (int byte = 0; byte < MOST_BYTES && all->any[i][t] && all->any_later[j][t]; byte++) {
            if (conflicting(all->at[i][t][byte], all->later[j][t][byte], false)) return true;
        }
    }
    return false;
}

/* A staged copy: the host waits for the stream, reads the source, and only then is the copy's own work
 * submitted. So earlier work of the stream is before everything later. */
static bool staged_edge(const sample_program *p, int i, int staged) {
    const sample_step *a = &p->step[i], *s = &p->step[staged];
    return on_stream(a) && identity(p, i, a->stream) == identity(p, staged, s->stream);
}

static bool is_direct(const sample_program *p, int i, int j) {
    bool direct = edge(p, i, j);
    for (int k = i + 1; k < j && !direct; k++) { /* i before the host went on from staging at k */
        if (p->step[k].kind != STEP_COPY || !naive_copy_rules(p, &p->step[k]).staged) continue;
        direct = staged_edge(p, i, k) && (on_stream(&p->step[j]) || by_host(&p->step[j]));
    }
    return direct;
}

static void close_graph(const sample_program *p, bool before[MOST_STEPS][MOST_STEPS]) {
    for (int j = 0; j < p->step_count; j++) {
        for (int i = j - 1; i >= 0; i--) {
            /* Uses come after the allocation and before the free; nothing comes after anything else because of
             * either. */
            if (p->step[i].kind == STEP_FREE || p->step[j].kind == STEP_ALLOC) continue;
            if (!is_direct(p, i, j)) continue;
            before[i][j] = true;
            for (int k = 0; k < i; k++)
                if (before[k][i]) before[k][j] = true;
        }
    }
}

void naive_order_frees(const sample_program *p, naive_verdict *v) {
    for (int i = 0; i < p->step_count; i++)
        for (int j = i + 1; j < p->step_count && p->step[i].kind == STEP_FREE; j++) {
            v->before[i][j] = is_direct(p, i, j);
            for (int k = i + 1; k < j; k++) v->before[i][j] |= v->before[i][k] && v->before[k][j];
        }
}

/* Is step i done when all that `stream` has been given before step j is, or when the host goes on to j? */
static bool before_free_of(const sample_program *p, const naive_verdict *v, int i, int j,
                           int stream) {
    for (int k = 0; k < j; k++) {
        if (p->step[k].kind == STEP_FREE) continue;
        bool of_stream =
            on_stream(&p->step[k]) && identity(p, k, p->step[k].stream) == identity(p, j, stream);
        bool direct = of_stream || by_host(&p->step[k]) ||
                      (p->step[k].kind == STEP_COPY && naive_copy_rules(p, &p->step[k]).waits);
        for (int m = k + 1; m < j && !direct; m++)
            direct = p->step[m].kind == STEP_COPY && naive_copy_rules(p, &p->step[m]).staged &&
                     staged_edge(p, k, m);
        if (direct && (k == i || v->before[i][k])) return true;
    }
    return false;
}

static bool free_covers(const sample_program *p, const naive_verdict *v, int i, int j) {
    if (v->before[i][j]) return true;
    for (int k = 0; k < j; k++)
        if (p->step[k].kind == STEP_RECORD_STREAM && p->step[k].tensor == p->step[j].tensor &&
            identity(p, k, p->step[k].stream) == identity(p, j, p->step[k].stream) &&
            before_free_of(p, v, i, j, p->step[k].stream))
            return true;
    return false;
}

void naive_order(const sample_program *p, naive_verdict *v) {
    memset(v, 0, sizeof *v);
    close_graph(p, v->before);
}

bool naive_host_knows(const sample_program *p, const naive_verdict *v, int i, int j) {
    for (int k = i; k <= j; k++) {
        const sample_step *s = &p->step[k];
        copy_rules r = {0};
        if (s->kind == STEP_COPY) r = naive_copy_rules(p, s);
        if ((by_host(s) || r.waits || r.staged) && (k == i || v->before[i][k])) return true;
    }
    return false;
}

/* Reported bytes count as written. */
static void find_unset(const sample_program *p, naive_verdict *v) {
    bool missing[MOST_TENSORS][MOST_BYTES];
    for (int t = 0; t < MOST_TENSORS; t++) memset(missing[t], p->tensor[t].blank, MOST_BYTES);
    for (int i = 0; i < p->step_count; i++) {
        const sample_step *s = &p->step[i];
        if (s->kind == STEP_ALLOC) memset(missing[s->tensor], true, MOST_BYTES);
        if (s->kind == STEP_RUN) continue;
        if (s->kind == STEP_COPY) {
            const sample_access *to = &s->access[0], *from = &s->access[1];
            for (int k = 0; k < 32; k++)
                missing[to->tensor][to->view.offset * 4 + k] =
                    missing[from->tensor][from->view.offset * 4 + k];
            continue;
        }
        for (int pass = 0; pass < 2; pass++) {
            for (int k = 0; k < s->access_count; k++) {
                const sample_access *a = &s->access[k];
                if (!(a->access & (pass ? NAIVE_WRITE : NAIVE_READ))) continue;
                for (int byte = 0; byte < MOST_BYTES; byte++) {
                    if (!covers_byte(&a->view, byte)) continue;
                    if (missing[a->tensor][byte] && !pass) v->unset[i] = true;
                    missing[a->tensor][byte] = false;
                }
            }
        }
    }
}

void naive_check(const sample_program *p, naive_verdict *v) {
    byte_accesses all;
    find_accesses(p, &all);
    naive_order(p, v);
    find_unset(p, v);
    for (int j = 0; j < p->step_count; j++) {
        for (int i = 0; i < j; i++) {
            const sample_step *a = &p->step[i], *b = &p->step[j];
            if (!v->before[i][j] && any_conflict(p, &all, i, j)) v->race[i][j] = true;
            if (b->kind == STEP_FREE && all.any[i][b->tensor] && !free_covers(p, v, i, j))
                v->free_race[i][j] = true;
            if (a->kind == STEP_ALLOC && !v->before[i][j] && b->kind != STEP_FREE &&
                all.any[j][a->tensor])
                v->alloc_race[i][j] = true;
        }
    }
}
