/* Random programs for the virtual GPU, and a picture of its state: what the tests of checkpoints and of the history of
 * steps share. Easiest to break: everything is drawn from `chance`, so that the same seed makes the same program. */
#ifndef MR_TESTS_VIRTUAL_PROGRAMS_H
#define MR_TESTS_VIRTUAL_PROGRAMS_H

#include "virtual_fixture.h"

static inline const mr_simulator *simulator(void) {
    return machine->backend->simulator;
}

/* ---- random programs */

static uint64_t state_of_chance;

static inline uint32_t chance(uint32_t below) {
    state_of_chance = state_of_chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state_of_chance >> 33) % below);
}

enum { STREAMS = 3, TENSORS = 8, EVENTS = 3 };
static mr_stream *streams[STREAMS];
static mr_tensor *tensors[TENSORS];
static mr_event *events[EVENTS];
static mr_tensor *pinned, *pageable;

static inline int64_t random_size(void) {
    static const int64_t sizes[] = {1, 3, 64, 1000, 1024, 5000, 40000};
    return sizes[chance(sizeof sizes / sizeof *sizes)];
}

static inline void make_objects(void) {
    for (int i = 0; i < STREAMS; i++) streams[i] = i ? free_stream() : blocking_stream();
    for (int i = 0; i < EVENTS; i++) events[i] = record(streams[i]);
    for (int i = 0; i < TENSORS; i++) {
        tensors[i] = tensor(streams[chance(STREAMS)], random_size());
        fill(tensors[i]->storage->stream, tensors[i], i);
    }
    pinned = tensor_of(MR_MEMORY_PINNED, NULL, 2000);
    pageable = tensor_of(MR_MEMORY_PAGEABLE, NULL, 2000);
    memset(values(pinned), 1, 8000);
    memset(values(pageable), 2, 8000);
    OK(mr_device_synchronize(&caller, device));
}

static inline mr_tensor *first_of(mr_tensor *t, int64_t count) {
    mr_tensor *view;
    OK(mr_tensor_narrow(&caller, t, 0, 0, count, 1, &view));
    assert_true(mr_vec_push(&made_tensors, view));
    return view;
}

/* Into the whole of a dense tensor from host memory, or back. */
static inline void copy_some(mr_stream *stream, mr_tensor *t, mr_tensor *host, bool to_host) {
    int64_t count = t->numel < host->numel ? t->numel : host->numel;
    mr_tensor *a = first_of(t, count), *b = first_of(host, count);
    if (to_host) copy(stream, b, a);
    else copy(stream, a, b);
}

/* An operation with scratch: half of it may be done at a checkpoint. */
static inline void sum(mr_stream *stream, mr_tensor *from) {
    mr_tensor *out;
    bool fresh;
    mr_call call = {.in = {{.tensor = from}}, .in_count = 1, .stream = stream};
    OK(mr_call_run(&caller, mr_op_find("sum"), &call, &out, &fresh));
    assert_true(fresh && mr_vec_push(&made_tensors, out));
}

static inline void submit_something(void) {
    mr_stream *s = streams[chance(STREAMS)];
    int i = (int)chance(TENSORS), j = (int)chance(TENSORS);
    switch (chance(11)) {
    case 0: fill(s, tensors[i], (int32_t)chance(1000)); break;
    case 1:
    case 2: mix(s, "mix", 0.01 * (1 + chance(40)), tensors[i], i == j ? NULL : tensors[j]); break;
    case 3: sum(s, tensors[i]); break;
    case 4: OK(mr_event_record(&caller, events[chance(EVENTS)], s)); break;
    case 5: OK(mr_stream_wait_event(&caller, s, events[chance(EVENTS)])); break;
    case 6: copy_some(s, tensors[i], pinned, false); break;
    case 7: copy_some(s, tensors[i], pinned, true); break;
    case 8: copy_some(s, tensors[i], pageable, false); break;
    case 9: /* memory comes and goes */
        drop(tensors[i]);
        tensors[i] = tensor(s, random_size());
        fill(s, tensors[i], (int32_t)chance(1000));
        break;
    case 10: OK(mr_stream_wait_stream(&caller, s, streams[chance(STREAMS)])); break;
    }
}

/* ---- what there is to see */

static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

static inline void hash_pending(void *context, const mr_pending *one) {
    uint64_t *hash = context;
    uint64_t seq[2] = {one->command->seq, one->waits_for ? one->waits_for->seq : 0};
    bool flags[2] = {one->running, one->ready};
    *hash = hash_bytes(hash_bytes(*hash, seq, sizeof seq), flags, sizeof flags);
}

static inline uint64_t hash_values(uint64_t hash) {
    for (size_t i = 0; i < made_tensors.count; i++)
        hash = hash_bytes(hash, values(made_tensors.items[i]),
                          (size_t)made_tensors.items[i]->numel * sizeof(int32_t));
    return hash;
}

static inline uint64_t picture(void) {
    uint64_t hash = 0xcbf29ce484222325u;
    simulator()->pending(machine, hash_pending, &hash); /* first: it lets go what is over by now */
    uint64_t times[] = {mr_machine_time(machine), simulator()->device_time(machine),
                        machine->backend->memory_reserved(device)};
    return hash_bytes(hash_values(hash), times, sizeof times);
}

static const char *const choosers[] = {"timed", "adversarial", "manual", "random:7"};
enum { CHOOSERS = sizeof choosers / sizeof *choosers };

#endif
