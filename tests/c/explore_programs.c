/* Random programs for the exploration: see explore_programs.h. Include this after virtual_fixture.h. */
#include "explore_programs.h"

#include <stdlib.h>
#include <string.h>

/* ---- making them */

static uint64_t random_state;

static uint64_t draw(void) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int below(int count) {
    return (int)(draw() % (uint64_t)count);
}

enum { ELEMENTS = 4, BOUND = 1, HIDDEN_EVENT = MOST_EVENTS - 1 };

static sample_access whole(int tensor, uint8_t access) {
    return (sample_access){tensor, {0, 1, {ELEMENTS}, {1}, 4}, access};
}

/* Half of it, so that not all accesses to a tensor conflict. */
static sample_access part_of(int tensor, uint8_t access) {
    sample_access a = whole(tensor, access);
    int kind = below(4);
    if (kind == 1) a.view.shape[0] = ELEMENTS / 2;
    if (kind == 2) a.view = (sample_view){ELEMENTS / 2, 1, {ELEMENTS / 2}, {1}, 4};
    if (kind == 3) a.view = (sample_view){below(2), 1, {ELEMENTS / 2}, {2}, 4};
    return a;
}

/* A tensor that a step may use: of this memory, and not freed before. -1: there is none. */
static int random_tensor(const sample_program *p, unsigned memories) {
    for (int tries = 0; tries < 8; tries++) {
        int t = below(p->tensor_count);
        bool freed = false;
        for (int i = 0; i < p->step_count; i++)
            freed |= p->step[i].kind == STEP_FREE && p->step[i].tensor == t;
        if (!freed && (memories >> p->tensor[t].memory & 1)) return t;
    }
    return -1;
}

enum {
    OF_DEVICE = 1 << MEMORY_DEVICE,
    OF_PINNED = 1 << MEMORY_PINNED,
    OF_HOST = OF_PINNED | 1 << MEMORY_PAGEABLE,
    OF_ANY = OF_HOST | OF_DEVICE
};

static void random_op(const sample_program *p, sample_step *s) {
    int to = random_tensor(p, OF_DEVICE | OF_PINNED), from;
    if (to < 0) return;
    s->kind = STEP_OP;
    s->access[s->access_count++] = part_of(to, NAIVE_WRITE);
    if (below(2) && (from = random_tensor(p, OF_DEVICE | OF_PINNED)) >= 0 && from != to)
        s->access[s->access_count++] = part_of(from, NAIVE_READ);
}

/* A staged copy waits for the default stream, which waits for more on the virtual GPU than CUDA guarantees (R5): for
 * these. */
static bool has_blocking_work(const sample_program *p) {
    for (int i = 0; i < p->step_count; i++)
        if (p->step[i].stream == 1 || p->stream[p->step[i].stream].blocking) return true;
    return false;
}

/* Whole, or halves without gaps. Whether an asynchronous copy of pageable memory returns early is left open (R23), so
 * that is no matter of the order: those here are synchronous. */
static void random_copy(const sample_program *p, sample_step *s) {
    int to = random_tensor(p, OF_ANY), from = random_tensor(p, OF_ANY);
    if (to < 0 || from < 0 || to == from) return;
    bool staged =
        p->tensor[to].memory == MEMORY_DEVICE && p->tensor[from].memory == MEMORY_PAGEABLE;
    if (staged && has_blocking_work(p)) return;
    bool pageable =
        p->tensor[to].memory == MEMORY_PAGEABLE || p->tensor[from].memory == MEMORY_PAGEABLE;
    s->kind = STEP_COPY;
    s->synchronous = pageable || below(3) == 0;
    if (s->synchronous) s->stream = 0; /* as cudaMemcpy does */
    s->access_count = 2;
    s->access[0] = whole(to, NAIVE_WRITE);
    s->access[1] = whole(from, NAIVE_READ);
    if (below(2)) return;
    for (int k = 0; k < 2; k++) {
        s->access[k].view.shape[0] = ELEMENTS / 2;
        s->access[k].view.offset = below(2) * ELEMENTS / 2;
    }
}

/* For the host: by the script's thread at once, or by a function in the order of a stream. */
static void random_host_step(const sample_program *p, sample_step *s, step_kind kind) {
    int t = random_tensor(p, kind == STEP_HOST_FUNCTION ? OF_PINNED : OF_HOST);
    if (t < 0) return;
    s->kind = kind;
    s->access[s->access_count++] = part_of(t, below(2) ? NAIVE_READ : NAIVE_WRITE);
}

/* On a blocking stream it orders others on the virtual GPU, which CUDA does not say. */
static void random_free(const sample_program *p, sample_step *s) {
    s->tensor = random_tensor(p, OF_DEVICE);
    if (s->tensor < 0 || s->stream < 2 || p->stream[s->stream].blocking) return;
    s->kind = STEP_FREE;
}

/* `to` waits for `from` through an event that the program has no name for (wait_stream): a record and a wait of the
 * judge's, one call of the program's. That event is the last one. */
static void random_join(sample_program *p, int from, int to) {
    p->step[p->step_count].kind = STEP_NOTHING;
    if (from == to || p->step_count + 1 >= MOST_STEPS) return;
    sample_step *record = &p->step[p->step_count++], *wait = &p->step[p->step_count];
    *record = (sample_step){.kind = STEP_RECORD, .stream = from, .event = HIDDEN_EVENT};
    *wait = (sample_step){.kind = STEP_WAIT, .stream = to, .event = HIDDEN_EVENT};
}

static void random_step(const sample_program *p, sample_step *s, bool asks) {
    static const step_kind others[] = {STEP_RECORD,     STEP_RECORD,     STEP_WAIT,
                                       STEP_WAIT,       STEP_WAIT,       STEP_STREAM_SYNC,
                                       STEP_EVENT_SYNC, STEP_DEVICE_SYNC};
    int kind = below(18);
    s->kind = STEP_NOTHING;
    s->stream = below(p->stream_count);
    s->event = below(p->event_count);
    if (kind < 8) {
        random_op(p, s);
    } else if (kind < 10) {
        random_copy(p, s);
    } else if (kind < 12) {
        random_host_step(p, s, STEP_HOST_FUNCTION);
    } else if (kind < 13) {
        random_host_step(p, s, STEP_HOST_ACCESS);
    } else if (kind < 14 && below(3) == 0) {
        random_free(p, s);
    } else if (asks && below(3) == 0) {
        s->kind = below(2) ? STEP_STREAM_QUERY : STEP_EVENT_QUERY;
        if (!s->stream) s->stream = 1;
    } else {
        s->kind = others[below((int)(sizeof others / sizeof *others))];
        /* A synchronise of the default stream waits for more than CUDA guarantees (R5), on the virtual GPU, too. */
        if (s->kind == STEP_STREAM_SYNC && !s->stream) s->stream = 1;
    }
}

void explore_random_program(uint64_t seed, sample_program *p) {
    memset(p, 0, sizeof *p);
    random_state = seed * 7919 + 17;
    p->device_count = 1;
    p->stream_count = 3 + below(3);
    p->stream[0].legacy = p->stream[1].per_thread = true;
    for (int i = 2; i < p->stream_count; i++) p->stream[i].blocking = below(4) == 0;
    p->event_count = 1 + below(2);
    p->tensor_count = 1 + below(3);
    p->tensor[p->tensor_count - 1].memory = below(3) ? MEMORY_DEVICE : MEMORY_PINNED;
    if (p->tensor_count > 2 && below(2)) p->tensor[1].memory = MEMORY_PAGEABLE;
    int count = 3 + below(9);
    bool asks = seed % 3 == 0;
    for (; p->step_count < count; p->step_count++) {
        if (below(8)) random_step(p, &p->step[p->step_count], asks);
        else random_join(p, below(p->stream_count), below(p->stream_count));
    }
}

/* ---- the judge */

enum { MOST_CLASSES = 1 << 16, MOST_WAYS = 400000 };

typedef struct {
    const sample_program *program;
    naive_verdict verdict;
    sample_program without_queries; /* the host does nothing there */
    int node[MOST_STEPS],
        node_count;            /* steps that touch memory, queries, and what only they tell */
    int asked_for[MOST_STEPS]; /* of a query: the step that must be over; -1: none */
    bool done[MOST_STEPS];
    int way[MOST_STEPS], length;
    uint64_t ways;
    size_t count;
    uint64_t signature[MOST_CLASSES], outcome[MOST_CLASSES];
    int inversions[MOST_CLASSES];
} judge;
static judge j;

static uint64_t stir(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9fb21c651e98df25u;
    return hash ^ hash >> 29;
}

static bool is_query(const sample_step *s) {
    return s->kind == STEP_STREAM_QUERY || s->kind == STEP_EVENT_QUERY;
}

/* A record or a wait is over at some moment behind what it comes behind; only a query can tell. */
static bool is_marker(const sample_step *s) {
    return s->kind == STEP_RECORD || s->kind == STEP_WAIT || s->kind == STEP_FREE;
}

static bool says_yes(int query, const int *position) {
    int goal = j.asked_for[query];
    for (int i = 0; i < j.node_count && goal >= 0; i++) {
        int step = j.node[i];
        if (step != goal && !j.verdict.before[step][goal]) continue;
        if (!is_query(&j.program->step[step]) && position[step] > position[query]) return false;
    }
    return true;
}

static uint64_t answers_of_way(void) {
    int position[MOST_STEPS] = {0};
    uint64_t hash = 5;
    for (int i = 0; i < j.length; i++) position[j.way[i]] = i;
    for (int i = 0; i < j.length; i++)
        if (is_query(&j.program->step[j.way[i]]))
            hash = stir(hash, says_yes(j.way[i], position) ? 1 : 2);
    return hash;
}

/* Host functions may use the same variables, so their order always makes a difference. */
static bool is_pair(int a, int b) {
    bool functions = j.program->step[a].kind == STEP_HOST_FUNCTION &&
                     j.program->step[b].kind == STEP_HOST_FUNCTION;
    return j.verdict.race[a][b] || (functions && !j.verdict.before[a][b]);
}

/* The pairs that nothing orders, each with who came first; and the answers. */
static uint64_t signature_of_way(int *out_inversions) {
    int position[MOST_STEPS] = {0};
    uint64_t hash = answers_of_way();
    *out_inversions = 0;
    for (int i = 0; i < j.length; i++) position[j.way[i]] = i;
    for (int a = 0; a < j.program->step_count; a++)
        for (int b = a + 1; b < j.program->step_count; b++) {
            if (!is_pair(a, b)) continue;
            hash = stir(hash, position[a] < position[b] ? 1 : 2);
            *out_inversions += position[a] > position[b];
        }
    return hash;
}

typedef uint64_t memory[MOST_TENSORS][ELEMENTS];

/* The state of a way: what is in memory, and what the host has read. */
typedef struct {
    memory now;
    memory written[MOST_STEPS]; /* by the step; 0: not */
    uint64_t script, functions[MOST_STEPS], order;
} way_state;
static way_state way;

static void write_element(int step, const sample_access *a, int element, uint64_t value) {
    way.now[a->tensor][element] = way.written[step][a->tensor][element] = value;
}

/* A copy of pageable memory is staged: its source is read when it is called, after all that was called before. */
static uint64_t source_of(int step, const sample_access *from, int element) {
    copy_rules rules = naive_copy_rules(j.program, &j.program->step[step]);
    if (!rules.staged) return way.now[from->tensor][element];
    for (int i = step; i-- > 0;)
        if (way.written[i][from->tensor][element]) return way.written[i][from->tensor][element];
    return 0;
}

static void do_copy(int step, const sample_step *s) {
    const sample_access *to = &s->access[0], *from = &s->access[1];
    uint64_t moved[ELEMENTS];
    for (int n = 0; n < to->view.shape[0]; n++)
        moved[n] = source_of(step, from, from->view.offset + n);
    for (int n = 0; n < to->view.shape[0]; n++)
        write_element(step, to, to->view.offset + n, moved[n]);
}

/* Each written element depends on the name, and on the read elements in proportion to its own position. As far as
 * equality of values goes, that is an abstract operation. */
static void do_op(int step, const sample_step *s) {
    const sample_access *to = &s->access[0], *read = s->access_count > 1 ? &s->access[1] : NULL;
    for (int n = 0; n < to->view.shape[0]; n++) {
        uint64_t value = stir(stir(7, (uint64_t)step + 100), (uint64_t)n);
        if (read) {
            int m = read->view.shape[0] * n / to->view.shape[0];
            value =
                stir(value, way.now[read->tensor][read->view.offset + m * read->view.stride[0]]);
        }
        write_element(step, to, to->view.offset + n * to->view.stride[0], value);
    }
}

static void do_by_host(int step, const sample_step *s) {
    const sample_access *a = &s->access[0];
    bool is_function = s->kind == STEP_HOST_FUNCTION;
    uint64_t *read = is_function ? &way.functions[step] : &way.script;
    if (is_function) way.order = stir(way.order, (uint64_t)step + 1);
    for (int n = 0; n < a->view.shape[0]; n++) {
        int element = a->view.offset + n * a->view.stride[0];
        if (a->access == NAIVE_READ) *read = stir(*read, way.now[a->tensor][element]);
        else write_element(step, a, element, (uint64_t)step + 1);
    }
}

static bool is_freed(const sample_program *p, int tensor) {
    for (int i = 0; i < p->step_count; i++)
        if (p->step[i].kind == STEP_FREE && p->step[i].tensor == tensor) return true;
    return false;
}

static uint64_t outcome_of_way(void) {
    memset(&way, 0, sizeof way);
    for (int k = 0; k < j.length; k++) {
        const sample_step *s = &j.program->step[j.way[k]];
        if (s->kind == STEP_OP) do_op(j.way[k], s);
        else if (s->kind == STEP_COPY) do_copy(j.way[k], s);
        else if (s->access_count) do_by_host(j.way[k], s);
    }
    uint64_t hash = stir(stir(answers_of_way(), way.script), way.order);
    for (int i = 0; i < j.program->step_count; i++) hash = stir(hash, way.functions[i]);
    for (int t = 0; t < j.program->tensor_count; t++)
        for (int e = 0; e < ELEMENTS && !is_freed(j.program, t); e++)
            hash = stir(hash, way.now[t][e]);
    return hash;
}

static void note_way(void) {
    int inversions;
    uint64_t signature = signature_of_way(&inversions);
    j.ways++;
    for (size_t i = 0; i < j.count; i++)
        if (j.signature[i] == signature) return;
    if (j.count == MOST_CLASSES) {
        j.ways = MOST_WAYS + 1;
        return;
    }
    j.signature[j.count] = signature;
    j.inversions[j.count] = inversions;
    j.outcome[j.count++] = outcome_of_way();
}

static bool is_ready(int step) {
    for (int i = 0; i < j.node_count; i++)
        if (!j.done[j.node[i]] && j.verdict.before[j.node[i]][step]) return false;
    return true;
}

static void each_way(void) {
    if (j.ways > MOST_WAYS) return;
    if (j.length == j.node_count) {
        note_way();
        return;
    }
    for (int i = 0; i < j.node_count; i++) {
        int step = j.node[i];
        if (j.done[step] || !is_ready(step)) continue;
        j.done[step] = true;
        j.way[j.length++] = step;
        each_way();
        j.length--;
        j.done[step] = false;
    }
}

static void count_outcomes(judgement *out) {
    for (size_t i = 0; i < j.count; i++) {
        out->within_bound += j.inversions[i] <= BOUND;
        uint64_t same = 0;
        bool first = true;
        for (size_t k = 0; k < j.count; k++) {
            if (j.outcome[k] != j.outcome[i]) continue;
            same++;
            if (k < i) first = false;
        }
        out->outcomes += first;
        if (same > out->most_common) out->most_common = same;
    }
}

/* The last step of the stream, or the record, that a query at step i asks for. */
static int asked_for(const sample_program *p, int i) {
    const sample_step *query = &p->step[i];
    for (int k = i - 1; k >= 0; k--) {
        const sample_step *s = &p->step[k];
        bool in_stream = s->kind == STEP_OP || s->kind == STEP_COPY || s->kind == STEP_RECORD ||
                         s->kind == STEP_WAIT || s->kind == STEP_HOST_FUNCTION ||
                         s->kind == STEP_FREE;
        if (query->kind == STEP_STREAM_QUERY && in_stream && s->stream == query->stream) return k;
        if (query->kind == STEP_EVENT_QUERY && s->kind == STEP_RECORD && s->event == query->event)
            return k;
    }
    return -1;
}

void explore_judge(const sample_program *p, judgement *out) {
    memset(&j, 0, offsetof(judge, signature));
    *out = (judgement){0};
    j.program = p;
    j.without_queries = *p;
    for (int i = 0; i < p->step_count; i++) {
        j.asked_for[i] = asked_for(p, i);
        if (!is_query(&p->step[i])) continue;
        out->has_query = true;
        j.without_queries.step[i].kind = STEP_HOST_ACCESS;
    }
    naive_check(&j.without_queries, &j.verdict);
    naive_order_frees(&j.without_queries, &j.verdict);
    for (int i = 0; i < p->step_count; i++) {
        if (p->step[i].access_count || is_query(&p->step[i]) ||
            (out->has_query && is_marker(&p->step[i])))
            j.node[j.node_count++] = i;
        for (int k = 0; k < i; k++) {
            out->has_race = out->has_race || j.verdict.race[k][i];
            out->has_pair = out->has_pair || is_pair(k, i);
        }
    }
    each_way();
    out->interleavings = j.ways > MOST_WAYS ? UINT64_MAX : j.ways;
    out->classes = j.count;
    if (j.ways <= MOST_WAYS) count_outcomes(out);
}

/* ---- running one */

static struct {
    const sample_program *program;
    mr_stream *stream[MOST_STREAMS];
    mr_event *event[MOST_EVENTS];
    mr_tensor *tensor[MOST_TENSORS];
    mr_buffer read[MOST_STEPS]; /* by the host function of the step */
    mr_buffer order;            /* of host functions */
} running;

static void let_go(void) {
    for (int t = 0; t < MOST_TENSORS; t++)
        if (running.tensor[t]) {
            mr_storage_drop_handle(running.tensor[t]->storage);
            mr_tensor_release(running.tensor[t]);
        }
    for (int i = 0; i < MOST_EVENTS; i++) mr_event_release(running.event[i]);
    for (int i = 2; i < MOST_STREAMS; i++) mr_stream_release(running.stream[i]);
    for (int i = 0; i < MOST_STEPS; i++) mr_buffer_free(&running.read[i]);
    mr_buffer_free(&running.order);
    memset(&running, 0, sizeof running);
}

static mr_tensor *view_of(const sample_access *a) {
    int64_t shape = a->view.shape[0], stride = a->view.stride[0];
    mr_tensor *view;
    OK(mr_tensor_alias(&caller, running.tensor[a->tensor], MR_I32, 1, &shape, &stride,
                       a->view.offset, &view));
    return view;
}

static mr_status run_op(const sample_step *s, int number) {
    char name[16];
    mr_tensor *write = view_of(&s->access[0]), *read = NULL;
    if (s->access_count > 1) read = view_of(&s->access[1]);
    snprintf(name, sizeof name, "op%d", number);
    mr_abstract op = {.name = name,
                      .writes = &write,
                      .write_count = 1,
                      .reads = &read,
                      .read_count = read ? 1 : 0,
                      .duration_ns = 1000,
                      .blocks = 1,
                      .stream = running.stream[s->stream]};
    mr_status status = mr_abstract_op(&caller, &op);
    mr_tensor_release(write);
    mr_tensor_release(read);
    return status;
}

static mr_status touch(const sample_step *s, int number, mr_buffer *out) {
    mr_tensor *view = view_of(&s->access[0]);
    mr_status status = mr_host_access(&caller, "touch", view, s->access[0].access);
    int32_t *data = mr_tensor_data(view);
    for (int64_t i = 0; i < view->shape[0] && !status; i++) {
        int32_t *at = data + i * view->stride[0];
        if (s->access[0].access & NAIVE_WRITE) *at = number + 1;
        else mr_buffer_add(out, (const char *)at, sizeof *at);
    }
    mr_tensor_release(view);
    return status;
}

static mr_status run_copy(const sample_step *s) {
    mr_tensor *to = view_of(&s->access[0]), *from = view_of(&s->access[1]);
    mr_status status = mr_memcpy(&caller, to, from, running.stream[s->stream], s->synchronous);
    mr_tensor_release(to);
    mr_tensor_release(from);
    return status;
}

static mr_status run_function(void *context) {
    const sample_step *s = context;
    int number = (int)(s - running.program->step);
    mr_site where = caller.where;
    caller.where = (mr_site){"random.lua", number + 1};
    mr_buffer_printf(&running.order, "%d ", number);
    mr_status status = touch(s, number, &running.read[number]);
    caller.where = where;
    return status;
}

static void drop_function(void *context) {
    (void)context;
}

static mr_status run_free(const sample_step *s) {
    return mr_storage_free(&caller, running.tensor[s->tensor]->storage, MR_FREE_ON_STREAM,
                           running.stream[s->stream]);
}

static mr_status run_step(const sample_step *s, int number, mr_buffer *out) {
    mr_stream *stream = running.stream[s->stream];
    mr_event *event = running.event[s->event];
    caller.where = (mr_site){"random.lua", number + 1};
    bool done;
    switch (s->kind) {
    case STEP_OP: return run_op(s, number);
    case STEP_COPY: return run_copy(s);
    case STEP_HOST_FUNCTION:
        return mr_stream_host_function(&caller, stream, run_function, drop_function,
                                       (void *)(uintptr_t)s);
    case STEP_FREE: return run_free(s);
    case STEP_RECORD:
        return s->event == HIDDEN_EVENT ? MR_OK : mr_event_record(&caller, event, stream);
    case STEP_WAIT:
        if (s->event != HIDDEN_EVENT) return mr_stream_wait_event(&caller, stream, event);
        return mr_stream_wait_stream(&caller, stream, running.stream[s[-1].stream]);
    case STEP_STREAM_SYNC: return mr_stream_synchronize(&caller, stream);
    case STEP_EVENT_SYNC: return mr_event_synchronize(&caller, event);
    case STEP_DEVICE_SYNC: return mr_device_synchronize(&caller, device);
    case STEP_HOST_ACCESS: return touch(s, number, out);
    case STEP_STREAM_QUERY:
        MR_TRY(mr_stream_query(&caller, stream, &done));
        mr_buffer_puts(out, done ? "y" : "n");
        return MR_OK;
    case STEP_EVENT_QUERY:
        MR_TRY(mr_event_query(&caller, event, &done));
        mr_buffer_puts(out, done ? "y" : "n");
        return MR_OK;
    default: return MR_OK;
    }
}

static void make_objects(const sample_program *p) {
    static const mr_memory_kind kinds[] = {[MEMORY_DEVICE] = MR_MEMORY_DEVICE,
                                           [MEMORY_PINNED] = MR_MEMORY_PINNED,
                                           [MEMORY_PAGEABLE] = MR_MEMORY_PAGEABLE};
    running.program = p;
    caller.where = (mr_site){"random.lua", 100};
    running.stream[0] = device->legacy;
    running.stream[1] = device->per_thread;
    for (int i = 2; i < p->stream_count; i++) {
        mr_stream_options options = {.nonblocking = !p->stream[i].blocking};
        OK(mr_stream_create(&caller, device, &options, &running.stream[i]));
    }
    for (int i = 0; i < p->event_count; i++) {
        mr_event_options options = {0};
        OK(mr_event_create(&caller, &options, &running.event[i]));
    }
    for (int t = 0; t < p->tensor_count; t++) {
        int64_t size = ELEMENTS;
        bool on_device = p->tensor[t].memory == MEMORY_DEVICE;
        OK(mr_tensor_create(&caller, kinds[p->tensor[t].memory], on_device ? device->legacy : NULL,
                            MR_I32, 1, &size, &running.tensor[t]));
    }
    OK(mr_device_synchronize(&caller, device));
    /* New device memory of a player is zero; so that of this machine is made so. */
    for (int t = 0; t < p->tensor_count; t++) {
        if (p->tensor[t].memory != MEMORY_DEVICE)
            OK(mr_host_access(&caller, "clear", running.tensor[t], MR_WRITE));
        memset(mr_tensor_data(running.tensor[t]), 0, sizeof(int32_t[ELEMENTS]));
    }
}

static mr_status begin_sample(void *context) {
    (void)context;
    let_go();
    return mr_device_drain(device);
}

static mr_status run_sample(void *context, mr_explore_value *out) {
    const sample_program *p = context;
    make_objects(p);
    for (int i = 0; i < p->step_count; i++) {
        mr_status status = run_step(&p->step[i], i, &out->text);
        if (status) mr_buffer_puts(&out->text, status->message);
        mr_error_destroy(status);
    }
    MR_TRY(mr_device_drain(device));
    for (int i = 0; i < p->step_count; i++) {
        mr_buffer_add(&out->text, running.read[i].data, running.read[i].size);
        mr_buffer_puts(&out->text, ";");
    }
    mr_buffer_add(&out->text, running.order.data, running.order.size);
    for (int t = 0; t < p->tensor_count; t++) {
        if (is_freed(p, t)) continue;
        mr_tensor_retain(running.tensor[t]);
        assert_true(mr_vec_push(&out->tensors, running.tensor[t]));
    }
    return MR_OK;
}

/* ---- comparing */

static uint64_t classes_in(const mr_explore_result *r) {
    return r->groups.count ? (uint64_t)r->classes : r->schedules;
}

static const char *compare(const judgement *expected, const mr_explore_result *r) {
    static char text[300];
    uint64_t most = 0;
    for (size_t i = 0; i < r->outcomes.count; i++)
        if (r->outcomes.items[i].count > most) most = r->outcomes.items[i].count;
    if (!r->complete) snprintf(text, sizeof text, "not complete: %s", r->incomplete);
    else if (classes_in(r) != expected->classes)
        snprintf(text, sizeof text, "schedules of %llu classes, %llu classes",
                 (unsigned long long)classes_in(r), (unsigned long long)expected->classes);
    else if (r->outcomes.count != expected->outcomes)
        snprintf(text, sizeof text, "%zu outcomes, expected %llu", r->outcomes.count,
                 (unsigned long long)expected->outcomes);
    else if (r->unseen && expected->outcomes != 1)
        snprintf(text, sizeof text, "said to have one outcome, expected %llu",
                 (unsigned long long)expected->outcomes);
    else if (most != expected->most_common)
        snprintf(text, sizeof text, "the most common outcome came %llu times, expected %llu",
                 (unsigned long long)most, (unsigned long long)expected->most_common);
    else if (!expected->has_query && (r->schedules > 1) != expected->has_pair)
        snprintf(text, sizeof text, "a hazard is not the same as more than one class");
    else return NULL;
    return text;
}

/* With a bound on the pairs that run against the order of submission. */
static const char *compare_bounded(const judgement *expected, const mr_explore_result *r) {
    static char text[300];
    if (r->schedules == expected->within_bound &&
        r->complete == (expected->within_bound == expected->classes))
        return NULL;
    snprintf(
        text, sizeof text,
        "%llu schedules with at most %d pairs against the order of submission, %s; %llu of %llu "
        "classes have so few",
        (unsigned long long)r->schedules, BOUND, r->complete ? "complete" : "not complete",
        (unsigned long long)expected->within_bound, (unsigned long long)expected->classes);
    return text;
}

static const char *explore_sample(const sample_program *p, int overtaking, bool thorough,
                                  mr_explore_result *out) {
    static char text[300];
    mr_explore_options options = {
        .overtaking = overtaking, .full = thorough, .forgetful = thorough};
    mr_explore_subject subject = {.context = (void *)(uintptr_t)p,
                                  .machine = machine,
                                  .begin = begin_sample,
                                  .run = run_sample};
    mr_status status = mr_explore(&subject, &options, out);
    let_go();
    if (!status) return NULL;
    snprintf(text, sizeof text, "%s", status->message);
    mr_error_destroy(status);
    return text;
}

static uint64_t compared, with_race, schedules_of_all, proved, combined;

/* Searched without proofs, and with nothing kept to go back to. */
static const char *explore_thoroughly(const sample_program *p, const judgement *expected) {
    mr_explore_result r;
    const char *differs = explore_sample(p, -1, true, &r);
    if (!differs) differs = compare(expected, &r);
    mr_explore_result_free(&r);
    return differs;
}

const char *explore_differs(const sample_program *p) {
    judgement expected;
    mr_explore_result r;
    explore_judge(p, &expected);
    if (expected.interleavings == UINT64_MAX) return NULL;
    const char *differs = explore_sample(p, -1, false, &r);
    if (!differs) differs = compare(&expected, &r);
    compared++;
    with_race += expected.has_race;
    schedules_of_all += r.schedules;
    proved += r.proved;
    combined += r.groups.count > 0;
    mr_explore_result_free(&r);
    if (!differs && compared % 4 == 0) differs = explore_thoroughly(p, &expected);
    if (differs) return differs;
    differs = explore_sample(p, BOUND, false, &r);
    if (!differs) differs = compare_bounded(&expected, &r);
    mr_explore_result_free(&r);
    return differs;
}

/* ---- showing one */

static void print_access(const sample_access *a) {
    printf(" %s t%d[%d..+%d*%d]", a->access & NAIVE_WRITE ? "w" : "r", a->tensor, a->view.offset,
           a->view.shape[0], a->view.stride[0]);
}

void explore_print(const sample_program *p) {
    static const char *const memories[] = {"device", "pinned", "pageable"};
    static const char *const names[] = {[STEP_OP] = "op",
                                        [STEP_COPY] = "copy",
                                        [STEP_HOST_FUNCTION] = "host function",
                                        [STEP_FREE] = "free",
                                        [STEP_RECORD] = "record",
                                        [STEP_WAIT] = "wait",
                                        [STEP_STREAM_SYNC] = "sync",
                                        [STEP_EVENT_SYNC] = "event sync",
                                        [STEP_DEVICE_SYNC] = "device sync",
                                        [STEP_HOST_ACCESS] = "host",
                                        [STEP_STREAM_QUERY] = "query",
                                        [STEP_EVENT_QUERY] = "event query",
                                        [STEP_NOTHING] = "nothing"};
    for (int i = 0; i < p->stream_count; i++)
        printf("stream %d:%s%s%s\n", i, p->stream[i].legacy ? " legacy" : "",
               p->stream[i].per_thread ? " per thread" : "",
               p->stream[i].blocking ? " blocking" : "");
    for (int t = 0; t < p->tensor_count; t++)
        printf("tensor %d: %s\n", t, memories[p->tensor[t].memory]);
    for (int i = 0; i < p->step_count; i++) {
        const sample_step *s = &p->step[i];
        if (s->kind == STEP_NOTHING) continue;
        printf("%2d %s%s s%d e%d t%d", i, s->synchronous ? "synchronous " : "", names[s->kind],
               s->stream, s->event, s->tensor);
        for (int k = 0; k < s->access_count; k++) print_access(&s->access[k]);
        printf("\n");
    }
}
