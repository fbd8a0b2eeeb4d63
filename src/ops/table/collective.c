#include "ops/collective.h"
#include "ops/ids.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

/* ---- operands */

static const mr_tensor *operand(const mr_meeting *meeting, uint32_t member, int16_t which) {
    if (which == MR_MEETING_NONE) return NULL;
    return meeting->members[member].command->operands[which].tensor;
}

static const mr_tensor *input(const mr_meeting *meeting, uint32_t member) {
    return operand(meeting, member, meeting->members[member].in);
}

/* NULL: it has no output, or one that is not used here. */
static const mr_tensor *output(const mr_meeting *meeting, uint32_t member) {
    if (meeting->members[member].far) return NULL;
    return operand(meeting, member, meeting->members[member].out);
}

static size_t bytes_of(const mr_tensor *t) {
    return (size_t)t->numel * mr_dtype_size((mr_dtype)t->dtype);
}

static char *at(const mr_tensor *t, int64_t element) {
    return (char *)mr_tensor_data(t) + element * (int64_t)mr_dtype_size((mr_dtype)t->dtype);
}

/* ---- reductions: one block of elements of one member onto the partial results */

#define BLOCK 512

typedef union {
    float f32[BLOCK];
    double f64[BLOCK];
    uint16_t half[BLOCK];
    int32_t i32[BLOCK];
    int64_t i64[BLOCK];
    uint8_t u8[BLOCK];
} partial;

#define FOLD(type, expression)                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                              \
        type a = to[i], b = from[i];                                                               \
        to[i] = (type)(expression);                                                                \
    }                                                                                              \
    return

/* Signed integers wrap, as they do on a GPU. */
#define DEFINE_FOLD(name, type, wide, least, greatest)                                             \
    static void name(mr_redop redop, type *to, const type *from, int64_t n) {                      \
        switch (redop) {                                                                           \
        case MR_REDOP_SUM:                                                                         \
        case MR_REDOP_AVG: FOLD(type, (wide)a + (wide)b);                                          \
        case MR_REDOP_PROD: FOLD(type, (wide)a *(wide)b);                                          \
        case MR_REDOP_MIN: FOLD(type, least);                                                      \
        case MR_REDOP_MAX: FOLD(type, greatest);                                                   \
        }                                                                                          \
    }

DEFINE_FOLD(fold_f32, float, float, fminf(a, b), fmaxf(a, b))
DEFINE_FOLD(fold_f64, double, double, fmin(a, b), fmax(a, b))
DEFINE_FOLD(fold_i32, int32_t, uint32_t, a<b ? a : b, a> b ? a : b)
DEFINE_FOLD(fold_i64, int64_t, uint64_t, a<b ? a : b, a> b ? a : b)
DEFINE_FOLD(fold_u8, uint8_t, uint32_t, a<b ? a : b, a> b ? a : b)

static void fold_bool(mr_redop redop, uint8_t *to, const uint8_t *from, int64_t n) {
    bool either = redop == MR_REDOP_SUM || redop == MR_REDOP_MAX;
    for (int64_t i = 0; i < n; i++)
        to[i] = either ? to[i] != 0 || from[i] != 0 : to[i] != 0 && from[i] != 0;
}

static float widen(mr_dtype dtype, uint16_t half) {
    return dtype == MR_F16 ? mr_f32_from_f16(half) : mr_f32_from_bf16(half);
}

static uint16_t round_to(mr_dtype dtype, float x) {
    return dtype == MR_F16 ? mr_f16_from_f32(x) : mr_bf16_from_f32(x);
}

static void fold_half(mr_dtype dtype, mr_redop redop, uint16_t *to, const uint16_t *from,
                      int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float a = widen(dtype, to[i]), b = widen(dtype, from[i]);
        fold_f32(redop, &a, &b, 1);
        to[i] = round_to(dtype, a);
    }
}

static void fold(mr_dtype dtype, mr_redop redop, partial *to, const void *from, int64_t n) {
    switch (dtype) {
    case MR_F32: fold_f32(redop, to->f32, from, n); break;
    case MR_F64: fold_f64(redop, to->f64, from, n); break;
    case MR_F16:
    case MR_BF16: fold_half(dtype, redop, to->half, from, n); break;
    case MR_I32: fold_i32(redop, to->i32, from, n); break;
    case MR_I64: fold_i64(redop, to->i64, from, n); break;
    case MR_U8: fold_u8(redop, to->u8, from, n); break;
    case MR_BOOL: fold_bool(redop, to->u8, from, n); break;
    case MR_DTYPE_COUNT: break;
    }
}

/* The mean: integers are cut towards zero. */
static void divide(mr_dtype dtype, partial *to, uint32_t by, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        switch (dtype) {
        case MR_F32: to->f32[i] /= (float)by; break;
        case MR_F64: to->f64[i] /= (double)by; break;
        case MR_F16:
        case MR_BF16: to->half[i] = round_to(dtype, widen(dtype, to->half[i]) / (float)by); break;
        case MR_I32: to->i32[i] /= (int32_t)by; break;
        case MR_I64: to->i64[i] /= (int64_t)by; break;
        case MR_U8: to->u8[i] = (uint8_t)(to->u8[i] / by); break;
        case MR_BOOL: /* refused at the call */
        case MR_DTYPE_COUNT: break;
        }
    }
}

/* Elements [first, first + n) of the members' inputs, counted from `skip` on. */
static void reduce_block(const mr_meeting *meeting, partial *to, int64_t skip, int64_t first,
                         int64_t n) {
    const mr_tensor *own = input(meeting, 0);
    mr_dtype dtype = (mr_dtype)own->dtype;
    memcpy(to, at(own, skip + first), (size_t)n * mr_dtype_size(dtype));
    for (uint32_t k = 1; k < meeting->size; k++)
        fold(dtype, meeting->redop, to, at(input(meeting, k), skip + first), n);
    if (meeting->redop == MR_REDOP_AVG) divide(dtype, to, meeting->size, n);
}

/* ---- bodies: elements [first, end) of each unit; all reads of an element come before its first write */

static void store(const mr_tensor *to, int64_t first, const partial *from, int64_t n) {
    memcpy(at(to, first), from, (size_t)n * mr_dtype_size((mr_dtype)to->dtype));
}

static void run_reduction(const mr_meeting *meeting, int64_t first, int64_t end) {
    bool scatters = meeting->what == MR_COLLECTIVE_REDUCE_SCATTER;
    partial block;
    for (; first < end; first += BLOCK) {
        int64_t n = end - first < BLOCK ? end - first : BLOCK;
        if (!scatters) reduce_block(meeting, &block, 0, first, n);
        for (uint32_t k = 0; k < meeting->size; k++) {
            const mr_tensor *to = output(meeting, k);
            if (!to) continue;
            if (scatters) reduce_block(meeting, &block, (int64_t)k * to->numel, first, n);
            store(to, first, &block, n);
        }
    }
}

static void move_elements(const mr_tensor *to, int64_t to_first, const mr_tensor *from,
                          int64_t from_first, int64_t n) {
    memmove(at(to, to_first), at(from, from_first),
            (size_t)n * mr_dtype_size((mr_dtype)from->dtype));
}

static void run_gather(const mr_meeting *meeting, int64_t first, int64_t n) {
    for (uint32_t k = 0; k < meeting->size; k++) {
        const mr_tensor *from = input(meeting, k);
        for (uint32_t j = 0; j < meeting->size; j++)
            if (output(meeting, j))
                move_elements(output(meeting, j), (int64_t)k * from->numel + first, from, first, n);
    }
}

static void run_all_to_all(const mr_meeting *meeting, int64_t first, int64_t n) {
    for (uint32_t k = 0; k < meeting->size; k++)
        for (uint32_t j = 0; j < meeting->size; j++) {
            const mr_tensor *from = input(meeting, k), *to = output(meeting, j);
            int64_t part = from->numel / meeting->size;
            if (to)
                move_elements(to, (int64_t)k * part + first, from, (int64_t)j * part + first, n);
        }
}

static void run_broadcast(const mr_meeting *meeting, int64_t first, int64_t n) {
    const mr_tensor *from = input(meeting, meeting->root);
    for (uint32_t k = 0; k < meeting->size; k++)
        if (output(meeting, k)) move_elements(output(meeting, k), first, from, first, n);
}

static void run_exchange(const mr_meeting *meeting) {
    for (uint32_t k = 0; k < meeting->message_count; k++) {
        const mr_message *message = &meeting->messages[k];
        const mr_tensor *from = operand(meeting, message->from, message->in);
        if (!meeting->members[message->to].far)
            move_elements(operand(meeting, message->to, message->out), 0, from, 0, from->numel);
    }
}

/* Elements of a unit; of an exchange 1: messages have sizes of their own. */
static int64_t unit(const mr_meeting *meeting) {
    const mr_tensor *t;
    switch (meeting->what) {
    case MR_COLLECTIVE_EXCHANGE: return 1;
    case MR_COLLECTIVE_REDUCE_SCATTER:
    case MR_COLLECTIVE_ALL_TO_ALL: return input(meeting, 0)->numel / meeting->size;
    case MR_COLLECTIVE_BROADCAST: return input(meeting, meeting->root)->numel;
    case MR_COLLECTIVE_ALL_REDUCE:
    case MR_COLLECTIVE_REDUCE:
    case MR_COLLECTIVE_ALL_GATHER: break;
    }
    t = input(meeting, 0);
    return t->numel;
}

static int64_t items(const mr_command *command) {
    return mr_command_waits_for_others(command) ? 0 : unit(command->meeting);
}

static mr_status run(const mr_command *command, void *state, int64_t first, int64_t end) {
    const mr_meeting *meeting = command->meeting;
    (void)state;
    switch (meeting->what) {
    case MR_COLLECTIVE_ALL_REDUCE:
    case MR_COLLECTIVE_REDUCE:
    case MR_COLLECTIVE_REDUCE_SCATTER: run_reduction(meeting, first, end); break;
    case MR_COLLECTIVE_BROADCAST: run_broadcast(meeting, first, end - first); break;
    case MR_COLLECTIVE_ALL_GATHER: run_gather(meeting, first, end - first); break;
    case MR_COLLECTIVE_ALL_TO_ALL: run_all_to_all(meeting, first, end - first); break;
    case MR_COLLECTIVE_EXCHANGE: run_exchange(meeting); break;
    }
    return MR_OK;
}

/* ---- cost */

/* Each member's messages in one direction share its link. */
static double exchanged(const mr_meeting *meeting) {
    double most = 0;
    for (uint32_t k = 0; k < meeting->size; k++) {
        double sent = 0, received = 0;
        for (uint32_t i = 0; i < meeting->message_count; i++) {
            const mr_message *message = &meeting->messages[i];
            double bytes = (double)bytes_of(operand(meeting, message->from, message->in));
            if (message->from == message->to) continue;
            if (message->from == k) sent += bytes;
            if (message->to == k) received += bytes;
        }
        if (sent > most) most = sent;
        if (received > most) most = received;
    }
    return most;
}

mr_collective_traffic mr_collective_traffic_of(const mr_meeting *meeting) {
    uint32_t others = meeting->size - 1;
    double n = meeting->size, bytes;
    if (meeting->what == MR_COLLECTIVE_EXCHANGE)
        return (mr_collective_traffic){exchanged(meeting), others ? 1 : 0};
    const mr_tensor *of =
        input(meeting, meeting->what == MR_COLLECTIVE_BROADCAST ? meeting->root : 0);
    bytes = (double)unit(meeting) * (double)mr_dtype_size((mr_dtype)of->dtype);
    switch (meeting->what) {
    case MR_COLLECTIVE_ALL_REDUCE: /* a ring passes each part around twice */
        return (mr_collective_traffic){2 * others / n * bytes, 2 * others};
    case MR_COLLECTIVE_ALL_GATHER:
    case MR_COLLECTIVE_REDUCE_SCATTER:
    case MR_COLLECTIVE_ALL_TO_ALL: return (mr_collective_traffic){others * bytes, others};
    case MR_COLLECTIVE_BROADCAST:
    case MR_COLLECTIVE_REDUCE:
    case MR_COLLECTIVE_EXCHANGE: break;
    }
    return (mr_collective_traffic){others ? bytes : 0, others};
}

/* Two trees with half of the data each, so that every member passes all of it up once and down once. */
bool mr_collective_tree_of(const mr_meeting *meeting, mr_collective_traffic *out_traffic) {
    uint32_t depth = 0;
    if (meeting->what != MR_COLLECTIVE_ALL_REDUCE || meeting->size < 2) return false;
    while ((uint32_t)1 << depth < meeting->size) depth++;
    double bytes =
        (double)unit(meeting) * (double)mr_dtype_size((mr_dtype)input(meeting, 0)->dtype);
    *out_traffic = (mr_collective_traffic){2 * bytes, 2 * depth};
    return true;
}

/* A device's model adds the links, which only it knows (virtual/cost.c). */
static void cost(const mr_command *command, mr_cost *out_cost) {
    *out_cost = (mr_cost){.bytes = mr_collective_traffic_of(command->meeting).bytes, .blocks = 1};
}

const mr_op mr_collective_op = {.name = "collective",
                                .id = MR_OP_NONE,
                                .family = &mr_families[MR_FAMILY_COLLECTIVE],
                                .dtypes = MR_TAKES_ALL,
                                .items = items,
                                .run = run,
                                .cost = cost};
