/* Host functions of the CUDA backend, in both forms, where the driver's queues are as short as they are: no call
 * blocks inside the driver, whatever pends. A test that hangs is ended by its time limit. */
#include "cuda_fixture.h"

#if MR_HAVE_CUDA

#include <unistd.h>

typedef struct {
    int called, dropped;
} counter;

static mr_status count_call(void *context) {
    ((counter *)context)->called++;
    return MR_OK;
}
static void count_drop(void *context) {
    ((counter *)context)->dropped++;
}

enum { BY_VALUES, BY_CALLBACKS, FORMS };

static void begin(int form, int hardware_queues) {
    alarm(50);
    fake->no_memory_operations = form == BY_CALLBACKS;
    fake->hardware_queues = hardware_queues;
    fake->blocking_calls = fake->most_pending = 0;
}

static void nothing_blocked(void) {
    assert_int_equal(fake->blocking_calls, 0);
    assert_true(fake->most_pending < QUEUE_DEPTH);
    fake->hardware_queues = 0;
    alarm(0);
}

/* ---- what a queue holds */

static void pairs_of_a_kernel_and_a_host_function_do_not_block(void **state) {
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        counter c = {0, 0};
        mr_stream *s = free_stream();
        begin(form, 0);
        for (int i = 0; i < 1000; i++) {
            launch(s);
            OK(mr_stream_host_function(&caller, s, count_call, count_drop, &c));
        }
        OK(mr_stream_synchronize(&caller, s));
        assert_int_equal(c.called, 1000);
        assert_int_equal(c.dropped, 1000);
        assert_int_equal(fake->callbacks_run, form == BY_CALLBACKS ? 1000 : 0);
        nothing_blocked();
        mr_stream_release(s);
    }
}

/* A callback's place in the queue is free once the driver's own thread has returned, and that thread may be late where
 * the machine is busy. Nothing of ours holds it up, so launches behind it may wait for it; here they do not. */
static void let_callbacks_return(int count) {
    while (__atomic_load_n(&fake->callbacks_run, __ATOMIC_ACQUIRE) < count) usleep(50);
}

static void streams_that_share_a_queue_share_the_bound(void **state) {
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        int before = fake->callbacks_run;
        counter c = {0, 0};
        mr_stream *streams[8];
        begin(form, 1);
        for (int i = 0; i < 8; i++) {
            streams[i] = free_stream();
            OK(mr_stream_host_function(&caller, streams[i], count_call, count_drop, &c));
        }
        for (int i = 0; i < 4000; i++) {
            launch(streams[i % 8]);
            if (form == BY_CALLBACKS && c.called == 8) let_callbacks_return(before + 8);
        }
        for (int i = 0; i < 8; i++) OK(mr_stream_synchronize(&caller, streams[i]));
        assert_int_equal(c.called, 8);
        nothing_blocked();
        for (int i = 0; i < 8; i++) mr_stream_release(streams[i]);
    }
}

static void more_streams_than_callbacks_have_host_functions_pending(void **state) {
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        counter c = {0, 0};
        mr_stream *streams[200];
        begin(form, 8);
        for (int i = 0; i < 200; i++) {
            streams[i] = free_stream();
            launch(streams[i]);
            OK(mr_stream_host_function(&caller, streams[i], count_call, count_drop, &c));
        }
        for (int i = 0; i < 200; i++) mr_stream_release(streams[i]);
        OK(mr_device_synchronize(&caller, device));
        assert_int_equal(c.called, 200);
        nothing_blocked();
    }
}

/* ---- calls that block inside the driver */

/* Their stream is idle, but the hardware queue has another stream's host function in front of them. */
static void a_copy_that_blocks_runs_the_host_functions_of_all_streams(void **state) {
    (void)state;
    enum { LARGE = 1 << 17 };
    mr_stream *s = free_stream(), *other = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, s, LARGE),
              *page = tensor(MR_MEMORY_PAGEABLE, NULL, LARGE);
    for (int form = 0; form < FORMS; form++) {
        counter c = {0, 0};
        begin(form, 1);
        for (int i = 0; i < 4; i++) {
            OK(mr_stream_host_function(&caller, other, count_call, count_drop, &c));
            bool to_device = i & 1, synchronous = i & 2;
            OK(mr_memcpy(&caller, to_device ? t : page, to_device ? page : t,
                         synchronous ? NULL : s, synchronous));
            assert_int_equal(c.called, i + 1);
        }
        alarm(0);
        fake->hardware_queues = 0;
    }
    drop(t);
    drop(page);
    mr_stream_release(other);
    mr_stream_release(s);
}

static void a_second_device_starts_after_the_host_functions_of_the_first(void **state) {
    (void)state;
    counter c = {0, 0};
    begin(BY_VALUES, 0);
    OK(mr_stream_host_function(&caller, device->legacy, count_call, count_drop, &c));
    mr_stream *s = stream_on(machine->devices[1], true, NULL);
    assert_int_equal(c.called, 1);
    OK(mr_stream_host_function(&caller, s, count_call, count_drop, &c));
    OK(mr_stream_synchronize(&caller, s));
    assert_int_equal(c.called, 2);
    nothing_blocked();
    mr_stream_release(s);
}

/* ---- interrupts, frees, the end */

static bool at_once(void *context) {
    (void)context;
    return true;
}

static void a_full_queue_can_be_interrupted(void **state) {
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        counter c = {0, 0};
        mr_stream *s = free_stream();
        mr_status status = MR_OK;
        begin(form, 0);
        machine->hooks.interrupted = at_once;
        fake->hold = true;
        launch(s);
        int submitted = 0;
        for (; !status && submitted < 5000; submitted++)
            status = submitted % 20
                         ? mr_spin(&caller, s, 1000)
                         : mr_stream_host_function(&caller, s, count_call, count_drop, &c);
        assert_non_null(status);
        assert_string_equal(mr_code_text(status->code), mr_code_text(MR_CODE_INTERRUPTED));
        mr_error_destroy(status);
        assert_true(fake->hold);
        assert_int_equal(c.called, 0);
        fake->hold = false;
        machine->hooks.interrupted = NULL;
        OK(mr_stream_synchronize(&caller, s));
        assert_int_equal(c.called, (submitted - 1 + 19) / 20);
        nothing_blocked();
        mr_stream_release(s);
    }
}

/* Frees that another stream's work orders are made of events and waits. */
static void frees_behind_a_host_function_are_bounded_too(void **state) {
    (void)state;
    enum { TENSORS = 600 };
    static mr_tensor *tensors[TENSORS];
    counter c = {0, 0};
    mr_stream *s = free_stream(), *user = free_stream();
    begin(BY_VALUES, 1);
    for (int i = 0; i < TENSORS; i++) {
        tensors[i] = tensor(MR_MEMORY_DEVICE, s, 10);
        OK(mr_storage_record_stream(tensors[i]->storage, user));
    }
    OK(mr_stream_host_function(&caller, user, count_call, count_drop, &c));
    for (int i = 0; i < TENSORS; i++) drop(tensors[i]);
    assert_int_equal(c.called, 1);
    OK(mr_device_synchronize(&caller, device));
    nothing_blocked();
    mr_stream_release(user);
    mr_stream_release(s);
}

static void a_reset_lets_every_stream_go_on(void **state) {
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        static counter c;
        c = (counter){0, 0};
        mr_stream *a = free_stream(), *b = stream_on(machine->devices[1], true, NULL);
        begin(form, 0);
        for (int i = 0; i < 5; i++) {
            OK(mr_stream_host_function(&caller, a, count_call, count_drop, &c));
            OK(mr_stream_host_function(&caller, b, count_call, count_drop, &c));
        }
        OK(mr_machine_reset(&caller));
        assert_int_equal(c.called, 0);
        assert_int_equal(c.dropped, 10);
        mr_stream_release(a);
        mr_stream_release(b);
        OK(mr_stream_host_function(&caller, device->legacy, count_call, count_drop, &c));
        OK(mr_stream_synchronize(&caller, device->legacy));
        assert_int_equal(c.called, 1);
        alarm(0);
    }
}

/* ---- random programs */

enum { MOST_STREAMS = 8, SUBMISSIONS = 10000 };

/* The expected contents of a stream's memory once all its work is done. */
typedef struct {
    mr_stream *stream;
    mr_tensor *in, *on_device, *out; /* pinned, device, pinned */
    mr_event *event;
    int32_t now_in, now_on_device, now_out;
    int submitted, called;
} lane;

typedef struct {
    lane *lane;
    int number;
    int32_t sees, gives;
} job;

static int wrong, dropped;

static mr_status run_job(void *context) {
    job *j = context;
    wrong += j->lane->called++ != j->number;
    wrong += values(j->lane->out)[0] != j->sees;
    values(j->lane->in)[0] = j->gives;
    return MR_OK;
}
static void drop_job(void *context) {
    (void)context;
    dropped++;
}

static uint64_t seed;
static int draw(int below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)below);
}

static void submit_job(lane *l, job *j) {
    *j = (job){l, l->submitted++, l->now_out, draw(1000000)};
    l->now_in = j->gives;
    OK(mr_stream_host_function(&caller, l->stream, run_job, drop_job, j));
}

static void look_from_the_host(lane *l, mr_tensor *page) {
    copy(l->stream, page, l->on_device);
    wrong += values(page)[0] != l->now_on_device;
}

static void store_from_the_host(lane *l, mr_tensor *page) {
    values(page)[0] = l->now_on_device = draw(1000000);
    copy(l->stream, l->on_device, page);
}

static void step(lane *lanes, int count, mr_tensor *page, job *next_job) {
    lane *l = &lanes[draw(count)], *other = &lanes[draw(count)];
    switch (draw(40)) {
    default: launch(l->stream); break;
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
    case 9: submit_job(l, next_job); break;
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
        copy(l->stream, l->on_device, l->in);
        l->now_on_device = l->now_in;
        break;
    case 15:
    case 16:
    case 17:
    case 18:
    case 19:
        copy(l->stream, l->out, l->on_device);
        l->now_out = l->now_on_device;
        break;
    case 20:
    case 21:
    case 22: OK(mr_event_record(&caller, l->event, l->stream)); break;
    case 23:
    case 24: OK(mr_stream_wait_event(&caller, l->stream, other->event)); break;
    case 25:
        if (l != other) OK(mr_stream_wait_stream(&caller, l->stream, other->stream));
        break;
    case 26: drop(tensor(MR_MEMORY_DEVICE, l->stream, 100)); break;
    case 27: stream_done(l->stream); break;
    case 28:
        if (!draw(10)) look_from_the_host(l, page);
        break;
    case 29:
        if (!draw(10)) store_from_the_host(l, page);
        break;
    case 30:
        if (!draw(20)) OK(mr_stream_synchronize(&caller, l->stream));
        break;
    case 31:
        if (!draw(20)) OK(mr_event_synchronize(&caller, l->event));
        break;
    case 32:
        if (!draw(50)) OK(mr_device_synchronize(&caller, device));
        break;
    }
}

static void run_program(int count, int form, int hardware_queues) {
    static job jobs[SUBMISSIONS];
    lane lanes[MOST_STREAMS];
    mr_tensor *page = tensor(MR_MEMORY_PAGEABLE, NULL, 10);
    begin(form, hardware_queues);
    wrong = dropped = 0;
    seed = (uint64_t)(count * 100 + form * 10 + hardware_queues);
    for (int i = 0; i < count; i++) {
        mr_stream *s = stream_on(device, !draw(3), NULL);
        lanes[i] = (lane){.stream = s,
                          .in = tensor(MR_MEMORY_PINNED, NULL, 10),
                          .on_device = tensor(MR_MEMORY_DEVICE, s, 10),
                          .out = tensor(MR_MEMORY_PINNED, NULL, 10),
                          .event = new_event(false)};
        values(lanes[i].in)[0] = values(lanes[i].out)[0] = values(lanes[i].on_device)[0] = 0;
    }
    fake->kernel_ticks = draw(3);
    for (int i = 0; i < SUBMISSIONS; i++) step(lanes, count, page, &jobs[i]);
    OK(mr_device_synchronize(&caller, device));
    int submitted = 0;
    for (int i = 0; i < count; i++) {
        lane *l = &lanes[i];
        submitted += l->submitted;
        assert_int_equal(l->called, l->submitted);
        assert_int_equal(values(l->in)[0], l->now_in);
        assert_int_equal(values(l->on_device)[0], l->now_on_device);
        assert_int_equal(values(l->out)[0], l->now_out);
        drop(l->in);
        drop(l->on_device);
        drop(l->out);
        mr_event_release(l->event);
        mr_stream_release(l->stream);
    }
    drop(page);
    assert_int_equal(wrong, 0);
    assert_int_equal(dropped, submitted);
    assert_true(fake->most_pending < QUEUE_DEPTH);
    fake->kernel_ticks = fake->hardware_queues = 0;
    alarm(0);
}

static void random_programs_end_with_the_right_values(void **state) {
    (void)state;
    static const struct {
        int streams, hardware_queues;
    } programs[] = {{1, 0}, {2, 1}, {5, 3}, {8, 1}, {8, 8}};
    for (int form = 0; form < FORMS; form++)
        for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
            run_program(programs[i].streams, form, programs[i].hardware_queues);
}

CUDA_TEST_MAIN(TEST(pairs_of_a_kernel_and_a_host_function_do_not_block),
               TEST(streams_that_share_a_queue_share_the_bound),
               TEST(more_streams_than_callbacks_have_host_functions_pending),
               TEST(a_copy_that_blocks_runs_the_host_functions_of_all_streams),
               TEST(a_second_device_starts_after_the_host_functions_of_the_first),
               TEST(a_full_queue_can_be_interrupted),
               TEST(frees_behind_a_host_function_are_bounded_too),
               TEST(a_reset_lets_every_stream_go_on),
               TEST(random_programs_end_with_the_right_values))

#else
CUDA_TEST_MAIN()
#endif
