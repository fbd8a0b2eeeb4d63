/* Rows that the random programs of test_order_explorer.c leave out or seldom need. They are orders of the default
 * stream that devices keep beyond CUDA's word (R5, R20), copies between devices (R60) and collectives (R61). Others are
 * an event that is recorded again (R11), and the wait for a device (R10). Also what the host waits for in each kind of
 * copy (R20 to R23). The explorer is told that two commands of a function race. It calls its result incomplete if its
 * own order has one before the other. So the functions ask it, and a person knows the answers. Then each row, and each
 * fact of a copy, is broken in turn, and an answer must change. */
#include "order_mutants.h"

#include "collective/comm.h"
#include "explore/explore.h"
#include "virtual_fixture.h"

enum { SIZE = 4, DEVICES = 3 };

static mr_stream *blocking, *nonblocking, *other;
static mr_stream *of_other, *of_third; /* nonblocking, of devices 1 and 2 */
static mr_tensor *x, *y, *on_other, *on_third, *pinned, *pageable, *witness;
static mr_explore_race asked; /* the two commands */
static mr_collectives *collectives;
static mr_comm *comms[2]; /* of devices 0 and 1 */

static void first(void) {
    asked.first = machine->counts.next_seq;
}
static void second(void) {
    asked.second = machine->counts.next_seq;
}

static void host_reads(void) {
    OK(mr_host_access(&caller, "read", pinned, MR_READ));
}

static void copy_between_devices(void) {
    machine->current_device = device;
    OK(mr_memcpy(&caller, on_other, x, NULL, true));
}

/* ---- the functions */

static void synchronize_behind(mr_stream *work, mr_stream *wait) {
    first();
    copy(work, pinned, x);
    OK(mr_stream_synchronize(&caller, wait));
    second();
    host_reads();
}
static void synchronize_default(void) { /* R5 */
    synchronize_behind(blocking, device->legacy);
}
static void synchronize_default_only(void) {
    synchronize_behind(nonblocking, device->legacy);
}
static void synchronize_other(void) {
    synchronize_behind(blocking, nonblocking);
}

static void synchronize_device_behind(int d) {
    first();
    copy(nonblocking, pinned, x);
    OK(mr_device_synchronize(&caller, machine->devices[d]));
    second();
    host_reads();
}
static void synchronize_device(void) { /* R10 */
    synchronize_device_behind(0);
}
static void synchronize_other_device(void) {
    synchronize_device_behind(1);
}

/* Pageable memory is read in the call, behind what the host waits for. */
static void stage_behind(mr_stream *work) {
    first();
    copy(work, pinned, x);
    OK(mr_memcpy(&caller, y, pageable, NULL, true));
    second();
    host_reads();
}
static void stage_behind_default(void) { /* R20 */
    stage_behind(device->legacy);
}
static void stage_behind_blocking(void) {
    stage_behind(blocking);
}
static void stage_behind_nonblocking(void) {
    stage_behind(nonblocking);
}

static void meet_wall(void) { /* R60 */
    first();
    copy(of_other, pinned, on_other);
    second();
    copy_between_devices();
}
static void behind_wall(void) {
    first();
    copy_between_devices();
    second();
    copy(of_other, pinned, on_other);
}
/* Both are work of device 1, so the second comes after the first. */
static void meet_walls(void) {
    first();
    copy(nonblocking, pinned, x);
    copy_between_devices();
    machine->current_device = machine->devices[2];
    OK(mr_memcpy(&caller, on_other, on_third, NULL, true));
    machine->current_device = device;
    second();
    copy(of_third, pinned, on_third);
}
static void behind_no_wall(void) {
    first();
    OK(mr_memcpy(&caller, on_other, x, nonblocking, false));
    second();
    copy(of_other, pinned, on_other);
}

/* The root needs nobody's data, and yet a device ends all members together (R61). */
static void broadcast_from_other(void) {
    mr_collective_call ask = {.what = MR_COLLECTIVE_BROADCAST, .root = 1};
    mr_collectives_begin(collectives);
    ask.comm = comms[0], ask.stream = nonblocking, ask.out = x;
    OK(mr_collective_ask(collectives, &caller, &ask));
    ask.comm = comms[1], ask.stream = of_other, ask.in = on_other, ask.out = NULL;
    OK(mr_collective_ask(collectives, &caller, &ask));
    OK(mr_collectives_end(collectives));
}
static void meet_all(void) {
    first();
    copy(nonblocking, pinned, x);
    broadcast_from_other();
    second();
    copy(of_other, pinned, on_other);
}
static void meet_none(void) {
    first();
    copy(nonblocking, pinned, x);
    second();
    copy(of_other, pinned, on_other);
    broadcast_from_other();
}

/* R11: the second record takes the place of the first. */
static void wait_for_record(bool again) {
    mr_event_options options = {0};
    mr_event *event;
    OK(mr_event_create(&caller, &options, &event));
    first();
    copy(blocking, pinned, x);
    OK(mr_event_record(&caller, event, blocking));
    if (again) OK(mr_event_record(&caller, event, other));
    OK(mr_stream_wait_event(&caller, nonblocking, event));
    second();
    copy(nonblocking, pinned, y);
    mr_event_release(event);
}
static void record_once(void) {
    wait_for_record(false);
}
static void record_again(void) {
    wait_for_record(true);
}

static const struct {
    void (*function)(void);
    bool is_ordered;
} questions[] = {
    {synchronize_default, true},
    {synchronize_default_only, false},
    {synchronize_other, false},
    {synchronize_device, true},
    {synchronize_other_device, false},
    {stage_behind_default, true},
    {stage_behind_blocking, true},
    {stage_behind_nonblocking, false},
    {meet_wall, true},
    {behind_wall, true},
    {meet_walls, true},
    {behind_no_wall, false},
    {meet_all, true},
    {meet_none, false},
    {record_once, true},
    {record_again, false},
};

/* For what the host has waited when a copy returns: for the work in front of it, and for the copy. */
static const struct {
    mr_tensor **to, **from;
    bool synchronous;
    bool early; /* a setting: what R23 leaves open returns early */
    bool waits_for_work, is_done;
} copies[] = {
    {.to = &y, .from = &x, .synchronous = true},        /* R21 */
    {.to = &on_other, .from = &x, .synchronous = true}, /* R60 */
    {&pageable, &pinned, true, false, true, true},
    {&pinned, &x, true, false, true, true},
    {.to = &pinned, .from = &x}, /* R22 */
    {&pageable, &x, true, false, true, true},
    {.to = &pageable, .from = &x, .early = true}, /* R23 */
    {&pageable, &x, false, false, true, true},
    {&y, &pinned, true, false, true, true},
    {.to = &y, .from = &pinned},                  /* R22 */
    {&y, &pageable, true, false, true, false},    /* R20 */
    {.to = &y, .from = &pageable, .early = true}, /* R23 */
    {&y, &pageable, false, false, true, true},
};
enum { COPIES = sizeof copies / sizeof *copies };
static int asked_copy = -1; /* -1: not about copies */

static mr_stream *stream_of_copy(void) {
    return copies[asked_copy].synchronous ? device->legacy : nonblocking;
}
static void do_copy(void) {
    bool synchronous = copies[asked_copy].synchronous;
    OK(mr_memcpy(&caller, *copies[asked_copy].to, *copies[asked_copy].from,
                 synchronous ? NULL : nonblocking, synchronous));
}
static void work_in_front_of_copy(void) {
    first();
    copy(stream_of_copy(), witness, x);
    do_copy();
    second();
    OK(mr_host_access(&caller, "read", witness, MR_READ));
}
static void copy_itself(void) {
    first();
    do_copy();
    second();
    OK(mr_host_access(&caller, "read", witness, MR_READ));
}

/* ---- asking */

static mr_status begin_function(void *context) {
    (void)context;
    return MR_OK;
}

static mr_status run_function(void *context, mr_explore_value *out) {
    (void)out;
    x = tensor(device->legacy, SIZE);
    y = tensor(device->legacy, SIZE);
    on_other = tensor(machine->devices[1]->legacy, SIZE);
    on_third = tensor(machine->devices[2]->legacy, SIZE);
    pinned = tensor_of(MR_MEMORY_PINNED, NULL, SIZE);
    pageable = tensor_of(MR_MEMORY_PAGEABLE, NULL, SIZE);
    witness = tensor_of(MR_MEMORY_PINNED, NULL, SIZE);
    mr_tensor *of_host[] = {pinned, pageable, witness}, *of_devices[] = {x, y, on_other, on_third};
    for (int i = 0; i < 3; i++) {
        OK(mr_host_access(&caller, "clear", of_host[i], MR_WRITE));
        memset(values(of_host[i]), 0, sizeof(int32_t[SIZE]));
    }
    for (int i = 0; i < 4; i++) fill(of_devices[i]->storage->device->legacy, of_devices[i], 7 + i);
    for (int d = 0; d < DEVICES; d++) OK(mr_device_synchronize(&caller, machine->devices[d]));
    (*(void (**)(void))context)();
    for (int d = 0; d < DEVICES; d++) OK(mr_device_synchronize(&caller, machine->devices[d]));
    while (made_tensors.count) drop(made_tensors.items[0]);
    return MR_OK;
}

static size_t asked_pair(void *context, const mr_explore_race **out_races) {
    (void)context;
    *out_races = &asked;
    return 1;
}

/* Their first collective makes the events of the communicators, which a function that is explored must find. */
static void open_communicators(void) {
    OK(mr_collectives_new(machine, &collectives));
    OK(mr_comms_create(collectives, machine->devices, 2, NULL, comms));
    x = tensor(device->legacy, SIZE);
    on_other = tensor(machine->devices[1]->legacy, SIZE);
    broadcast_from_other();
    for (int d = 0; d < 2; d++) OK(mr_device_synchronize(&caller, machine->devices[d]));
    drop(x);
    drop(on_other);
}

/* `unspecified`: both answers are tried where CUDA leaves one open. */
static bool explore(void (*function)(void), bool unspecified, uint64_t *out_schedules) {
    mr_explore_result result;
    mr_explore_options options = {.overtaking = -1, .full = true, .unspecified = unspecified};
    mr_stream_options free_one = {.nonblocking = true};
    open_machine("virtual:3", NULL);
    blocking = blocking_stream();
    nonblocking = free_stream();
    other = free_stream();
    set("pageable_d2h_async", asked_copy >= 0 && copies[asked_copy].early);
    set("pageable_h2d_async", asked_copy >= 0 && copies[asked_copy].early);
    OK(mr_stream_create(&caller, machine->devices[1], &free_one, &of_other));
    OK(mr_stream_create(&caller, machine->devices[2], &free_one, &of_third));
    open_communicators();
    mr_explore_subject subject = {.context = &function,
                                  .machine = machine,
                                  .begin = begin_function,
                                  .run = run_function,
                                  .races = asked_pair};
    OK(mr_explore(&subject, &options, &result));
    bool ordered = strstr(result.incomplete, "CUDA does not guarantee") != NULL;
    *out_schedules = result.schedules;
    mr_explore_result_free(&result);
    for (int i = 0; i < 2; i++) mr_comm_release(comms[i]);
    mr_collectives_free(collectives);
    mr_stream_release(of_other);
    mr_stream_release(of_third);
    assert_int_equal(teardown(NULL), 0);
    return ordered;
}

static bool is_ordered(void (*function)(void)) {
    uint64_t schedules;
    return explore(function, false, &schedules);
}

static bool answers_differ(void) {
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (is_ordered(questions[i].function) != questions[i].is_ordered) return true;
    return false;
}

static bool copy_differs(int i) {
    bool is_open = !copies[i].synchronous && /* R23 */
                   (copies[i].to == &pageable || copies[i].from == &pageable);
    uint64_t schedules, with_both_answers;
    asked_copy = i;
    bool differs = is_ordered(work_in_front_of_copy) != copies[i].waits_for_work ||
                   is_ordered(copy_itself) != copies[i].is_done;
    explore(copy_itself, false, &schedules);
    explore(copy_itself, true, &with_both_answers);
    asked_copy = -1;
    return differs || (with_both_answers > schedules) != is_open;
}

static bool copies_differ(void) {
    for (int i = 0; i < COPIES; i++)
        if (copy_differs(i)) return true;
    return false;
}

static void it_knows_what_copies_wait_for(void **unused) {
    (void)unused;
    for (int i = 0; i < COPIES; i++)
        if (copy_differs(i)) fail_msg("copy %d", i);
}

static void it_knows_the_answers(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (is_ordered(questions[i].function) != questions[i].is_ordered)
            fail_msg("question %d", (int)i);
}

static void every_row_counts(void **unused) {
    (void)unused;
    static const mr_order_id rows[] = {
        MR_ORDER_BEHIND_WALL,   MR_ORDER_MEET_WALL,  MR_ORDER_MEET_WALLS, MR_ORDER_TO_WALL,
        MR_ORDER_MEET_ALL,      MR_ORDER_TO_RECORD,  MR_ORDER_EARLIER,    MR_ORDER_EARLIER_BLOCKING,
        MR_ORDER_SYNC_BLOCKING, MR_ORDER_SYNC_DEVICE};
    static const order_inherent inherent[] = {
        {MR_ORDER_EARLIER, "it is asked with this fact alone", ONLY_WIDENED},
        {MR_ORDER_EARLIER_BLOCKING, "likewise, and these copies are of default streams",
         ONLY_WIDENED},
        {MR_ORDER_ROWS, NULL, 0}};
    int missed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        missed += order_row_unnoticed(rows[i], MR_ALLOCATOR, inherent, answers_differ);
    assert_int_equal(missed, 0);
}

/* Whether the source is read in the call shows in values: test_order_explorer.c. */
static void every_fact_of_a_copy_counts(void **unused) {
    (void)unused;
    enum {
        UNASKED = 1 << READS_SOURCE | 1 << IS_OPEN,
        DONE = UNASKED | 1 << AFTER_STREAM, /* the host waits for the copy anyway */
        OPEN = 1 << READS_SOURCE
    };
    static const unsigned same[ORDER_COPIES] = {[COPY_D2D] = UNASKED,
                                                [COPY_PEER] = UNASKED,
                                                [COPY_H2H] = DONE,
                                                [COPY_TO_PINNED] = DONE,
                                                [COPY_TO_PINNED_ASYNC] = UNASKED,
                                                [COPY_TO_PAGEABLE] = DONE,
                                                [COPY_TO_PAGEABLE_ASYNC] = OPEN,
                                                [COPY_FROM_PINNED] = DONE,
                                                [COPY_FROM_PINNED_ASYNC] = UNASKED,
                                                [COPY_FROM_PAGEABLE] = UNASKED,
                                                [COPY_FROM_PAGEABLE_ASYNC] = OPEN};
    assert_int_equal(order_copies_unnoticed(same, copies_differ), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_knows_the_answers),
                                       cmocka_unit_test(every_row_counts),
                                       cmocka_unit_test(it_knows_what_copies_wait_for),
                                       cmocka_unit_test(every_fact_of_a_copy_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
