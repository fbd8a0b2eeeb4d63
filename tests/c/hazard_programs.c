/* Random programs: see hazard_programs.h. The program is valid by construction and by program_tidy,
 * which takes out what no script could have done (a use after the free, a run of nothing). */
#include "hazard_programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hazard/hazard.h"
#include "tensor/tensor.h"

/* ---- making them */

static uint64_t drawn;

static uint32_t draw(uint32_t n) { /* xorshift: the same programs everywhere */
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return (uint32_t)((drawn * 2685821657736338717u) >> 33) % n;
}

static sample_view random_view(void) {
    static const sample_view views[] = {
        {0, 1, {16, 0}, {1, 0}, 4},                             /* all */
        {0, 1, {8, 0}, {1, 0}, 4},                              /* halves */
        {8, 1, {8, 0}, {1, 0}, 4},   {4, 1, {8, 0}, {1, 0}, 4}, /* the middle */
        {0, 2, {4, 4}, {4, 1}, 4},                              /* as a matrix of 4 x 4 */
        {0, 1, {4, 0}, {4, 0}, 4},                              /* its columns */
        {1, 1, {4, 0}, {4, 0}, 4},   {2, 1, {4, 0}, {4, 0}, 4},
        {0, 2, {4, 2}, {4, 1}, 4},                              /* two columns */
        {2, 2, {4, 2}, {4, 1}, 4},   {5, 2, {2, 2}, {4, 1}, 4}, /* a tile */
        {0, 1, {8, 0}, {2, 0}, 4},                              /* every second */
        {1, 1, {8, 0}, {2, 0}, 4},   {0, 1, {6, 0}, {3, 0}, 4}, /* every third */
        {15, 1, {6, 0}, {-3, 0}, 4},                            /* the same, backwards */
        {3, 1, {1, 0}, {1, 0}, 4},   {0, 2, {3, 2}, {5, 2}, 4}, /* strides that share no divisor */
        {1, 2, {2, 3}, {7, 2}, 4},   {10, 1, {20, 0}, {1, 0}, 1}, /* bytes */
        {0, 2, {4, 4}, {0, 1}, 4},                                /* expanded */
    };
    return views[draw(sizeof views / sizeof *views)];
}

static sample_access random_access(const sample_program *p, int tensor) {
    (void)p;
    static const uint8_t access[] = {NAIVE_READ, NAIVE_WRITE, NAIVE_READ | NAIVE_WRITE};
    return (sample_access){tensor, random_view(), access[draw(3)]};
}

static int random_stream(const sample_program *p, int device) {
    for (;;) {
        int s = (int)draw((uint32_t)p->stream_count);
        if (device < 0 || p->stream[s].device == device) return s;
    }
}

static int random_host_tensor(const sample_program *p) {
    for (int i = 0; i < 8; i++) {
        int t = (int)draw((uint32_t)p->tensor_count);
        if (p->tensor[t].memory != MEMORY_DEVICE) return t;
    }
    return -1;
}

/* Some have operations that access memory as launches of kernels do. */
static bool with_kernels;

static void random_op(const sample_program *p, sample_step *s) {
    s->kind = STEP_OP;
    s->stream = random_stream(p, -1);
    int count = 1 + (int)draw(2);
    for (int i = 0; i < count; i++) {
        int t = (int)draw((uint32_t)p->tensor_count);
        if (p->tensor[t].memory == MEMORY_PAGEABLE) continue;
        sample_access *a = &s->access[s->access_count++];
        *a = random_access(p, t);
        if (!with_kernels) continue;
        if (draw(4) == 0) a->access = NAIVE_READ | NAIVE_WRITE | NAIVE_ATOMIC;
        if (draw(4) == 0) a->access |= NAIVE_ASSUMED;
    }
}

/* Some programs of three devices are about copies between them, which may meet on the third one (R60). */
static bool many_walls;

static void random_copy(const sample_program *p, sample_step *s) {
    int to = (int)draw((uint32_t)p->tensor_count), from = (int)draw((uint32_t)p->tensor_count);
    bool to_device = p->tensor[to].memory == MEMORY_DEVICE,
         from_device = p->tensor[from].memory == MEMORY_DEVICE;
    if (to == from) return;
    s->kind = STEP_COPY;
    s->synchronous = many_walls || draw(2);
    int device = from_device ? p->tensor[from].device : to_device ? p->tensor[to].device : 0;
    s->stream = s->synchronous ? 2 * device : random_stream(p, device);
    s->access_count = 2;
    s->access[0] = (sample_access){to, {(int)draw(3) * 4, 1, {8, 0}, {1, 0}, 4}, NAIVE_WRITE};
    s->access[1] = (sample_access){from, {(int)draw(3) * 4, 1, {8, 0}, {1, 0}, 4}, NAIVE_READ};
}

/* Some programs are about host functions: many, that run late, and host memory that they share. */
static bool many_functions;

static void random_step(const sample_program *p, sample_step *s) {
    memset(s, 0, sizeof *s);
    uint32_t what = draw(100);
    if (many_functions && draw(5) == 0) what = draw(3) ? 88 : 90;
    if (many_walls && draw(3) == 0) what = 40;
    s->stream = random_stream(p, -1);
    s->event = (int)draw((uint32_t)p->event_count);
    s->device = (int)draw((uint32_t)p->device_count);
    s->tensor = (int)draw((uint32_t)p->tensor_count);
    if (what < 40) {
        random_op(p, s);
    } else if (what < 48) {
        s->kind = STEP_NOTHING;
        random_copy(p, s);
    } else if (what < 61) {
        s->kind = STEP_RECORD;
        s->stream = random_stream(p, s->event % p->device_count); /* R14 */
    } else if (what < 75) {
        s->kind = STEP_WAIT;
    } else if (what < 78) {
        s->kind = draw(2) ? STEP_STREAM_SYNC : STEP_STREAM_QUERY;
    } else if (what < 81) {
        s->kind = draw(2) ? STEP_EVENT_SYNC : STEP_EVENT_QUERY;
    } else if (what < 82) {
        s->kind = STEP_DEVICE_SYNC;
    } else if (what < 88) {
        int t = random_host_tensor(p);
        s->kind = t < 0 ? STEP_NOTHING : STEP_HOST_ACCESS;
        if (t >= 0) s->access[s->access_count++] = random_access(p, t);
    } else if (what < 90) {
        int t = random_host_tensor(p);
        s->kind = t < 0 ? STEP_NOTHING : STEP_HOST_FUNCTION;
        if (t >= 0 && p->tensor[t].memory == MEMORY_PINNED)
            s->access[s->access_count++] = random_access(p, t);
    } else if (what < 92) {
        s->kind = STEP_RUN;
    } else if (what < 94) {
        s->kind = STEP_ALLOC;
    } else if (what < 96) {
        s->kind = STEP_FREE;
        s->synchronous = draw(3) == 0;
    } else if (what < 97) {
        s->kind = STEP_RECORD_STREAM;
    } else {
        s->kind = STEP_REPLACE_STREAM;
    }
    bool of_tensor = s->kind == STEP_ALLOC || s->kind == STEP_FREE || s->kind == STEP_RECORD_STREAM;
    if (of_tensor) s->stream = random_stream(p, p->tensor[s->tensor].device);
}

/* A pending function for step i to run: the first of its stream, and none that a wait has already made
 * to run; -1: there is none. */
static int runnable(const sample_program *p, const naive_verdict *v, const bool *pending, int i) {
    int found[MOST_STEPS], count = 0;
    for (int k = 0; k < i; k++) {
        bool first = pending[k] && !naive_host_knows(p, v, k, i - 2);
        for (int m = 0; m < k && first; m++) first = !pending[m] || !v->before[m][k];
        if (first) found[count++] = k;
    }
    return count ? found[p->step[i].event % count] : -1;
}

/* Takes out what cannot be. */
static void program_tidy(sample_program *p) {
    bool live[MOST_TENSORS], freed[MOST_TENSORS] = {false}, made[MOST_TENSORS];
    for (int t = 0; t < p->tensor_count; t++) {
        made[t] = live[t] = true;
        for (int i = 0; i < p->step_count; i++)
            if (p->step[i].kind == STEP_ALLOC && p->step[i].tensor == t) made[t] = live[t] = false;
    }
    bool pending[MOST_STEPS] = {false};
    static naive_verdict v;
    for (int i = 0; i < p->step_count; i++) {
        sample_step *s = &p->step[i];
        if (s->kind == STEP_REPLACE_STREAM &&
            (p->stream[s->stream].legacy || p->stream[s->stream].per_thread))
            s->kind = STEP_NOTHING;
    }
    naive_order(p, &v);
    for (int i = 0; i < p->step_count; i++) {
        sample_step *s = &p->step[i];
        bool valid = true, device = p->tensor[s->tensor].memory == MEMORY_DEVICE;
        for (int k = 0; k < s->access_count; k++) valid = valid && live[s->access[k].tensor];
        if (s->kind == STEP_ALLOC) valid = device && !made[s->tensor] && !freed[s->tensor];
        if (s->kind == STEP_FREE || s->kind == STEP_RECORD_STREAM)
            valid = device && live[s->tensor];
        if (s->kind == STEP_RUN) {
            s->partner = runnable(p, &v, pending, i);
            valid = s->partner >= 0;
        }
        if (!valid) {
            memset(s, 0, sizeof *s);
            s->kind = STEP_NOTHING;
            continue;
        }
        if (s->kind == STEP_ALLOC) live[s->tensor] = made[s->tensor] = true;
        if (s->kind == STEP_FREE) live[s->tensor] = false, freed[s->tensor] = true;
        if (s->kind == STEP_HOST_FUNCTION && s->access_count) pending[i] = true;
        if (s->kind == STEP_RUN) pending[s->partner] = false;
    }
}

void program_random(uint64_t seed, sample_program *p) {
    memset(p, 0, sizeof *p);
    drawn = seed * 0x9e3779b97f4a7c15u + 0x1234567;
    for (int i = 0; i < 4; i++) draw(2);
    p->device_count = draw(4) ? 1 : 2 + (int)draw(2);
    many_walls = p->device_count > 2 && draw(2);
    many_functions = !many_walls && draw(4) == 0;
    with_kernels = draw(3) == 0;
    for (int d = 0; d < p->device_count; d++) {
        p->stream[p->stream_count].device = d;
        p->stream[p->stream_count++].legacy = true;
        p->stream[p->stream_count].device = d;
        p->stream[p->stream_count++].per_thread = true;
    }
    for (int n = 1 + (int)draw(4); n > 0; n--) {
        p->stream[p->stream_count].device = (int)draw((uint32_t)p->device_count);
        p->stream[p->stream_count++].blocking = draw(2);
    }
    p->tensor_count = many_walls ? MOST_TENSORS : 2 + (int)draw(3);
    for (int t = 0; t < p->tensor_count; t++) {
        uint32_t memory = many_functions ? 4 + draw(5) : draw(10);
        p->tensor[t].memory = memory < 6   ? MEMORY_DEVICE
                              : memory < 9 ? MEMORY_PINNED
                                           : MEMORY_PAGEABLE;
        if (many_walls) p->tensor[t].memory = MEMORY_DEVICE;
        p->tensor[t].device = (int)draw((uint32_t)p->device_count);
        p->tensor[t].blank = p->tensor[t].memory != MEMORY_DEVICE && draw(3) == 0;
    }
    p->event_count = 2 + (int)draw(2);
    p->step_count = 6 + (int)draw(MOST_STEPS - 8);
    for (int i = 0; i < p->step_count; i++) random_step(p, &p->step[i]);
    program_tidy(p);
}

/* ---- the checker's verdict */

typedef struct {
    mr_hazard_kind kind;
    int first, second;
    bool assumed;
} verdict_pair;

/* For tests of what is said about a program, beside what is found. */
static bool with_advice;
static int lines; /* steps i and i + lines stand on one line, as in a loop; 0: each on its own */
static void (*at_end)(mr_hazard *hazard, const mr_machine *machine);

/* MR_HAZARD_ERROR: what is refused is left out, as by a script that catches the errors. */
static mr_hazard_mode checker_mode = MR_HAZARD_COLLECT;
static bool was_refused[MOST_STEPS];
/* The first hazard, as it was told in the step that had it; first_step: -1 without one. */
static int first_step;
static mr_buffer first_text;

static int line_of(int step) {
    return (lines ? step % lines : step) + 1;
}

static verdict_pair pairs[8192];
static int pair_count;
static int step_of_seq[2 * MOST_STEPS + 2];

static void note_pair(void *context, const mr_hazard_found *found) {
    (void)context;
    int second = step_of_seq[found->second_seq];
    /* The naive checker knows of no allocation behind such a read. */
    bool alone = found->kind == MR_HAZARD_UNINITIALISED_READ;
    int first = alone ? second : step_of_seq[found->first_seq];
    if (pair_count < (int)(sizeof pairs / sizeof *pairs))
        pairs[pair_count++] = (verdict_pair){found->kind, first, second, found->assumed};
}

typedef struct {
    mr_machine machine;
    mr_device device[MOST_DEVICES];
    mr_device *devices[MOST_DEVICES];
    mr_stream *stream[MOST_STREAMS];
    mr_event event[MOST_EVENTS];
    mr_storage storage[MOST_TENSORS];
    mr_tensor tensor[4];
    uint64_t record_seq[MOST_STEPS]; /* of host function commands, by step */
} fake;

static mr_observer *observer_of(fake *f) {
    return f->machine.observing.observers.items[0];
}

static mr_stream *new_stream(fake *f, const sample_program *p, int i) {
    mr_stream *s = calloc(1, sizeof *s);
    *s = (mr_stream){.refs = 1,
                     .id = ++f->machine.counts.next_stream,
                     .kind = p->stream[i].legacy       ? MR_STREAM_LEGACY
                             : p->stream[i].per_thread ? MR_STREAM_PER_THREAD
                                                       : MR_STREAM_USER,
                     .blocking =
                         p->stream[i].blocking || p->stream[i].legacy || p->stream[i].per_thread,
                     .device = &f->device[p->stream[i].device]};
    return s;
}

static void make_tensor(fake *f, mr_tensor *t, const sample_access *a) {
    const sample_view *v = &a->view;
    memset(t, 0, sizeof *t);
    t->refs = 1;
    t->ndim = (uint8_t)v->ndim;
    t->dtype = v->size == 4 ? MR_F32 : MR_U8;
    t->storage = &f->storage[a->tensor];
    t->offset = v->offset;
    t->numel = 1;
    int64_t expected = 1;
    t->contiguous = true;
    for (int d = v->ndim - 1; d >= 0; d--) {
        t->shape[d] = v->shape[d];
        t->stride[d] = v->stride[d];
        t->numel *= v->shape[d];
        if (v->shape[d] > 1 && v->stride[d] != expected) t->contiguous = false;
        expected *= v->shape[d];
    }
}

/* False: it was refused. */
static bool send(fake *f, mr_command *command, const sample_program *p, int i, uint64_t seq) {
    const sample_step *s = &p->step[i];
    command->seq = seq;
    command->machine = &f->machine;
    command->operands = command->inline_operands;
    bool is_sync =
        s->kind == STEP_STREAM_SYNC || s->kind == STEP_EVENT_SYNC || s->kind == STEP_DEVICE_SYNC;
    command->name =
        is_sync ? "synchronize" : "step"; /* advice tells the script's own by the name */
    command->where = (mr_site){"program.lua", line_of(i)};
    for (int k = 0; k < s->access_count; k++) {
        make_tensor(f, &f->tensor[k], &s->access[k]);
        command->operands[k] = (mr_operand){&f->tensor[k], s->access[k].access};
    }
    command->operand_count = (uint32_t)s->access_count;
    mr_observer *observer = observer_of(f);
    mr_status refused = observer->may(observer, command);
    if (!refused) observer->did(observer, command, true);
    mr_error_destroy(refused);
    return !refused;
}

static const mr_command_id command_kinds[] = {
    [STEP_OP] = MR_COMMAND_OP,
    [STEP_COPY] = MR_COMMAND_COPY,
    [STEP_RECORD] = MR_COMMAND_RECORD,
    [STEP_WAIT] = MR_COMMAND_WAIT,
    [STEP_STREAM_SYNC] = MR_COMMAND_STREAM_SYNC,
    [STEP_EVENT_SYNC] = MR_COMMAND_EVENT_SYNC,
    [STEP_DEVICE_SYNC] = MR_COMMAND_DEVICE_SYNC,
    [STEP_STREAM_QUERY] = MR_COMMAND_STREAM_QUERY,
    [STEP_EVENT_QUERY] = MR_COMMAND_EVENT_QUERY,
    [STEP_HOST_ACCESS] = MR_COMMAND_HOST_ACCESS,
    [STEP_HOST_FUNCTION] = MR_COMMAND_HOST_FUNCTION,
    [STEP_RUN] = MR_COMMAND_HOST_ACCESS,
    [STEP_ALLOC] = MR_COMMAND_ALLOC,
    [STEP_FREE] = MR_COMMAND_FREE,
};

static mr_copy_direction direction_of(const sample_program *p, const sample_step *s) {
    int to = s->access[0].tensor, from = s->access[1].tensor;
    bool to_device = p->tensor[to].memory == MEMORY_DEVICE,
         from_device = p->tensor[from].memory == MEMORY_DEVICE;
    if (!from_device) return to_device ? MR_COPY_H2D : MR_COPY_H2H;
    if (!to_device) return MR_COPY_D2H;
    return p->tensor[to].device == p->tensor[from].device ? MR_COPY_D2D : MR_COPY_PEER;
}

static void replace_stream(fake *f, const sample_program *p, int i) {
    mr_stream *old = f->stream[i];
    if (old->observed) observer_of(f)->stream_gone(observer_of(f), old);
    for (int t = 0; t < p->tensor_count;
         t++) { /* the storage's reference, which keeps it in the model */
        size_t kept = 0;
        for (size_t k = 0; k < f->storage[t].used_by.count; k++)
            if (f->storage[t].used_by.items[k] != old)
                f->storage[t].used_by.items[kept++] = f->storage[t].used_by.items[k];
        f->storage[t].used_by.count = kept;
    }
    free(old);
    f->stream[i] = new_stream(f, p, i);
}

/* A host function runs: what it touches is told now, with the command that it was submitted as. */
static bool run_function(fake *f, const sample_program *p, int function, uint64_t seq) {
    mr_command submitted = {.kind = MR_COMMAND_HOST_FUNCTION,
                            .seq = f->record_seq[function],
                            .stream = f->stream[p->step[function].stream]};
    mr_command command = {.kind = MR_COMMAND_HOST_ACCESS};
    f->machine.host_function.command = &submitted;
    f->machine.host_function.running = true;
    bool taken = send(f, &command, p, function, seq);
    f->machine.host_function.command = NULL;
    f->machine.host_function.running = false;
    observer_of(f)->function_ran(observer_of(f), &submitted);
    return taken;
}

/* Those that the program does not run touch nothing, and run at the end. */
static void run_other_functions(fake *f, const sample_program *p) {
    for (int i = 0; i < p->step_count; i++) {
        mr_command submitted = {.kind = MR_COMMAND_HOST_FUNCTION, .seq = f->record_seq[i]};
        if (p->step[i].kind == STEP_HOST_FUNCTION)
            observer_of(f)->function_ran(observer_of(f), &submitted);
    }
}

/* False: it was refused. */
static bool step(fake *f, const sample_program *p, int i) {
    const sample_step *s = &p->step[i];
    uint64_t seq = f->machine.counts.next_seq++;
    step_of_seq[seq] = i;
    mr_command command = {0};
    if (s->kind <= STEP_FREE) command.kind = command_kinds[s->kind];
    switch (s->kind) {
    case STEP_NOTHING: return true;
    case STEP_REPLACE_STREAM: replace_stream(f, p, s->stream); return true;
    case STEP_RUN: return run_function(f, p, s->partner, seq);
    case STEP_RECORD_STREAM:
        mr_vec_push(&f->storage[s->tensor].used_by, f->stream[s->stream]);
        return true;
    case STEP_DEVICE_SYNC: command.u.device = &f->device[s->device]; break;
    case STEP_COPY:
        command.u.copy.direction = direction_of(p, s);
        command.u.copy.synchronous = s->synchronous;
        command.u.copy.current = (int16_t)s->device;
        break;
    case STEP_ALLOC:
    case STEP_FREE:
        command.u.storage = &f->storage[s->tensor];
        command.u.at_once = s->kind == STEP_FREE && s->synchronous;
        break;
    case STEP_RECORD:
        f->event[s->event].record_seq = seq;
        /* fall through */
    case STEP_WAIT:
    case STEP_EVENT_SYNC:
    case STEP_EVENT_QUERY:
        command.u.event.event = &f->event[s->event];
        command.u.event.record_seq = f->event[s->event].record_seq;
        if (!f->event[s->event].record_seq && s->kind == STEP_EVENT_QUERY)
            return true; /* not announced */
        break;
    default: break;
    }
    if (s->kind == STEP_HOST_FUNCTION) f->record_seq[i] = seq;
    bool host = s->kind == STEP_HOST_ACCESS || s->kind == STEP_DEVICE_SYNC ||
                s->kind == STEP_EVENT_SYNC || s->kind == STEP_EVENT_QUERY;
    command.stream = host ? NULL : f->stream[s->stream];
    sample_program *mutable = (sample_program *)p;
    int accesses = s->access_count;
    if (s->kind == STEP_HOST_FUNCTION) mutable->step[i].access_count = 0; /* told when it runs */
    bool taken = send(f, &command, p, i, seq);
    mutable->step[i].access_count = accesses;
    return taken;
}

static void see_first(const mr_hazard *hazard, int step) {
    if (first_step >= 0 || !mr_hazard_report_count(hazard)) return;
    const mr_hazard_report *r = mr_hazard_report_at(hazard, 0);
    first_step = step;
    mr_buffer_printf(&first_text, "%s %s %d -> %d\n%s\n", mr_hazard_kind_text(r->kind),
                     mr_hazard_reason_text(r->reason), step_of_seq[r->first.seq] + 1,
                     step_of_seq[r->second.seq] + 1, r->why);
    mr_hazard_fix_text(r, &first_text);
}

static void run_program(const sample_program *p) {
    static fake f;
    mr_hazard *hazard;
    mr_hazard_watcher watcher = {.found = note_pair};
    memset(&f, 0, sizeof f);
    f.machine.device_count = p->device_count;
    f.machine.devices = f.devices;
    f.machine.counts.next_seq = 1;
    for (int d = 0; d < p->device_count; d++) {
        f.devices[d] = &f.device[d];
        f.device[d].machine = &f.machine;
        f.device[d].index = d;
    }
    pair_count = 0;
    mr_error_destroy(mr_hazard_create(&f.machine, NULL, &hazard));
    mr_hazard_watch(hazard, &watcher);
    mr_error_destroy(mr_hazard_set_mode(hazard, checker_mode));
    mr_hazard_set_advice(hazard, with_advice);
    for (int i = 0; i < p->stream_count; i++) f.stream[i] = new_stream(&f, p, i);
    for (int e = 0; e < p->event_count; e++)
        f.event[e] = (mr_event){.refs = 1, .id = (uint32_t)e + 1, .machine = &f.machine};
    for (int t = 0; t < p->tensor_count; t++)
        f.storage[t] =
            (mr_storage){.refs = 1,
                         .handles = 1,
                         .kind = p->tensor[t].memory == MEMORY_DEVICE   ? MR_MEMORY_DEVICE
                                 : p->tensor[t].memory == MEMORY_PINNED ? MR_MEMORY_PINNED
                                                                        : MR_MEMORY_PAGEABLE,
                         .id = (uint64_t)t + 1,
                         .bytes = MOST_BYTES,
                         .blank = p->tensor[t].blank,
                         .machine = &f.machine,
                         .device = &f.device[p->tensor[t].device]};
    first_step = -1;
    first_text.size = 0;
    for (int i = 0; i < p->step_count; i++) {
        was_refused[i] = !step(&f, p, i);
        see_first(hazard, i);
    }
    run_other_functions(&f, p);
    see_first(hazard, p->step_count);
    if (at_end) at_end(hazard, &f.machine);
    mr_hazard_destroy(hazard);
    for (int i = 0; i < p->stream_count; i++) free(f.stream[i]);
    for (int t = 0; t < p->tensor_count; t++) mr_vec_free(&f.storage[t].used_by);
    mr_vec_free(&f.machine.observing.observers);
}

/* ---- both verdicts */

static char difference[1 << 15];

static bool reported(bool (*matches)(mr_hazard_kind kind), int first, int second) {
    for (int i = 0; i < pair_count; i++)
        if (pairs[i].first == first && pairs[i].second == second && matches(pairs[i].kind))
            return true;
    return false;
}

/* As a race; `certain`: not only as an assumed one. */
static bool told(int first, int second, bool certain) {
    for (int i = 0; i < pair_count; i++)
        if (pairs[i].first == first && pairs[i].second == second &&
            pairs[i].kind <= MR_HAZARD_WRITE_AFTER_WRITE && !(certain && pairs[i].assumed))
            return true;
    return false;
}

static bool is_data(mr_hazard_kind kind) {
    return kind <= MR_HAZARD_WRITE_AFTER_WRITE;
}
static bool is_free(mr_hazard_kind kind) {
    return kind == MR_HAZARD_USE_AFTER_FREE;
}
static bool is_alloc(mr_hazard_kind kind) {
    return kind == MR_HAZARD_USE_BEFORE_ALLOC;
}
static bool is_unset(mr_hazard_kind kind) {
    return kind == MR_HAZARD_UNINITIALISED_READ;
}

/* Race (i, j) on this byte: reported, or an access that came between and was ordered after i has taken
 * its place. With a host function, which tells late what it touches, it may also be one after j. */
static bool accounted(const sample_program *p, const naive_verdict *v, int i, int j, int tensor,
                      int byte, bool certain) {
    bool runs_late[2] = {p->step[i].kind == STEP_HOST_FUNCTION,
                         p->step[j].kind == STEP_HOST_FUNCTION};
    for (int k = 0; k < p->step_count; k++) {
        if ((k == i || v->before[i][k]) && told(k, j, certain) &&
            naive_conflict_at(p, k, j, tensor, byte, certain))
            return true;
        if (runs_late[1] && v->before[i][k] && told(j, k, certain) &&
            naive_conflict_at(p, k, j, tensor, byte, certain))
            return true;
        if (runs_late[0] && v->before[j][k] && told(i, k, certain) &&
            naive_conflict_at(p, k, i, tensor, byte, certain))
            return true;
    }
    return false;
}

static const char *missed_race(const sample_program *p, const naive_verdict *v) {
    for (int j = 0; j < p->step_count; j++)
        for (int i = 0; i < j; i++)
            for (int t = 0; t < p->tensor_count && v->race[i][j]; t++)
                for (int k = 0; k < 2 * MOST_BYTES; k++) {
                    int byte = k / 2;
                    bool certain = k % 2;
                    if (!naive_conflict_at(p, i, j, t, byte, certain) ||
                        accounted(p, v, i, j, t, byte, certain))
                        continue;
                    snprintf(difference, sizeof difference,
                             "missed: lines %d and %d race%s on byte %d of t%d", i + 1, j + 1,
                             certain ? " for certain" : "", byte, t + 1);
                    return difference;
                }
    return NULL;
}

/* Host functions that never run tell nothing: their accesses are no part of the comparison. */
static void drop_silent_functions(sample_program *p) {
    for (int i = 0; i < p->step_count; i++) {
        if (p->step[i].kind != STEP_HOST_FUNCTION) continue;
        bool runs = false;
        for (int k = i + 1; k < p->step_count; k++)
            runs |= p->step[k].kind == STEP_RUN && p->step[k].partner == i;
        if (!runs) p->step[i].access_count = 0;
    }
}

static const char *missed_lifetime(const sample_program *p, const naive_verdict *v) {
    for (int j = 0; j < p->step_count; j++) {
        for (int i = 0; i < j; i++) {
            bool found = !v->free_race[i][j];
            for (int k = 0; k < j && !found; k++)
                found = reported(is_free, k, j) && (k == i || v->before[i][k]);
            if (!found) {
                snprintf(difference, sizeof difference,
                         "missed: line %d is not before the free of line %d", i + 1, j + 1);
                return difference;
            }
            found = !v->alloc_race[i][j] || reported(is_alloc, i, j);
            for (int k = 0; k < p->step_count && !found; k++)
                found = reported(is_data, k, j) || reported(is_data, j, k);
            if (!found) {
                snprintf(difference, sizeof difference,
                         "missed: line %d is not after the allocation of line %d", j + 1, i + 1);
                return difference;
            }
        }
    }
    return NULL;
}

/* A read behind a host function that never runs is not judged: the totals count that function (not_run). */
static bool behind_silent_function(const sample_program *p, int step) {
    for (int i = 0; i < step; i++) {
        bool runs = p->step[i].kind != STEP_HOST_FUNCTION;
        for (int k = i + 1; k < p->step_count; k++)
            runs |= p->step[k].kind == STEP_RUN && p->step[k].partner == i;
        if (!runs) return true;
    }
    return false;
}

static const char *missed_read(const sample_program *p, const naive_verdict *v) {
    for (int i = 0; i < p->step_count; i++) {
        if (!v->unset[i] || reported(is_unset, i, i) || behind_silent_function(p, i)) continue;
        snprintf(difference, sizeof difference, "missed: line %d reads what nothing has written",
                 i + 1);
        return difference;
    }
    return NULL;
}

static const char *false_alarm(const sample_program *p, const naive_verdict *v) {
    for (int n = 0; n < pair_count; n++) {
        int i = pairs[n].first, j = pairs[n].second;
        bool right = is_data(pairs[n].kind)    ? v->race[i][j]
                     : is_unset(pairs[n].kind) ? v->unset[j]
                     : is_free(pairs[n].kind)  ? v->free_race[i][j]
                                              : v->alloc_race[i][j] || p->step[j].kind == STEP_FREE;
        if (right) continue;
        snprintf(difference, sizeof difference, "false alarm: %s of lines %d and %d",
                 mr_hazard_kind_text(pairs[n].kind), i + 1, j + 1);
        return difference;
    }
    return NULL;
}

/* A program that error mode let pass has no race. */
static const char *refused_too_little(const sample_program *p) {
    static sample_program rest;
    static naive_verdict v;
    rest = *p;
    for (int i = 0; i < p->step_count; i++) {
        if (!was_refused[i]) continue;
        if (p->step[i].kind == STEP_RUN) rest.step[p->step[i].partner].access_count = 0;
        rest.step[i] = (sample_step){.kind = STEP_NOTHING};
    }
    naive_check(&rest, &v);
    for (int j = 0; j < p->step_count; j++)
        for (int i = 0; i < j; i++) {
            if (!v.race[i][j] && !v.free_race[i][j] && !v.alloc_race[i][j]) continue;
            snprintf(difference, sizeof difference, "error mode lets lines %d and %d pass", i + 1,
                     j + 1);
            return difference;
        }
    return NULL;
}

/* Error mode refuses the step that has the first hazard, and says the same of it. After a run in the other. */
static const char *modes_differ(const sample_program *p) {
    static char told[1 << 14];
    int step = first_step, count = pair_count;
    snprintf(told, sizeof told, "%.*s", (int)first_text.size, first_text.data);
    checker_mode = MR_HAZARD_ERROR;
    run_program(p);
    checker_mode = MR_HAZARD_COLLECT;
    pair_count = count;
    if (step == first_step && first_text.size == strlen(told) &&
        (!first_text.size || memcmp(told, first_text.data, first_text.size) == 0))
        return refused_too_little(p);
    snprintf(difference, sizeof difference,
             "error mode refuses line %d, and line %d has the first hazard:\n%.*s\n%s",
             first_step + 1, step + 1, (int)first_text.size, first_text.data, told);
    return difference;
}

const char *program_differs(const sample_program *program) {
    static naive_verdict v;
    static sample_program p;
    p = *program;
    drop_silent_functions(&p);
    naive_check(&p, &v);
    run_program(&p);
    const char *text = false_alarm(&p, &v);
    if (!text) text = missed_race(&p, &v);
    if (!text) text = missed_read(&p, &v);
    if (!text) text = missed_lifetime(&p, &v);
    return text ? text : modes_differ(&p);
}

void program_shrink(sample_program *p) {
    for (bool smaller = true; smaller;) {
        smaller = false;
        for (int i = p->step_count - 1; i >= 0; i--) {
            sample_program less = *p;
            memset(&less.step[i], 0, sizeof less.step[i]);
            less.step[i].kind = STEP_NOTHING;
            program_tidy(&less);
            if (p->step[i].kind == STEP_NOTHING || !program_differs(&less)) continue;
            *p = less;
            smaller = true;
        }
    }
}

/* ---- as a script */

static void print_view(const sample_access *a) {
    const sample_view *v = &a->view;
    printf("t%d[offset %d, shape %d", a->tensor + 1, v->offset, v->shape[0]);
    if (v->ndim > 1) printf("x%d", v->shape[1]);
    printf(", stride %d", v->stride[0]);
    if (v->ndim > 1) printf(",%d", v->stride[1]);
    printf("%s]", v->size == 1 ? ", bytes" : "");
}

static void print_accesses(const sample_step *s) {
    static const char *const words[] = {"", "reads", "writes", "reads and writes"};
    for (int i = 0; i < s->access_count; i++) {
        uint8_t access = s->access[i].access;
        printf("%s %s%s%s ", i ? "," : "  --", access & NAIVE_ASSUMED ? "perhaps " : "",
               access & NAIVE_ATOMIC ? "atomically " : "",
               words[access & (NAIVE_READ | NAIVE_WRITE)]);
        print_view(&s->access[i]);
    }
    printf("\n");
}

static void print_step(const sample_program *p, int i) {
    const sample_step *s = &p->step[i];
    switch (s->kind) {
    case STEP_OP: printf("mr.op{stream=s%d}", s->stream + 1); break;
    case STEP_COPY:
        printf("mr.memcpy%s(..., {stream=s%d})", s->synchronous ? "" : "_async", s->stream + 1);
        break;
    case STEP_RECORD: printf("e%d:record(s%d)", s->event + 1, s->stream + 1); break;
    case STEP_WAIT: printf("s%d:wait_event(e%d)", s->stream + 1, s->event + 1); break;
    case STEP_STREAM_SYNC: printf("s%d:synchronize()", s->stream + 1); break;
    case STEP_STREAM_QUERY: printf("assert(s%d:query())", s->stream + 1); break;
    case STEP_EVENT_SYNC: printf("e%d:synchronize()", s->event + 1); break;
    case STEP_EVENT_QUERY: printf("assert(e%d:query())", s->event + 1); break;
    case STEP_DEVICE_SYNC: printf("mr.synchronize(%d)", s->device); break;
    case STEP_HOST_ACCESS: printf("touch()"); break;
    case STEP_HOST_FUNCTION: printf("s%d:host_func(touch)", s->stream + 1); break;
    case STEP_RUN: printf("-- the function of line %d runs", s->partner + 1); break;
    case STEP_ALLOC:
        printf("t%d = mr.empty(16, {stream=s%d})", s->tensor + 1, s->stream + 1);
        break;
    case STEP_FREE:
        if (s->synchronous) printf("t%d:free{sync=true}", s->tensor + 1);
        else printf("t%d:free{stream=s%d}", s->tensor + 1, s->stream + 1);
        break;
    case STEP_RECORD_STREAM: printf("t%d:record_stream(s%d)", s->tensor + 1, s->stream + 1); break;
    case STEP_REPLACE_STREAM:
        printf("s%d:close() s%d = mr.stream()", s->stream + 1, s->stream + 1);
        break;
    case STEP_NOTHING: return;
    }
    printf("  -- line %d", i + 1);
    print_accesses(s);
}

void program_print(const sample_program *p) {
    static const char *const memory[] = {"device", "pinned", "pageable"};
    for (int i = 0; i < p->stream_count; i++)
        printf("local s%d = %s  -- device %d\n", i + 1,
               p->stream[i].legacy       ? "mr.default_stream()"
               : p->stream[i].per_thread ? "mr.per_thread_stream()"
               : p->stream[i].blocking   ? "mr.stream{nonblocking=false}"
                                         : "mr.stream()",
               p->stream[i].device);
    for (int t = 0; t < p->tensor_count; t++)
        printf("local t%d = mr.empty(16)  -- %s, device %d\n", t + 1, memory[p->tensor[t].memory],
               p->tensor[t].device);
    for (int i = 0; i < p->step_count; i++) print_step(p, i);
}
