/* The fake driver's streams and events: queues of tasks, and when one may go on. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"

static uint64_t next_number;

/* ---- queues */

void fake_stream_init(CUstream stream, int device, bool blocking) {
    *stream = (struct CUstream_st){.device = device, .blocking = blocking};
    stream->end = &stream->first;
    stream->ordinal = fake_devices[device].stream_count++;
    stream->next = fake_devices[device].streams;
    fake_devices[device].streams = stream;
}

CUstream fake_stream_of(CUstream handle) {
    fake_device *device = &fake_devices[fake_current];
    if (handle == CU_STREAM_LEGACY || !handle) return &device->legacy;
    if (handle == CU_STREAM_PER_THREAD) return &device->per_thread;
    return handle;
}

static bool share_a_queue(const struct CUstream_st *a, const struct CUstream_st *b) {
    if (a == b || !fake_cuda.hardware_queues) return a == b;
    return a->device == b->device &&
           a->ordinal % fake_cuda.hardware_queues == b->ordinal % fake_cuda.hardware_queues;
}

static bool takes_a_place(task_kind kind) {
    return kind != TASK_RECORD && kind != TASK_WAIT && kind != TASK_FREE;
}

static int places_taken(const struct CUstream_st *stream) {
    int taken = 0;
    for (CUstream s = fake_devices[stream->device].streams; s; s = s->next)
        if (share_a_queue(s, stream)) taken += s->places;
    if (taken > fake_cuda.most_pending) fake_cuda.most_pending = taken;
    return taken;
}

/* As the real one blocks: nothing but the queue's own progress ends it. */
static void wait_for_a_place(const struct CUstream_st *stream, bool switches) {
    while (places_taken(stream) >= QUEUE_DEPTH ||
           (switches && fake_devices[stream->device].switches >= HOST_SWITCHES)) {
        if (fake_devices[stream->device].lost) return;
        fake_cuda.hold = false;
        fake_cuda.blocking_calls++;
        pthread_mutex_unlock(&fake_lock);
        usleep(50);
        pthread_mutex_lock(&fake_lock);
        fake_move();
    }
}

task *fake_add(CUstream stream, task_kind kind) {
    if (stream->capture) return fake_capture(stream->capture, kind);
    bool switches = kind == TASK_HOST && stream->after_work;
    if (takes_a_place(kind)) {
        wait_for_a_place(stream, switches);
        stream->places++;
        fake_devices[stream->device].switches += switches;
        stream->after_work = kind != TASK_HOST;
    }
    task *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->kind = kind;
    t->switches = switches;
    t->number = ++next_number;
    *stream->end = t;
    stream->end = &t->next;
    return t;
}

static void let_go(mark *m) {
    if (m && !--m->refs) free(m);
}

static void destroy_event(CUevent event) {
    event->previous->next = event->next;
    if (event->next) event->next->previous = event->previous;
    let_go(event->mark);
    fake_forget_event(event);
    free(event);
    fake_cuda.events--;
}

static void remove_first(CUstream stream) {
    task *t = stream->first;
    stream->first = t->next;
    if (!t->next) stream->end = &stream->first;
    stream->places -= takes_a_place(t->kind);
    fake_devices[stream->device].switches -= t->switches;
    let_go(t->mark);
    fake_meet_release(t->meet);
    free(t->staged);
    free(t);
}

static void free_closed_streams(int device) {
    for (CUstream *link = &fake_devices[device].streams; *link;) {
        CUstream stream = *link;
        if (!stream->closed || stream->first) {
            link = &stream->next;
            continue;
        }
        *link = stream->next;
        free(stream);
    }
}

/* ---- what may go on: R1, R3, R4, R12 */

static bool older_in(const struct CUstream_st *stream, uint64_t number) {
    return stream->first && stream->first->number < number;
}

/* R3, R4: the legacy stream and the blocking ones take turns. */
static bool is_turn_of(CUstream stream, const task *t) {
    const fake_device *device = &fake_devices[stream->device];
    if (!stream->blocking) return true;
    if (!stream->legacy) return !older_in(&device->legacy, t->number);
    for (CUstream s = device->streams; s; s = s->next)
        if (s->blocking && s != stream && older_in(s, t->number)) return false;
    return true;
}

static bool may_go(CUstream stream) {
    const task *t = stream->first;
    const fake_device *device = &fake_devices[stream->device];
    if (t->kind == TASK_WAIT && t->mark && !t->mark->done) return false;
    if (t->kind == TASK_WAIT_VALUE &&
        __atomic_load_n((uint64_t *)t->to, __ATOMIC_ACQUIRE) < t->value)
        return false;
    for (CUstream s = fake_cuda.hardware_queues ? device->streams : NULL; s; s = s->next)
        if (share_a_queue(s, stream) && older_in(s, t->number)) return false;
    if (!is_turn_of(stream, t)) return false;
    return t->kind != TASK_MEET || fake_meet_come(stream->first);
}

static void *run_callback(void *context) {
    task *t = context;
    t->call(t->context);
    pthread_mutex_lock(&fake_lock);
    t->returned = true;
    fake_cuda.callbacks_run++;
    pthread_mutex_unlock(&fake_lock);
    return NULL;
}

/* A kernel that takes its time: asking shows when it is over. */
static bool still_runs(task *t) {
    static int ms = -1;
    struct timespec now;
    if (ms < 0) ms = fake_number_of("FAKE_CUDA_KERNEL_MS", 0);
    if (!ms) return false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t time = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    if (!t->until) t->until = time + (uint64_t)ms;
    return time < t->until;
}

/* True when it is done. */
static bool carry_out_task(CUstream stream, task *t) {
    struct timespec now;
    pthread_t thread;
    CUresult result;
    switch (t->kind) {
    case TASK_KERNEL:
        if (t->ticks-- > 0 || still_runs(t)) return false;
        fake_cuda.kernels_run++;
        result = fake_run(&t->launch, t->staged);
        if (fake_cuda.lose_at && --fake_cuda.lose_at == 0) result = fake_cuda.lose_with;
        if (result) fake_devices[stream->device].lost = result;
        return true;
    case TASK_COPY:
        memmove(t->to, t->staged ? t->staged : t->from, t->bytes);
        fake_cuda.copies_run++;
        return true;
    case TASK_SET: memset(t->to, t->byte, t->bytes); return true;
    case TASK_RECORD:
        clock_gettime(CLOCK_MONOTONIC, &now);
        t->mark->time = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
        t->mark->done = true;
        return true;
    case TASK_WRITE_VALUE:
        __atomic_store_n((uint64_t *)t->to, t->value, __ATOMIC_RELEASE);
        return true;
    case TASK_MEET: fake_meet_carry_out(t); return true;
    case TASK_WAIT:
    case TASK_WAIT_VALUE: return true;
    case TASK_FREE: fake_free_block(stream->device, t->to); return true;
    case TASK_HOST:
        if (!t->running && pthread_create(&thread, NULL, run_callback, t) == 0) {
            pthread_detach(thread);
            t->running = true;
        }
        return t->returned;
    }
    return true;
}

static bool carry_out(CUstream stream, task *t) {
    bool is_work = t->kind == TASK_KERNEL || t->kind == TASK_COPY || t->kind == TASK_SET;
    uint64_t begin = is_work ? fake_now() : 0;
    if (!carry_out_task(stream, t)) return false;
    if (is_work) fake_finished(t, begin);
    return true;
}

void fake_move(void) {
    if (fake_cuda.hold) return;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < fake_device_count; i++) {
            fake_device *device = &fake_devices[i];
            for (CUstream s = device->streams; s; s = s->next) {
                while (s->first && !device->lost && may_go(s) && carry_out(s, s->first)) {
                    remove_first(s);
                    moved = true;
                }
            }
        }
    }
    for (int i = 0; i < fake_device_count; i++) free_closed_streams(i);
}

/* ---- asking and waiting */

bool fake_stream_done(CUstream stream) {
    if (stream->first) return false;
    if (!stream->legacy) return true;
    for (CUstream s = fake_devices[stream->device].streams; s; s = s->next)
        if (s->blocking && s->first) return false;
    return true;
}

static bool done(CUstream stream) {
    if (stream) return fake_stream_done(stream);
    for (CUstream s = fake_devices[fake_current].streams; s; s = s->next)
        if (s->first) return false;
    return true;
}

CUresult fake_finish(CUstream stream) {
    for (fake_move(); !done(stream); fake_move()) {
        fake_cuda.hold = false;
        fake_cuda.blocking_calls++;
        pthread_mutex_unlock(&fake_lock); /* for the threads of host functions */
        usleep(50);
        pthread_mutex_lock(&fake_lock);
        if (fake_state()) return fake_state();
    }
    return CUDA_SUCCESS;
}

static bool all_done(void) {
    for (int i = 0; i < fake_device_count; i++)
        for (CUstream s = fake_devices[i].streams; s; s = s->next)
            if (s->first && !fake_devices[i].lost) return false;
    return true;
}

CUresult fake_wait_as_allowed(void) {
    if (!fake_cuda.waits) return CUDA_SUCCESS;
    for (fake_move(); !all_done(); fake_move()) {
        fake_cuda.hold = false;
        fake_cuda.blocking_calls++;
        pthread_mutex_unlock(&fake_lock);
        usleep(50);
        pthread_mutex_lock(&fake_lock);
    }
    return fake_state();
}

bool fake_uses(const fake_module *module) {
    for (CUstream s = fake_devices[module->device].streams; s; s = s->next)
        for (const task *t = s->first; t; t = t->next)
            if (t->kind == TASK_KERNEL && t->launch.function &&
                t->launch.function->module == module)
                return true;
    return false;
}

/* Tasks of a running callback stay until the thread is done with them. */
void fake_drop(int device) {
    for (CUstream s = fake_devices[device].streams; s; s = s->next) {
        while (s->first) {
            if (s->first->running && !s->first->returned) {
                pthread_mutex_unlock(&fake_lock);
                usleep(50);
                pthread_mutex_lock(&fake_lock);
                continue;
            }
            remove_first(s);
        }
        if (s == &fake_devices[device].legacy || s == &fake_devices[device].per_thread) continue;
        if (!s->closed) fake_cuda.streams--;
        s->closed = true;
    }
    free_closed_streams(device);
    while (fake_devices[device].events.next) destroy_event(fake_devices[device].events.next);
}

/* ---- the driver's functions */

CUresult fake_StreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    ENTER_OR_FAIL();
    WAIT_AS_ALLOWED();
    (void)priority;
    *stream = malloc(sizeof **stream);
    if (!*stream) return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    fake_stream_init(*stream, fake_current, !(flags & CU_STREAM_NON_BLOCKING));
    fake_cuda.streams++;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_StreamDestroy(CUstream stream) {
    pthread_mutex_lock(&fake_lock); /* also when the device is lost */
    stream->closed = true;
    fake_cuda.streams--;
    fake_move();
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_StreamQuery(CUstream handle) {
    ENTER();
    fake_cuda.queries++;
    fake_move();
    CUresult result = fake_state();
    if (!result && !fake_stream_done(fake_stream_of(handle))) result = CUDA_ERROR_NOT_READY;
    return fake_leave(result);
}

CUresult fake_StreamSynchronize(CUstream handle) {
    ENTER();
    CUresult result = fake_finish(fake_stream_of(handle));
    fake_write_prints();
    return fake_leave(result);
}

CUresult fake_StreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    ENTER_OR_FAIL();
    CUstream waiting = fake_stream_of(stream);
    if (waiting->capture && flags == CU_EVENT_WAIT_EXTERNAL) {
        fake_capture(waiting->capture, TASK_WAIT)->event = event;
        return fake_leave(CUDA_SUCCESS);
    }
    if (event->capture) { /* it joins the capture */
        if (waiting->capture && waiting->capture != event->capture)
            return fake_leave(CUDA_ERROR_STREAM_CAPTURE_MERGE);
        waiting->capture = event->capture;
        return fake_leave(CUDA_SUCCESS);
    }
    if (waiting->capture) return fake_leave(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (event->counts) {
        task *t = fake_add(waiting, TASK_WAIT_VALUE);
        t->to = &event->counts->done;
        t->value = __atomic_load_n(&event->counts->submitted, __ATOMIC_ACQUIRE);
        fake_move();
        return fake_leave(CUDA_SUCCESS);
    }
    fake_bind_event(fake_add(waiting, TASK_WAIT), event);
    fake_move();
    return fake_leave(CUDA_SUCCESS);
}

CUevent fake_new_event(void) {
    CUevent event = calloc(1, sizeof *event), head = &fake_devices[fake_current].events;
    if (!event) abort();
    event->previous = head;
    event->next = head->next;
    if (head->next) head->next->previous = event;
    head->next = event;
    fake_cuda.events++;
    return event;
}

CUresult fake_EventCreate(CUevent *event, unsigned flags) {
    ENTER_OR_FAIL();
    bool timed = !(flags & CU_EVENT_DISABLE_TIMING);
    if (timed && flags & CU_EVENT_INTERPROCESS) return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *event = fake_new_event();
    (*event)->timed = timed;
    if (flags & CU_EVENT_INTERPROCESS) (*event)->counts = fake_share_event((*event)->path);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_EventDestroy(CUevent event) {
    pthread_mutex_lock(&fake_lock); /* also when the device is lost */
    destroy_event(event);
    return fake_leave(CUDA_SUCCESS);
}

void fake_bind_event(task *t, CUevent event) {
    if (t->kind == TASK_RECORD) {
        let_go(event->mark);
        event->mark = calloc(1, sizeof *event->mark);
        if (!event->mark) abort();
        event->mark->refs = 1;
    }
    t->mark = event->mark;
    if (t->mark) t->mark->refs++;
}

CUresult fake_EventRecord(CUevent event, CUstream stream) {
    ENTER_OR_FAIL();
    event->capture = fake_stream_of(stream)->capture;
    if (event->capture) return fake_leave(CUDA_SUCCESS);
    if (event->counts) {
        task *t = fake_add(fake_stream_of(stream), TASK_WRITE_VALUE);
        t->to = &event->counts->done;
        t->value = __atomic_add_fetch(&event->counts->submitted, 1, __ATOMIC_ACQ_REL);
        fake_move();
        return fake_leave(CUDA_SUCCESS);
    }
    fake_bind_event(fake_add(fake_stream_of(stream), TASK_RECORD), event);
    fake_move();
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_EventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    ENTER_OR_FAIL();
    CUgraph graph = fake_stream_of(stream)->capture;
    if (!graph || flags != CU_EVENT_RECORD_EXTERNAL) return fake_leave(CUDA_ERROR_INVALID_VALUE);
    fake_capture(graph, TASK_RECORD)->event = event;
    return fake_leave(CUDA_SUCCESS);
}

static CUresult event_state(const struct CUevent_st *event) {
    const fake_counts *counts = event->counts;
    if (counts) {
        uint64_t submitted = __atomic_load_n(&counts->submitted, __ATOMIC_ACQUIRE);
        bool is_done = __atomic_load_n(&counts->done, __ATOMIC_ACQUIRE) >= submitted;
        return is_done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    }
    return event->mark && !event->mark->done ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult fake_EventQuery(CUevent event) {
    ENTER();
    fake_cuda.queries++;
    fake_move();
    CUresult result = fake_state();
    return fake_leave(result ? result : event_state(event));
}

CUresult fake_EventSynchronize(CUevent event) {
    ENTER();
    for (fake_move(); !fake_state() && event_state(event); fake_move()) {
        fake_cuda.hold = false;
        fake_cuda.blocking_calls++;
        pthread_mutex_unlock(&fake_lock);
        usleep(50);
        pthread_mutex_lock(&fake_lock);
    }
    fake_write_prints();
    return fake_leave(fake_state());
}

CUresult fake_EventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
    ENTER();
    if (!from->timed || !to->timed || !from->mark || !to->mark)
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    if (event_state(from) || event_state(to)) return fake_leave(CUDA_ERROR_NOT_READY);
    *milliseconds = (float)(to->mark->time - from->mark->time) * 1e-6f;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_LaunchHostFunc(CUstream stream, CUhostFn call, void *context) {
    ENTER();
    task *t = fake_add(fake_stream_of(stream), TASK_HOST);
    t->call = call;
    t->context = context;
    fake_move();
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_StreamBatchMemOp(CUstream stream, unsigned count,
                               CUstreamBatchMemOpParams *operations, unsigned flags) {
    ENTER();
    if (fake_cuda.no_memory_operations) return fake_leave(CUDA_ERROR_NOT_SUPPORTED);
    if (flags || count > 255) return fake_leave(CUDA_ERROR_INVALID_VALUE);
    for (unsigned i = 0; i < count; i++) {
        bool writes = operations[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        if (!writes && operations[i].operation != CU_STREAM_MEM_OP_WAIT_VALUE_64)
            return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    for (unsigned i = 0; i < count; i++) {
        const CUstreamBatchMemOpParams *o = &operations[i];
        bool writes = o->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        task *t = fake_add(fake_stream_of(stream), writes ? TASK_WRITE_VALUE : TASK_WAIT_VALUE);
        t->to = (void *)(uintptr_t)(writes ? o->writeValue.address : o->waitValue.address);
        t->value = writes ? o->writeValue.value64 : o->waitValue.value64;
    }
    fake_move();
    return fake_leave(CUDA_SUCCESS);
}
