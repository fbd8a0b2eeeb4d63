/* The waits of the host for copies on the virtual GPU (R20 to R23). A table says of each kind of copy what the host has
 * waited for when the call returns, and what the copy reads if its source changes. It is written from the text of
 * docs/semantics.md. Then each fact of a kind of copy in src/order is turned round; the table must contradict it. */
#include "order_mutants.h"

#include "model/observer.h"
#include "virtual_fixture.h"

/* ---- what the rules say */

enum { COUNT = 16, FIRST = 7, CHANGED = 2, NEW = 5 };

typedef enum { DEVICE, OTHER_DEVICE, PINNED, PAGEABLE } place;

typedef struct {
    place to, from;
    bool synchronous;
    bool early; /* a setting: what R23 leaves open returns early */
    bool large; /* too large for the buffer of staged copies */
    /* When the call returns, the host has waited for the work in front of the copy: work that writes the source; other
     * work; and for the copy itself. */
    bool waits_for_writer, waits_for_work, is_done;
    bool reads_late; /* what the host writes to the source after the call is copied */
} copy_case;

static const copy_case cases[] = {
    {.to = DEVICE, .from = DEVICE, .synchronous = true},       /* R21 */
    {.to = OTHER_DEVICE, .from = DEVICE, .synchronous = true}, /* R60 */
    {PAGEABLE, PINNED, true, false, false, true, true, true, false},
    {PINNED, DEVICE, true, false, false, true, true, true, false},
    {.to = PINNED, .from = DEVICE}, /* R22 */
    {PAGEABLE, DEVICE, true, false, false, true, true, true, false},
    {.to = PAGEABLE, .from = DEVICE, .early = true}, /* R23 */
    {PAGEABLE, DEVICE, false, false, false, true, true, true, false},
    {DEVICE, PINNED, true, false, false, true, true, true, false},
    {.to = DEVICE, .from = PINNED, .reads_late = true},                /* R22 */
    {DEVICE, PAGEABLE, true, false, false, true, true, false, false},  /* R20 */
    {DEVICE, PAGEABLE, true, false, true, true, true, true, false},    /* R20 */
    {DEVICE, PAGEABLE, false, true, false, true, false, false, false}, /* R23, and R1 */
    {DEVICE, PAGEABLE, false, false, false, true, true, true, false},  /* R23 */
    {DEVICE, PAGEABLE, false, true, true, true, true, true, false},    /* R23 */
};

/* ---- what the virtual GPU does */

static uint64_t work_seq, copy_seq;
static bool work_ran, copy_ran;

static void note_run(mr_observer *observer, const mr_command *command, const mr_run *run) {
    (void)observer, (void)run;
    work_ran |= command->seq == work_seq;
    copy_ran |= command->seq == copy_seq;
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    (void)observer, (void)command, (void)host_waited;
}

static mr_tensor *tensor_at(place at) {
    static const mr_memory_kind kinds[] = {MR_MEMORY_DEVICE, MR_MEMORY_DEVICE, MR_MEMORY_PINNED,
                                           MR_MEMORY_PAGEABLE};
    mr_stream *owner = at == DEVICE ? device->legacy : machine->devices[1]->legacy;
    mr_tensor *t = tensor_of(kinds[at], at <= OTHER_DEVICE ? owner : NULL, COUNT);
    if (at <= OTHER_DEVICE) fill(owner, t, FIRST);
    else
        for (int i = 0; i < COUNT; i++) values(t)[i] = FIRST;
    return t;
}

/* Only a copy can write pageable memory in a stream. */
static void write_source(mr_stream *stream, place at, mr_tensor *source, mr_tensor *other) {
    if (at == PAGEABLE) copy(stream, source, other);
    else mix(stream, "write", 1, source, NULL);
}

/* Whether it does something else than the case says. `writes`: the work in front of the copy writes its source;
 * otherwise the host changes the source after the call. */
static bool case_differs(const copy_case *c, bool writes) {
    open_machine("virtual:2", "manual");
    mr_observer observer = {.name = "test", .did = did, .ran = note_run};
    mr_stream *stream = c->synchronous ? device->legacy : free_stream();
    mr_tensor *to = tensor_at(c->to), *from = tensor_at(c->from), *other = tensor_at(DEVICE);
    fill(device->legacy, other, NEW);
    for (int d = 0; d < 2; d++) OK(mr_device_synchronize(&caller, machine->devices[d]));
    bool to_host = c->to == PAGEABLE;
    /* So that the work that writes a pageable source is pending, too. */
    set("pageable_d2h_async", !to_host || c->early);
    set("pageable_h2d_async", c->early);
    if (c->large) set("staging_bytes", (int64_t)sizeof(int32_t));
    OK(mr_observer_add(machine, &observer));

    work_ran = copy_ran = false;
    work_seq = machine->counts.next_seq;
    if (writes) write_source(stream, c->from, from, other);
    else OK(mr_spin(&caller, stream, 1000000));
    copy_seq = machine->counts.next_seq;
    OK(mr_memcpy(&caller, to, from, c->synchronous ? NULL : stream, c->synchronous));
    bool waits = writes ? c->waits_for_writer : c->waits_for_work;
    bool differs = work_ran != waits || copy_ran != c->is_done;

    int32_t wanted = FIRST;
    bool host_writes = !writes && c->from >= PINNED;
    if (host_writes) values(from)[0] = CHANGED;
    if (host_writes && c->reads_late) wanted = CHANGED;
    for (int d = 0; d < 2; d++) OK(mr_device_synchronize(&caller, machine->devices[d]));
    if (writes) wanted = values(from)[0];
    differs |= values(to)[0] != wanted || (writes && wanted == FIRST);
    mr_observer_remove(machine, &observer);
    assert_int_equal(teardown(NULL), 0);
    return differs;
}

static bool copies_differ(void) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int writes = 0; writes < 2; writes++)
            if (case_differs(&cases[i], writes)) return true;
    return false;
}

static void copies_wait_as_the_rules_say(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int writes = 0; writes < 2; writes++)
            if (case_differs(&cases[i], writes)) fail_msg("case %d, %d", (int)i, writes);
}

/* Turned round, a fact changes nothing for the reader where another one decides. */
enum {
    CLOSED = 1 << IS_OPEN,             /* there is no answer that it would ask for */
    DONE = CLOSED | 1 << AFTER_STREAM, /* the host waits for the copy anyway */
};

static void every_fact_counts(void **unused) {
    (void)unused;
    static const unsigned same[ORDER_COPIES] = {[COPY_D2D] = CLOSED,
                                                [COPY_PEER] = CLOSED,
                                                [COPY_H2H] = DONE,
                                                [COPY_TO_PINNED] = DONE,
                                                [COPY_TO_PINNED_ASYNC] = CLOSED,
                                                [COPY_TO_PAGEABLE] = DONE,
                                                [COPY_FROM_PINNED] = DONE,
                                                [COPY_FROM_PINNED_ASYNC] = CLOSED,
                                                [COPY_FROM_PAGEABLE] = CLOSED};
    assert_int_equal(order_copies_unnoticed(same, copies_differ), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_wait_as_the_rules_say),
                                       cmocka_unit_test(every_fact_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
