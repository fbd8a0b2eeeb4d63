/* Times of launches by their own counts: see kernel_time.h. */
#include "ops/kernel_time.h"

#include <stdlib.h>

#include "model/device.h"
#include "model/stream.h"
#include "ops/kernel_profile.h"

#define ENOUGH_THREADS ((uint64_t)1 << 16)

static mr_kernel_timing *timing_of(const mr_kernel_arguments *a) {
    return mr_kernel_code_timing(a->code, a->kernel);
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

/* A hash of everything that the time depends on, except the contents of memory; never 0. */
static uint64_t key_of(const mr_command *command, const mr_kernel_arguments *a) {
    const mr_device_properties *p = &command->stream->device->properties;
    uint64_t hash = 0xcbf29ce484222325u;
    hash = mix(hash, a->grid, sizeof a->grid);
    hash = mix(hash, a->block, sizeof a->block);
    hash = mix(hash, &a->shared, sizeof a->shared);
    hash = mix(hash, &a->cooperative, sizeof a->cooperative);
    hash = mix(hash, &a->bytes, sizeof a->bytes);
    hash = mix(hash, mr_kernel_params_of(a), a->kernel->param_bytes);
    hash = mix(hash, &p->sm_count, sizeof p->sm_count);
    hash = mix(hash, &p->clock_hz, sizeof p->clock_hz);
    hash = mix(hash, &p->memory_bandwidth, sizeof p->memory_bandwidth);
    return hash ? hash : 1;
}

/* The place of the key, or where it would be. */
static uint32_t place_of(const mr_kernel_timing *t, uint64_t key) {
    uint32_t at = (uint32_t)key % KERNEL_TIMES;
    while (t->known[at].key && t->known[at].key != key) at = (at + 1) % KERNEL_TIMES;
    return at;
}

static const double *find(const mr_kernel_timing *t, uint64_t key) {
    if (!t->known) return NULL;
    uint32_t at = place_of(t, key);
    return t->known[at].key ? &t->known[at].ns : NULL;
}

/* A table that is never quite full, so that a search ends. */
static bool has_place(mr_kernel_timing *t) {
    if (!t->known) t->known = calloc(KERNEL_TIMES, sizeof *t->known);
    return t->known && t->count < KERNEL_TIMES - KERNEL_TIMES / 4;
}

static void keep(mr_kernel_timing *t, uint64_t key, double ns) {
    uint32_t at = place_of(t, key);
    t->known[at].key = key;
    t->known[at].ns = ns;
    t->count++;
}

static uint64_t threads_of(const mr_kernel_arguments *a) {
    return (uint64_t)a->block[0] * a->block[1] * a->block[2];
}

/* For the sample at hand. False: the launch has none, or enough. */
static bool is_sampled(const mr_command *command, mr_kernel_timing *t, uint64_t key,
                       uint64_t *out_counted) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    if (command->machine->bodies.replayed || find(t, key) || (t->sample && t->sampled != key) ||
        !has_place(t))
        return false;
    *out_counted = t->sample ? mr_ptx_profile_blocks(t->sample) * threads_of(a) : 0;
    return *out_counted < ENOUGH_THREADS;
}

bool mr_kernel_time_samples(const mr_command *command) {
    uint64_t counted;
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    return is_sampled(command, timing_of(a), key_of(command, a), &counted);
}

mr_ptx_profile *mr_kernel_time_begin(const mr_command *command, int64_t first, int64_t *io_end) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    mr_kernel_timing *t = timing_of(a);
    uint64_t key = key_of(command, a), counted;
    if (!is_sampled(command, t, key, &counted)) return NULL;
    uint64_t blocks = (ENOUGH_THREADS - counted + threads_of(a) - 1) / threads_of(a);
    /* The blocks of a cooperative launch wait for each other, so they stay together. */
    if (!a->cooperative && (uint64_t)(*io_end - first) > blocks) *io_end = first + (int64_t)blocks;
    if (!t->sample) t->sample = mr_ptx_profile_create(a->code->ptx);
    t->sampled = key;
    return t->sample ? mr_ptx_profile_create(a->code->ptx) : NULL;
}

void mr_kernel_time_end(const mr_command *command, mr_ptx_profile *counts, mr_ptx_profile *too) {
    mr_kernel_timing *t = timing_of(mr_kernel_arguments_of(command));
    if (t->sample) mr_ptx_profile_add(t->sample, counts);
    if (too) mr_ptx_profile_add(too, counts);
    mr_ptx_profile_destroy(counts);
}

/* By the counts of the sample, which is then over. */
static double sampled_ns(const mr_command *command, const mr_kernel_arguments *a,
                         mr_kernel_timing *t) {
    mr_kernel_count count = {.profile = t->sample,
                             .launched = mr_kernel_blocks(a),
                             .launches = 1,
                             .bytes = a->bytes,
                             .threads = (uint32_t)threads_of(a),
                             .shared = a->shared};
    mr_kernel_times times;
    bool ok = mr_kernel_times_of(command->stream->device, a->kernel, &count, count.threads,
                                 count.shared, &times);
    mr_ptx_profile_destroy(t->sample);
    t->sample = NULL;
    return ok ? times.total * 1e9 : 0;
}

double mr_kernel_time_ns(const mr_command *command) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    mr_kernel_timing *t = timing_of(a);
    uint64_t key = key_of(command, a);
    const double *known = find(t, key);
    if (known) return *known;
    if (command->machine->bodies.replayed || !t->sample || t->sampled != key ||
        !mr_ptx_profile_blocks(t->sample))
        return 0;
    double ns = sampled_ns(command, a, t);
    keep(t, key, ns);
    return ns;
}
