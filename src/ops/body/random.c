/* Random numbers by position: element i takes its bits from block i/4 of Philox, with the call's
 * seed and offset. Where it needs 64 bits it is block i/2, and for 128 bits block i. So every
 * slicing and every backend gives the same numbers. */
#include "ops/body.h"
#include "ops/expr.h"

#include "base/half.h"
#include "base/philox.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* [0, 1): as many bits as the type holds exactly. */
static inline float unit_f32(uint32_t bits) {
    return (float)(bits >> 8) * 0x1p-24f;
}

/* The 53 highest bits as a fraction; in two parts, as few processors make vectors of doubles from 64-bit integers. */
static inline double unit_f64(uint32_t low, uint32_t high) {
    return (double)high * 0x1p-32 + (double)(low >> 11) * 0x1p-53;
}

typedef struct {
    uint64_t seed, offset;
} key;

static key key_of(const mr_command *command) {
    mr_random_params random = mr_params_of(command).random;
    return (key){random.seed, random.offset};
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

/* ------------------------------------------------------------------------- many blocks */

enum { BLOCKS = 64 };

/* The four words of blocks counter, counter + 1, ...: mr_philox written so that the blocks are lanes. */
typedef struct {
    uint32_t word[4][BLOCKS];
} block_run;

MR_CLONES static void philox_run(key k, int64_t counter, block_run *out) {
    uint32_t k0 = (uint32_t)k.seed, k1 = (uint32_t)(k.seed >> 32);
    for (int j = 0; j < BLOCKS; j++) {
        uint64_t c = (uint64_t)counter + (uint64_t)j;
        out->word[0][j] = (uint32_t)c;
        out->word[1][j] = (uint32_t)(c >> 32);
        out->word[2][j] = (uint32_t)k.offset;
        out->word[3][j] = (uint32_t)(k.offset >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int j = 0; j < BLOCKS; j++) {
            uint64_t a = (uint64_t)out->word[0][j] * 0xd2511f53u,
                     b = (uint64_t)out->word[2][j] * 0xcd9e8d57u;
            uint32_t w1 = out->word[1][j], w3 = out->word[3][j];
            out->word[0][j] = (uint32_t)(b >> 32) ^ w1 ^ k0;
            out->word[1][j] = (uint32_t)b;
            out->word[2][j] = (uint32_t)(a >> 32) ^ w3 ^ k1;
            out->word[3][j] = (uint32_t)a;
        }
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
}

/* Calls `make(run, context, values)` for runs of blocks, which give `per` values each, and copies those of
 * positions [first, first + n) to `out`. Whole runs are made, whatever part of them is wanted. */
typedef void (*run_maker)(const block_run *run, const mr_random_params *params, void *values);

static void for_runs(const mr_command *command, int per, size_t size, run_maker make, int64_t first,
                     int64_t n, void *out) {
    union {
        char bytes[BLOCKS * 4 * 8];
        double aligned_;
    } values;
    block_run run;
    int64_t per_run = (int64_t)per * BLOCKS;
    mr_random_params random = mr_params_of(command).random;
    char *to = out;
    for (int64_t i = first; i < first + n;) {
        int64_t at = i % per_run, count = per_run - at;
        if (count > first + n - i) count = first + n - i;
        philox_run(key_of(command), i / per_run * BLOCKS, &run);
        make(&run, &random, values.bytes);
        memcpy(to, values.bytes + (size_t)at * size, (size_t)count * size);
        to += (size_t)count * size;
        i += count;
    }
}

/* ------------------------------------------------------------------------- the distributions */

/* Rounding may give `high`, which is outside the range: it becomes `low`. Both are the ends of the same number of
 * roundings, so all numbers between stay equally probable. */
MR_CLONES static void uniform_f32(const block_run *run, const mr_random_params *params,
                                  void *values) {
    float *v = values, low = (float)params->uniform.low, high = (float)params->uniform.high,
          width = high - low;
    for (int j = 0; j < BLOCKS; j++) {
        for (int w = 0; w < 4; w++) {
            float x = unit_f32(run->word[w][j]) * width + low;
            v[4 * j + w] = x < high ? x : low;
        }
    }
}

MR_CLONES static void uniform_f64(const block_run *run, const mr_random_params *params,
                                  void *values) {
    double *v = values, low = params->uniform.low, high = params->uniform.high, width = high - low;
    for (int j = 0; j < BLOCKS; j++) {
        for (int w = 0; w < 2; w++) {
            double x = unit_f64(run->word[2 * w][j], run->word[2 * w + 1][j]) * width + low;
            v[2 * j + w] = x < high ? x : low;
        }
    }
}

/* Halves are rounded from f32, and the bound is looked at after that. So much is rounded up to it that it cannot become
 * `low`, which would be too frequent: it becomes the number below the bound. */
#define UNIFORM_HALF(tag)                                                                          \
    MR_CLONES static void uniform_##tag(const block_run *run, const mr_random_params *params,      \
                                        void *values) {                                            \
        uint16_t *v = values;                                                                      \
        float low = (float)params->uniform.low, high = (float)params->uniform.high,                \
              width = high - low;                                                                  \
        uint16_t most = mr_half_below(mr_##tag##_from_f32(high));                                  \
        for (int j = 0; j < BLOCKS; j++) {                                                         \
            for (int w = 0; w < 4; w++) {                                                          \
                uint16_t x = mr_##tag##_from_f32(unit_f32(run->word[w][j]) * width + low);         \
                v[4 * j + w] = mr_f32_from_##tag(x) < high ? x : most;                             \
            }                                                                                      \
        }                                                                                          \
    }
UNIFORM_HALF(f16)
UNIFORM_HALF(bf16)

static void uniform(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n,
                    void *block) {
    switch (dtype) {
    case MR_F16: for_runs(command, 4, sizeof(uint16_t), uniform_f16, first, n, block); break;
    case MR_BF16: for_runs(command, 4, sizeof(uint16_t), uniform_bf16, first, n, block); break;
    case MR_F32: for_runs(command, 4, sizeof(float), uniform_f32, first, n, block); break;
    default: for_runs(command, 2, sizeof(double), uniform_f64, first, n, block); break;
    }
}

/* The least number of the type that is not below x. */
static double not_below(mr_dtype dtype, double x) {
    uint64_t bits = 0;
    mr_dtype_store(dtype, &bits, (mr_scalar){.f = x});
    double nearest = mr_dtype_load(dtype, &bits).f;
    if (nearest >= x) return nearest;
    /* The next pattern is that of the next number away from 0; 0 itself is below x only if x is positive. */
    bits = nearest < 0 ? bits - 1 : nearest > 0 ? bits + 1 : 1;
    return mr_dtype_load(dtype, &bits).f;
}

static bool holds(mr_dtype dtype, double x) {
    return fabs(x) <= mr_dtype_greatest(dtype); /* also false for NaN */
}

/* Both bounds become numbers of the type, such that the same numbers of the type lie between them. */
static mr_status prepare_uniform(const char *name, mr_dtype out, const mr_scalar numbers[2],
                                 mr_params *params) {
    double low = numbers[0].f, high = numbers[1].f;
    if (!(low < high))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: the range from %.17g up to, but not including, %.17g has no numbers",
                       name, low, high);
    if (!holds(out, low) || !holds(out, high) || !holds(out, high - low))
        return mr_fail(
            MR_CODE_INVALID_ARGUMENT,
            "%s: the range from %g to %g is too large for %s, whose largest number is %g", name,
            low, high, mr_dtype_text(out), mr_dtype_greatest(out));
    double first = not_below(out, low), end = not_below(out, high);
    if (!(first < end))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: there is no %s number from %.17g up to, but not including, %.17g; "
                       "convert with x:to(\"f64\")",
                       name, mr_dtype_text(out), low, high);
    params->random.uniform.low = first;
    params->random.uniform.high = end;
    return MR_OK;
}

static void uniform_constants(const mr_params *params, const mr_tensor *out, mr_constants *c) {
    (void)out;
    c->real[0] = params->random.uniform.low;
    c->real[1] = params->random.uniform.high;
}
const mr_generator mr_gen_uniform = {
    .computed = as_is, .fill = uniform, .prepare = prepare_uniform, .constants = uniform_constants};

MR_CLONES static void normal_f32(const block_run *run, const mr_random_params *params,
                                 void *values) {
    float *v = values, mean = (float)params->normal.mean,
          deviation = (float)params->normal.deviation;
    float even[BLOCKS], odd[BLOCKS];
    for (int w = 0; w < 4; w += 2) {
        for (int j = 0; j < BLOCKS; j++) {
            float radius = mr_sqrt(mr_normal_square(run->word[w][j])) * deviation;
            mr_direction d = mr_normal_direction(run->word[w + 1][j]);
            even[j] = fmaf(radius, d.cosine, mean);
            odd[j] = fmaf(radius, d.sine, mean);
        }
        for (int j = 0; j < BLOCKS; j++) {
            v[4 * j + w] = even[j];
            v[4 * j + w + 1] = odd[j];
        }
    }
}

/* Box-Muller as it is written in books: of two uniform numbers the first is taken from (0, 1], as its logarithm is
 * needed. */
MR_CLONES static void normal_f64(const block_run *run, const mr_random_params *params,
                                 void *values) {
    double *v = values, mean = params->normal.mean, deviation = params->normal.deviation;
    double u[BLOCKS], angle[BLOCKS];
    for (int j = 0; j < BLOCKS; j++) {
        u[j] = 1.0 - unit_f64(run->word[0][j], run->word[1][j]);
        angle[j] = unit_f64(run->word[2][j], run->word[3][j]) * 6.283185307179586477;
    }
    for (int j = 0; j < BLOCKS; j++) {
        double radius = mr_sqrt(-2.0 * mr_log(u[j])) * deviation;
        v[2 * j] = radius * mr_cos_near(angle[j]) + mean;
        v[2 * j + 1] = radius * mr_sin_near(angle[j]) + mean;
    }
}

/* f16 and bf16: as f32, then rounded. */
static mr_dtype as_computed(mr_dtype out) {
    return mr_dtype_computed(out);
}

static void normal(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n,
                   void *block) {
    if (dtype == MR_F32) for_runs(command, 4, sizeof(float), normal_f32, first, n, block);
    else for_runs(command, 2, sizeof(double), normal_f64, first, n, block);
}

static mr_status prepare_normal(const char *name, mr_dtype out, const mr_scalar numbers[2],
                                mr_params *params) {
    double mean = numbers[0].f, deviation = numbers[1].f;
    if (!holds(out, mean))
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: the mean is %g, expected a finite %s number",
                       name, mean, mr_dtype_text(out));
    if (!(deviation >= 0) || !holds(out, deviation))
        return mr_fail(
            MR_CODE_INVALID_ARGUMENT,
            "%s: the standard deviation is %g, expected 0 or more, and a finite %s number", name,
            deviation, mr_dtype_text(out));
    params->random.normal.mean = mean;
    params->random.normal.deviation = deviation;
    return MR_OK;
}

static void normal_constants(const mr_params *params, const mr_tensor *out, mr_constants *c) {
    (void)out;
    c->real[0] = params->random.normal.mean;
    c->real[1] = params->random.normal.deviation;
}
const mr_generator mr_gen_normal = {.computed = as_computed,
                                    .fill = normal,
                                    .prepare = prepare_normal,
                                    .constants = normal_constants};

static void bernoulli_run(const block_run *run, const mr_random_params *params, void *values) {
    uint8_t *v = values;
    uint64_t bound = (uint64_t)params->bernoulli.ones;
    for (int j = 0; j < BLOCKS; j++)
        for (int w = 0; w < 4; w++) v[4 * j + w] = run->word[w][j] < bound;
}

static void bernoulli(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n,
                      void *block) {
    (void)dtype;
    for_runs(command, 4, 1, bernoulli_run, first, n, block);
}

/* As many of the 2^32 words give a 1 as is nearest to the probability. */
static mr_status prepare_bernoulli(const char *name, mr_dtype out, const mr_scalar numbers[2],
                                   mr_params *params) {
    (void)out;
    double p = numbers[0].f;
    if (!(p >= 0 && p <= 1))
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: the probability is %g, expected 0 to 1", name,
                       p);
    params->random.bernoulli.probability = p;
    params->random.bernoulli.ones = (int64_t)(p * 0x1p32 + 0.5);
    return MR_OK;
}

static void bernoulli_constants(const mr_params *params, const mr_tensor *out, mr_constants *c) {
    (void)out;
    c->integer[0] = params->random.bernoulli.ones;
}
const mr_generator mr_gen_bernoulli = {.computed = as_bool,
                                       .fill = bernoulli,
                                       .prepare = prepare_bernoulli,
                                       .constants = bernoulli_constants};

/* The high half of a 64 by 64 bit product maps 64 random bits to [0, range). The probabilities of two numbers differ by
 * a factor of less than 1 + range / 2^64. For ranges above 2^32 they are made of 128 bits: 1 + range / 2^128. */
static bool is_wide(const mr_random_params *params) {
    return (uint64_t)params->randint.high - (uint64_t)params->randint.low > UINT32_MAX;
}

static void randint_wide_run(const block_run *run, const mr_random_params *params, void *values) {
    int64_t *v = values;
    uint64_t low = (uint64_t)params->randint.low, range = (uint64_t)params->randint.high - low;
    for (int j = 0; j < BLOCKS; j++) {
        uint64_t fine = (uint64_t)run->word[1][j] << 32 | run->word[0][j];
        uint64_t coarse = (uint64_t)run->word[3][j] << 32 | run->word[2][j];
        unsigned __int128 carry = ((unsigned __int128)fine * range) >> 64;
        v[j] = (int64_t)(low + (uint64_t)(((unsigned __int128)coarse * range + carry) >> 64));
    }
}

static void randint_run(const block_run *run, const mr_random_params *params, void *values) {
    int64_t *v = values;
    uint64_t low = (uint64_t)params->randint.low, range = (uint64_t)params->randint.high - low;
    for (int j = 0; j < BLOCKS; j++) {
        for (int w = 0; w < 2; w++) {
            uint64_t bits = (uint64_t)run->word[2 * w + 1][j] << 32 | run->word[2 * w][j];
            v[2 * j + w] = (int64_t)(low + (uint64_t)(((unsigned __int128)bits * range) >> 64));
        }
    }
}

static void randint(const mr_command *command, mr_dtype dtype, int64_t first, int64_t n,
                    void *block) {
    (void)dtype;
    mr_random_params random = mr_params_of(command).random;
    bool wide = is_wide(&random);
    for_runs(command, wide ? 1 : 2, sizeof(int64_t), wide ? randint_wide_run : randint_run, first,
             n, block);
}

/* A u8 would keep 44 of 300. bool takes 0 and 1, floats what is finite in them. */
static mr_status prepare_randint(const char *name, mr_dtype out, const mr_scalar numbers[2],
                                 mr_params *params) {
    int64_t low = numbers[0].i, last = numbers[1].i - 1;
    params->random.randint.low = low;
    params->random.randint.high = numbers[1].i;
    bool finite =
        mr_dtype_category(out) < 2 || (holds(out, (double)low) && holds(out, (double)last));
    if (finite && mr_dtype_holds(out, low) && mr_dtype_holds(out, last)) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: %s cannot hold the integers from %" PRId64 " to %" PRId64, name,
                   mr_dtype_text(out), low, last);
}

static void randint_constants(const mr_params *params, const mr_tensor *out, mr_constants *c) {
    (void)out;
    c->integer[0] = params->random.randint.low;
    c->integer[1] = params->random.randint.high;
}
const mr_generator mr_gen_randint = {.computed = as_i64,
                                     .fill = randint,
                                     .prepare = prepare_randint,
                                     .constants = randint_constants};

/* ------------------------------------------------------------------------- randperm */

/* The order in which 64 random bits, then the position itself, sort the positions: one item, since a
 * sort has no independent parts. The state is two arrays of keys with positions. Nothing of it is kept from one call
 * to the next. */
typedef struct {
    uint64_t key;
    int64_t value;
} ticket;

int64_t mr_randperm_items(const mr_command *command) {
    return command->operands[0].tensor->numel > 0;
}

int64_t mr_randperm_state_bytes(const mr_command *command) {
    int64_t n = command->operands[0].tensor->numel, each = 2 * (int64_t)sizeof(ticket);
    return n > INT64_MAX / each ? INT64_MAX : n * each;
}

enum { DIGIT = 11, MOST_DIGITS = 3 };

static int digit_of(uint64_t bits, int digit) {
    return (int)(bits >> (64 - DIGIT * (digit + 1)) & ((1 << DIGIT) - 1));
}

/* By the leading digits of the key, the last of them first, each pass keeping the order of the one before. */
static ticket *sort_by_digits(ticket *from, ticket *to, int64_t n, int digits) {
    for (int digit = digits; digit-- > 0;) {
        int64_t start[(1 << DIGIT) + 1] = {0};
        for (int64_t i = 0; i < n; i++) start[digit_of(from[i].key, digit) + 1]++;
        for (int d = 0; d < 1 << DIGIT; d++) start[d + 1] += start[d];
        for (int64_t i = 0; i < n; i++) to[start[digit_of(from[i].key, digit)]++] = from[i];
        ticket *sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

/* Random keys that agree in a few more bits than n has are few, so insertion does the rest. Equal keys stay in order of
 * position. */
static ticket *sort_tickets(ticket *from, ticket *to, int64_t n) {
    int digits = 1;
    while (digits < MOST_DIGITS && n >> (DIGIT * digits - 2)) digits++;
    from = sort_by_digits(from, to, n, digits);
    for (int64_t i = 1; i < n; i++) {
        ticket t = from[i];
        int64_t j = i;
        for (; j > 0 && from[j - 1].key > t.key; j--) from[j] = from[j - 1];
        from[j] = t;
    }
    return from;
}

static void draw_tickets(key k, int64_t n, ticket *tickets) {
    block_run run;
    for (int64_t i = 0; i < n; i++) {
        int64_t block = i / 2 % BLOCKS;
        int half = (int)(i % 2) * 2;
        if (i % (2 * BLOCKS) == 0) philox_run(k, i / 2, &run);
        tickets[i] = (ticket){(uint64_t)run.word[half + 1][block] << 32 | run.word[half][block], i};
    }
}

mr_status mr_randperm_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    if (first >= end) return MR_OK;
    const mr_tensor *t = command->operands[0].tensor;
    int64_t n = t->numel;
    ticket *tickets = state;
    draw_tickets(key_of(command), n, tickets);
    tickets = sort_tickets(tickets, tickets + n, n);
    mr_output out;
    mr_output_init(&out, t, MR_I64);
    for (int64_t i = 0; i < n; i += MR_BLOCK) {
        int64_t count = n - i < MR_BLOCK ? n - i : MR_BLOCK;
        int64_t *to = mr_output_begin(&out, i);
        for (int64_t j = 0; j < count; j++) to[j] = tickets[i + j].value + 1;
        mr_output_end(&out, i, count);
    }
    return MR_OK;
}
