/* Random numbers by position: element i takes its bits from Philox block i/4 (or i/2 where it needs 64
 * of them) of the call's seed and offset, so every slicing and every backend gives the same ones. */
#include "ops/body.h"
#include "ops/expr.h"

#include "base/philox.h"

#include <stdlib.h>

/* [0, 1): as many bits as the type holds exactly. */
static inline float unit_f32(uint32_t bits) {
    return (float)(bits >> 8) * 0x1p-24f;
}

static inline double unit_f64(uint32_t low, uint32_t high) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

typedef struct {
    uint64_t seed, offset;
} key;

static key key_of(const mr_action *action) {
    return (key){action->u.op.params.seed, action->u.op.params.offset};
}

static inline mr_philox_block block_at(key k, int64_t counter) {
    return mr_philox(k.seed, k.offset, (uint64_t)counter);
}

static mr_dtype as_is(mr_dtype out) {
    return out;
}

static mr_dtype as_bool(mr_dtype out) {
    (void)out;
    return MR_BOOL;
}

static mr_dtype as_i64(mr_dtype out) {
    (void)out;
    return MR_I64;
}

/* Calls `make(counter, per-block values)` for each Philox block that a range touches and copies the part
 * that is in it; `per` values a block. */
#define FOR_BLOCKS(T, per, make)                                                                   \
    do {                                                                                           \
        T *out = block;                                                                            \
        for (int64_t i = first; i < first + n;) {                                                  \
            T v[per];                                                                              \
            mr_philox_block r = block_at(k, i / (per));                                            \
            make;                                                                                  \
            for (int64_t lane = i % (per); lane < (per) && i < first + n; lane++, i++)             \
                *out++ = v[lane];                                                                  \
        }                                                                                          \
    } while (0)

static void uniform(const mr_action *action, mr_dtype dtype, int64_t first, int64_t n, void *block) {
    key k = key_of(action);
    double low = action->u.op.params.scalar[0].f, width = action->u.op.params.scalar[1].f - low;
    if (dtype == MR_F32) {
        float l = (float)low, w = (float)width;
        FOR_BLOCKS(float, 4, for (int j = 0; j < 4; j++) v[j] = unit_f32(r.v[j]) * w + l);
    } else {
        FOR_BLOCKS(double, 2, for (int j = 0; j < 2; j++) v[j] = unit_f64(r.v[2 * j], r.v[2 * j + 1]) * width + low);
    }
}
const mr_generator mr_gen_uniform = {as_is, uniform};

/* Box-Muller: two uniform numbers give two normal ones. The first is taken from (0, 1], as its logarithm
 * is needed. */
static inline void normal_pair_f32(uint32_t a, uint32_t b, float *out) {
    float radius = mr_sqrt(-2.0f * mr_log(1.0f - unit_f32(a)));
    float angle = unit_f32(b) * 6.283185307179586f;
    out[0] = radius * mr_cos(angle);
    out[1] = radius * mr_sin(angle);
}

static void normal(const mr_action *action, mr_dtype dtype, int64_t first, int64_t n, void *block) {
    key k = key_of(action);
    double mean = action->u.op.params.scalar[0].f, deviation = action->u.op.params.scalar[1].f;
    if (dtype == MR_F32) {
        float m = (float)mean, s = (float)deviation;
        FOR_BLOCKS(float, 4, {
            normal_pair_f32(r.v[0], r.v[1], &v[0]);
            normal_pair_f32(r.v[2], r.v[3], &v[2]);
            for (int j = 0; j < 4; j++) v[j] = v[j] * s + m;
        });
    } else {
        FOR_BLOCKS(double, 2, {
            double radius = mr_sqrt(-2.0 * mr_log(1.0 - unit_f64(r.v[0], r.v[1])));
            double angle = unit_f64(r.v[2], r.v[3]) * 6.283185307179586477;
            v[0] = radius * mr_cos(angle) * deviation + mean;
            v[1] = radius * mr_sin(angle) * deviation + mean;
        });
    }
}
const mr_generator mr_gen_normal = {as_is, normal};

static void bernoulli(const mr_action *action, mr_dtype dtype, int64_t first, int64_t n, void *block) {
    (void)dtype;
    key k = key_of(action);
    double p = action->u.op.params.scalar[0].f;
    FOR_BLOCKS(uint8_t, 4, for (int j = 0; j < 4; j++) v[j] = (double)unit_f32(r.v[j]) < p);
}
const mr_generator mr_gen_bernoulli = {as_bool, bernoulli};

/* The high half of a 64 by 64 bit product maps 64 random bits to [0, range) with a bias below
 * range / 2^64. */
static void randint(const mr_action *action, mr_dtype dtype, int64_t first, int64_t n, void *block) {
    (void)dtype;
    key k = key_of(action);
    int64_t low = action->u.op.params.integer[0];
    uint64_t range = (uint64_t)action->u.op.params.integer[1] - (uint64_t)low;
    FOR_BLOCKS(int64_t, 2, for (int j = 0; j < 2; j++) {
        uint64_t bits = (uint64_t)r.v[2 * j + 1] << 32 | r.v[2 * j];
        v[j] = (int64_t)((uint64_t)low + (uint64_t)(((unsigned __int128)bits * range) >> 64));
    });
}
const mr_generator mr_gen_randint = {as_i64, randint};

/* ------------------------------------------------------------------------- randperm */

/* The order in which 64 random bits, then the position itself, sort the positions: one item, since a
 * sort has no independent parts. The state is room for two arrays of keys with positions. */
typedef struct {
    uint64_t key;
    int64_t value;
} ticket;

int64_t mr_randperm_items(const mr_action *action) {
    return action->operands[0].tensor->numel > 0;
}

mr_status mr_randperm_begin(const mr_action *action, void **out_state) {
    size_t n = (size_t)action->operands[0].tensor->numel;
    *out_state = n > SIZE_MAX / (2 * sizeof(ticket)) ? NULL : malloc(n ? 2 * n * sizeof(ticket) : 1);
    return *out_state ? MR_OK : mr_fail(MR_CODE_OUT_OF_MEMORY, "randperm: no host memory to sort %zu keys in", n);
}

/* Radix sort by bytes, least first; stable, so equal keys stay in order of position. */
static ticket *sort_tickets(ticket *from, ticket *to, int64_t n) {
    for (int shift = 0; shift < 64; shift += 8) {
        int64_t start[257] = {0};
        for (int64_t i = 0; i < n; i++) start[((from[i].key >> shift) & 255) + 1]++;
        for (int b = 0; b < 256; b++) start[b + 1] += start[b];
        for (int64_t i = 0; i < n; i++) to[start[(from[i].key >> shift) & 255]++] = from[i];
        ticket *sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

void mr_randperm_run(const mr_action *action, void *state, int64_t first, int64_t end) {
    if (first >= end) return;
    const mr_tensor *t = action->operands[0].tensor;
    int64_t n = t->numel;
    ticket *tickets = state;
    key k = key_of(action);
    for (int64_t i = 0; i < n; i++) {
        mr_philox_block r = block_at(k, i / 2);
        int half = (int)(i % 2) * 2;
        tickets[i] = (ticket){(uint64_t)r.v[half + 1] << 32 | r.v[half], i};
    }
    tickets = sort_tickets(tickets, tickets + n, n);
    mr_output out;
    mr_output_init(&out, t, MR_I64);
    for (int64_t i = 0; i < n; i += MR_BLOCK) {
        int64_t count = n - i < MR_BLOCK ? n - i : MR_BLOCK;
        int64_t *to = mr_output_begin(&out, i);
        for (int64_t j = 0; j < count; j++) to[j] = tickets[i + j].value + 1;
        mr_output_end(&out, i, count);
    }
}

void mr_randperm_finish(const mr_action *action, void *state) {
    (void)action;
    free(state);
}
