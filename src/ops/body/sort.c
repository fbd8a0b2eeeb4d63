/* The bodies of sort, argsort and topk. An item is a line along the dim. It sorts keys with their
 * positions: numbers whose unsigned order is that of the elements; equal keys stay in order of
 * position. NaN is greater than all others, and -0 is 0, so that it may stand on either side of
 * it.
 *
 * Short lines are sorted by insertion, few of many by insertion into the few best so far, all others by their digits.
 * Those are digits of the distance from the least key: numbers near each other have few, however many bits their type
 * has. */
#include "ops/body.h"
#include "ops/line.h"
#include "ops/sort.h"

#include "base/bits.h"

#include <stdlib.h>
#include <string.h>

/* Wide digits need fewer passes, but each pass over their counts takes as long as one over so many keys. */
enum { FEW = 64, WIDE_DIGIT = 10, NARROW_DIGIT = 8, LONG_LINE = 1 << 13 };

static int bits_of(uint64_t most) {
    return most ? 64 - __builtin_clzll(most) : 0;
}

/* How many bits a digit has, such that all have about as many. */
static int digit_bits(int64_t n, int bits) {
    int most = n < LONG_LINE ? NARROW_DIGIT : WIDE_DIGIT, digits = (bits + most - 1) / most;
    return (bits + digits - 1) / digits;
}

/* ------------------------------------------------------------------------- keys */

static inline uint32_t key_f32(float v) {
    uint32_t bits = v == 0 ? 0 : mr_bits_f32(v);
    return v != v ? UINT32_MAX : bits >> 31 ? ~bits : bits | 0x80000000u;
}
static inline uint64_t key_f64(double v) {
    uint64_t bits = v == 0 ? 0 : mr_bits_f64(v);
    return v != v ? UINT64_MAX : bits >> 63 ? ~bits : bits | 0x8000000000000000u;
}

/* `infinite`: the bits of infinity, above which are those of NaN. */
static inline uint32_t key_half(uint32_t bits, uint32_t infinite) {
    uint32_t size = bits & 0x7fff;
    if (size == 0) bits = 0;
    return size > infinite ? 0xffff : bits >> 15 ? ~bits & 0xffff : bits | 0x8000;
}

typedef struct {
    uint32_t key, at;
} narrow;
typedef struct {
    uint64_t key, at;
} wide;

/* ------------------------------------------------------------------------- sorting pairs */

/* FEW_OF: of all keys that `key` gives one after the other, the `taken` first in order go to `to`.
 * SORT: all of them, in `from`, with `to` as working memory; returns where they are then. */
#define SORTING(P, K)                                                                              \
    static void insert_##P(P *to, int64_t *io_count, int64_t most, P new) {                        \
        int64_t i = *io_count;                                                                     \
        if (i == most) {                                                                           \
            if (new.key >= to[i - 1].key) return;                                                  \
            i--;                                                                                   \
        } else {                                                                                   \
            ++*io_count;                                                                           \
        }                                                                                          \
        for (; i > 0 && new.key < to[i - 1].key; i--) to[i] = to[i - 1];                           \
        to[i] = new;                                                                               \
    }                                                                                              \
    static P *sort_##P(P *from, P *to, int64_t n, int bits) {                                      \
        int digit = bits > 0 ? digit_bits(n, bits) : 0;                                            \
        K mask = (K)(((K)1 << digit) - 1);                                                         \
        for (int shift = 0; shift < bits; shift += digit) {                                        \
            int64_t start[(1 << WIDE_DIGIT) + 1];                                                  \
            memset(start, 0, (((size_t)1 << digit) + 1) * sizeof *start);                          \
            for (int64_t i = 0; i < n; i++) start[((from[i].key >> shift) & mask) + 1]++;          \
            if (start[((from[0].key >> shift) & mask) + 1] == n) continue; /* all are the same */  \
            for (int b = 0; b < 1 << digit; b++) start[b + 1] += start[b];                         \
            for (int64_t i = 0; i < n; i++) to[start[(from[i].key >> shift) & mask]++] = from[i];  \
            P *sorted = to;                                                                        \
            to = from;                                                                             \
            from = sorted;                                                                         \
        }                                                                                          \
        return from;                                                                               \
    }
SORTING(narrow, uint32_t)
SORTING(wide, uint64_t)

/* ------------------------------------------------------------------------- a line */

typedef struct {
    mr_sorting s;
    mr_lines lines; /* of the input */
    mr_line_strides in, values, order;
    bool is_wide; /* which kind of pair keys and positions fit */
    int bits;     /* of a key */
} plan;

/* The least key of a line, and the bits of the others' distances from it. */
typedef struct {
    uint64_t least;
    int bits;
} spread;

mr_sorting mr_sorting_of(const mr_command *command) {
    bool three = command->operand_count > 2;
    const mr_operand *operand = command->operands;
    mr_sort_params sort = mr_params_of(command).sort;
    const mr_tensor *order = operand[three ? 1 : 0].tensor;
    return (mr_sorting){.values = three ? operand[0].tensor : NULL,
                        .order = order,
                        .in = operand[three ? 2 : 1].tensor,
                        .dim = sort.dim,
                        .taken = order->ndim > 0 ? order->shape[sort.dim] : 1,
                        .descending = sort.descending};
}

int mr_sort_key_bits(mr_dtype dtype) {
    return (int)mr_dtype_size(dtype) * 8;
}

static void make_plan(const mr_command *command, plan *p) {
    p->s = mr_sorting_of(command);
    mr_dtype dtype = (mr_dtype)p->s.in->dtype;
    p->lines = mr_lines_of(p->s.in, p->s.dim);
    p->in = mr_line_strides_of(p->s.in, p->s.dim);
    p->order = mr_line_strides_of(p->s.order, p->s.dim);
    if (p->s.values) p->values = mr_line_strides_of(p->s.values, p->s.dim);
    p->bits = mr_sort_key_bits(dtype);
    p->is_wide = p->bits > 32 || p->lines.length > UINT32_MAX;
}

/* Keys of n elements of a line from element i on; all are below 2^bits. */
static void load_keys(const plan *p, const char *line, int64_t i, int64_t n, uint64_t *keys) {
    const mr_tensor *in = p->s.in;
    mr_dtype dtype = (mr_dtype)in->dtype;
    mr_block block;
    mr_gather(line, mr_dtype_size(dtype), 1, &p->lines.length, &p->in.step, i, n, &block);
    switch (dtype) {
#define EACH(T, expression)                                                                        \
    for (int64_t j = 0; j < n; j++) {                                                              \
        T v = ((const T *)&block)[j];                                                              \
        keys[j] = (expression);                                                                    \
    }                                                                                              \
    break
    case MR_BOOL: EACH(uint8_t, v != 0);
    case MR_U8: EACH(uint8_t, v);
    case MR_I32: EACH(int32_t, (uint32_t)v ^ 0x80000000u);
    case MR_I64: EACH(int64_t, (uint64_t)v ^ 0x8000000000000000u);
    case MR_F32: EACH(float, key_f32(v));
    case MR_F64: EACH(double, key_f64(v));
    case MR_F16: EACH(uint16_t, key_half(v, 0x7c00));
    case MR_BF16: EACH(uint16_t, key_half(v, 0x7f80));
#undef EACH
    default: break;
    }
    uint64_t mask = p->bits < 64 ? ((uint64_t)1 << p->bits) - 1 : UINT64_MAX;
    for (int64_t j = 0; j < n && p->s.descending; j++) keys[j] = ~keys[j] & mask;
}

static spread spread_of(const plan *p, const char *line) {
    uint64_t least = UINT64_MAX, most = 0, keys[MR_BLOCK];
    for (int64_t i = 0; i < p->lines.length; i += MR_BLOCK) {
        int64_t n = p->lines.length - i < MR_BLOCK ? p->lines.length - i : MR_BLOCK;
        load_keys(p, line, i, n, keys);
        for (int64_t j = 0; j < n; j++) {
            least = keys[j] < least ? keys[j] : least;
            most = keys[j] > most ? keys[j] : most;
        }
    }
    return (spread){least, bits_of(most - least)};
}

/* The destination of a line's results, and their source. */
typedef struct {
    int64_t *order;
    char *values; /* NULL: not wanted */
    const char *from;
    int64_t order_step, values_step, from_step; /* in elements */
} targets;

static targets targets_of(const plan *p, int64_t line) {
    const mr_tensor *in = p->s.in, *values = p->s.values;
    int64_t size = (int64_t)mr_dtype_size((mr_dtype)in->dtype);
    targets r = {.order = mr_tensor_data(p->s.order),
                 .from = mr_tensor_data(in),
                 .order_step = p->order.step,
                 .values_step = p->values.step,
                 .from_step = p->in.step};
    r.order += mr_line_offset(&p->lines, &p->order, line);
    r.from += mr_line_offset(&p->lines, &p->in, line) * size;
    if (values)
        r.values =
            (char *)mr_tensor_data(values) + mr_line_offset(&p->lines, &p->values, line) * size;
    return r;
}

#define TAKE(T)                                                                                    \
    for (int64_t i = 0; i < taken; i++)                                                            \
    ((T *)r->values)[i * r->values_step] = ((const T *)r->from)[(int64_t)pairs[i].at * r->from_step]

/* A line through the kind of pair that its keys fit. If the line is written meanwhile, a distance may have more bits;
 * these are ignored, and the order is arbitrary. */
#define ORDER(P, K)                                                                                \
    static void order_##P(const plan *p, spread keys_of, const targets *r, P *pairs) {             \
        int64_t length = p->lines.length, taken = p->s.taken, count = 0;                           \
        bool few = taken <= FEW;                                                                   \
        uint64_t keys[MR_BLOCK];                                                                   \
        for (int64_t i = 0; i < length; i += MR_BLOCK) {                                           \
            int64_t n = length - i < MR_BLOCK ? length - i : MR_BLOCK;                             \
            load_keys(p, r->from, i, n, keys);                                                     \
            for (int64_t j = 0; j < n; j++) {                                                      \
                P new = {(K)(keys[j] - keys_of.least), (K)(i + j)};                                \
                if (few) insert_##P(pairs, &count, taken, new);                                    \
                else pairs[i + j] = new;                                                           \
            }                                                                                      \
        }                                                                                          \
        if (!few) pairs = sort_##P(pairs, pairs + length, length, keys_of.bits);                   \
        for (int64_t i = 0; i < taken; i++)                                                        \
            r->order[i * r->order_step] = (int64_t)pairs[i].at + 1;                                \
        if (!r->values) return;                                                                    \
        switch (mr_dtype_size((mr_dtype)p->s.in->dtype)) {                                         \
        case 1: TAKE(uint8_t); break;                                                              \
        case 2: TAKE(uint16_t); break;                                                             \
        case 4: TAKE(uint32_t); break;                                                             \
        default: TAKE(uint64_t); break;                                                            \
        }                                                                                          \
    }
ORDER(narrow, uint32_t)
ORDER(wide, uint64_t)

int64_t mr_sort_items(const mr_command *command) {
    mr_sorting s = mr_sorting_of(command);
    return s.order->numel > 0 ? mr_lines_of(s.in, s.dim).count : 0;
}

/* The pairs twice. */
mr_status mr_sort_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    if (first >= end) return MR_OK;
    plan p;
    make_plan(command, &p);
    size_t pair = p.is_wide ? sizeof(wide) : sizeof(narrow);
    void *pairs = malloc((p.s.taken <= FEW ? FEW : 2 * (size_t)p.lines.length) * pair);
    if (!pairs)
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: the host has no memory to sort %lld elements",
                       command->name, (long long)p.lines.length);
    /* Few distances of floats have fewer bits than their type. Where few are taken, nothing is sorted by bits. */
    bool looks = mr_dtype_category((mr_dtype)p.s.in->dtype) < 2 && p.bits >= 32 && p.s.taken > FEW;
    for (int64_t line = first; line < end; line++) {
        targets r = targets_of(&p, line);
        spread keys_of = looks ? spread_of(&p, r.from) : (spread){0, p.bits};
        if (keys_of.bits > 32 || p.lines.length > UINT32_MAX) order_wide(&p, keys_of, &r, pairs);
        else order_narrow(&p, keys_of, &r, pairs);
    }
    free(pairs);
    return MR_OK;
}

/* Selecting first is faster only if few elements are taken. */
mr_sort_way mr_sort_way_of(int64_t length, int64_t taken) {
    enum { LEAST_LEFT_OUT = 4 }; /* times as many as are taken */
    if (length <= MR_SORT_LINE) return MR_SORT_SHORT;
    bool few =
        taken <= MR_SORT_LINE && length <= UINT32_MAX && taken <= length / (LEAST_LEFT_OUT + 1);
    return few ? MR_SORT_TAKEN : MR_SORT_ALL;
}

/* The bytes that are read and written to sort `items` elements of `size` bytes and to give out `results` of them.
 * Results are positions (i64) and, of `value` bytes each, values. */
static double bytes_of_sort(mr_sort_way way, double items, double size, double results,
                            double value) {
    enum { POSITION = 4 }; /* bytes, inside */
    double digits = size;
    switch (way) {
    case MR_SORT_SHORT: return items * size + results * (8 + value);
    case MR_SORT_TAKEN: /* counted for each digit, counted in all, written */
        return (digits + 2) * items * size + results * (8 + value);
    case MR_SORT_ALL: break;
    }
    /* Keys are made; for each digit they are counted, and moved with positions, which the first time are known. */
    return items * (2 * size + digits * (3 * size + 2 * POSITION) - POSITION) +
           results * (POSITION + size + 8 + value);
}

void mr_sort_cost(const mr_command *command, mr_cost *out_cost) {
    enum { THREADS = 256, PER_THREAD = 16 };
    mr_sorting s = mr_sorting_of(command);
    double items = (double)s.in->numel, size = (double)mr_dtype_size((mr_dtype)s.in->dtype);
    double results = (double)s.order->numel;
    mr_sort_way way = mr_sort_way_of(mr_lines_of(s.in, s.dim).length, s.taken);
    double value = s.values ? size : 0;
    double blocks = items / (THREADS * PER_THREAD) + 1;
    *out_cost = (mr_cost){.flops = items * size,
                          .bytes = bytes_of_sort(way, items, size, results, value),
                          .blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX,
                          .threads = THREADS};
}
