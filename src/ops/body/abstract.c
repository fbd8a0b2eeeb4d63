/* mr.op and mr.spin: operations that exist for their accesses and their duration.
 *
 * Each written element becomes a hash of the operation's name, of the elements read and of its own position. So any
 * other order of operations gives other values. Element j of a written tensor of n elements takes, from each tensor of
 * m elements that is read, the one at j * m / n: half-written inputs give half-changed outputs. Another written tensor
 * counts among the inputs only if it is as long, as then its element is read before the same item writes it. A written
 * tensor that is also read always counts with its own old element. All is arithmetic on bits, the same on every
 * machine. */
#include "ops/body.h"

#include <string.h>

/* The finaliser of SplitMix64: each bit of the argument changes half of the result's. */
static uint64_t scramble(uint64_t h) {
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

static int64_t strided_offset(const mr_tensor *t, int64_t position) {
    if (t->contiguous) return position;
    int64_t offset = 0;
    for (int d = t->ndim; d-- > 0;) {
        offset += position % t->shape[d] * t->stride[d];
        position /= t->shape[d];
    }
    return offset;
}

static uint64_t load_bits(const mr_tensor *t, int64_t position) {
    size_t size = mr_dtype_size(t->dtype);
    uint64_t bits = 0;
    memcpy(&bits, (const char *)mr_tensor_data(t) + strided_offset(t, position) * (int64_t)size,
           size);
    return bits;
}

/* Floats get [0, 1) with all of the mantissa's bits, so none is infinite or NaN. Integers get 20 bits, short
 * enough to read; u8 and bool the top 8 and 1. */
static void store_hash(const mr_tensor *t, int64_t position, uint64_t h) {
    mr_scalar value = {.is_integer = true};
    switch (t->dtype) {
    case MR_F32: value = (mr_scalar){.f = (double)(h >> 40) * 0x1p-24}; break;
    case MR_F64: value = (mr_scalar){.f = (double)(h >> 11) * 0x1p-53}; break;
    case MR_F16: value = (mr_scalar){.f = (double)(h >> 53) * 0x1p-11}; break;
    case MR_BF16: value = (mr_scalar){.f = (double)(h >> 56) * 0x1p-8}; break;
    case MR_U8: value.i = (int64_t)(h >> 56); break;
    case MR_BOOL: value.i = (int64_t)(h >> 63); break;
    default: value.i = (int64_t)(h >> 44); break;
    }
    int64_t size = (int64_t)mr_dtype_size(t->dtype);
    mr_dtype_store(t->dtype, (char *)mr_tensor_data(t) + strided_offset(t, position) * size, value);
}

/* j * m / n without overflow. */
static int64_t proportional(int64_t j, int64_t m, int64_t n) {
    return m == n ? j : (int64_t)((__int128)j * m / n);
}

/* The first j of n elements that is not before item i of `items`. */
static int64_t element_of(int64_t i, int64_t n, int64_t items) {
    return n == items ? i : (int64_t)(((__int128)i * n + items - 1) / items);
}

int64_t mr_abstract_items(const mr_command *command) {
    int64_t items = 0;
    bool writes = false;
    for (uint32_t k = 0; k < command->operand_count; k++) {
        const mr_operand *o = &command->operands[k];
        bool write = o->access & MR_WRITE;
        if (write && !writes) items = 0;
        writes = writes || write;
        if (write == writes && o->tensor->numel > items) items = o->tensor->numel;
    }
    return items;
}

static uint64_t hash_for(const mr_command *command, const mr_tensor *to, int64_t j) {
    uint64_t h = scramble(mr_params_of(command).abstract.mix + (uint64_t)j);
    for (uint32_t k = 0; k < command->operand_count; k++) {
        const mr_operand *o = &command->operands[k];
        const mr_tensor *from = o->tensor;
        if (!(o->access & MR_READ) || from->numel == 0) continue;
        if ((o->access & MR_WRITE) && from->numel != to->numel) continue;
        h = scramble(h ^ load_bits(from, proportional(j, from->numel, to->numel))) + k;
    }
    return h;
}

/* ---- the usual case: all tensors have an element for each item, one after the other */

enum { MOST_STRAIGHT = 8 };

/* A tensor of it; `data` is that of its first element. */
typedef struct {
    const mr_tensor *tensor;
    char *data;
    size_t size;
    bool reads, writes;
} straight;

/* Returns how many there are; 0: it is not that case. */
static uint32_t straight_ones(const mr_command *command, int64_t items, straight *out) {
    if (command->operand_count > MOST_STRAIGHT) return 0;
    for (uint32_t k = 0; k < command->operand_count; k++) {
        const mr_operand *o = &command->operands[k];
        if (o->tensor->numel != items || !o->tensor->contiguous) return 0;
        out[k] = (straight){.tensor = o->tensor,
                            .data = mr_tensor_data(o->tensor),
                            .size = mr_dtype_size(o->tensor->dtype),
                            .reads = o->access & MR_READ,
                            .writes = o->access & MR_WRITE};
    }
    return command->operand_count;
}

/* Four bytes do not go through the memory of `bits`: to load a word of which a part has just been stored is slow. */
static uint64_t straight_bits(const straight *s, int64_t i) {
    uint64_t bits = 0;
    uint32_t four;
    if (s->size != sizeof four) {
        memcpy(&bits, s->data + (size_t)i * s->size, s->size);
        return bits;
    }
    memcpy(&four, s->data + (size_t)i * sizeof four, sizeof four);
    /* where load_bits puts them */
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? four : (uint64_t)four << 32;
}

static void straight_store(const straight *s, int64_t i, uint64_t h) {
    if (s->tensor->dtype != MR_F32) {
        store_hash(s->tensor, i, h);
        return;
    }
    float value = (float)((double)(h >> 40) * 0x1p-24);
    memcpy(s->data + (size_t)i * sizeof value, &value, sizeof value);
}

static void run_straight(const straight *all, uint32_t count, uint64_t mix, int64_t first,
                         int64_t end) {
    for (int64_t i = first; i < end; i++) {
        uint64_t h = scramble(mix + (uint64_t)i);
        for (uint32_t k = 0; k < count; k++)
            if (all[k].reads) h = scramble(h ^ straight_bits(&all[k], i)) + k;
        for (uint32_t k = 0; k < count; k++)
            if (all[k].writes) straight_store(&all[k], i, h);
    }
}

mr_status mr_abstract_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    enum {
        MAX_TOGETHER = 16
    }; /* written tensors of one length whose old elements are read first */
    int64_t items = mr_abstract_items(command);
    straight all[MOST_STRAIGHT];
    uint32_t count = straight_ones(command, items, all);
    if (count) {
        run_straight(all, count, mr_params_of(command).abstract.mix, first, end);
        return MR_OK;
    }
    for (int64_t i = first; i < end; i++) {
        uint64_t hashes[MAX_TOGETHER];
        uint32_t kept = 0;
        /* All of an item's reads before its first write. */
        for (int pass = 0; pass < 2; pass++) {
            uint32_t written = 0;
            for (uint32_t k = 0; k < command->operand_count; k++) {
                const mr_tensor *to = command->operands[k].tensor;
                if (!(command->operands[k].access & MR_WRITE) || to->numel == 0) continue;
                /* Elements j with j * items / n in this item: none or one, as no n exceeds items. */
                int64_t j = element_of(i, to->numel, items);
                if (j >= to->numel || proportional(j, items, to->numel) != i) continue;
                if (pass == 0 && kept < MAX_TOGETHER) hashes[kept++] = hash_for(command, to, j);
                if (pass == 1) {
                    store_hash(to, j, written < kept ? hashes[written] : hash_for(command, to, j));
                    written++;
                }
            }
        }
    }
    return MR_OK;
}

int64_t mr_spin_items(const mr_command *command) {
    (void)command;
    return 0;
}

mr_status mr_spin_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)command, (void)state, (void)first, (void)end;
    return MR_OK;
}

void mr_abstract_cost(const mr_command *command, mr_cost *out_cost) {
    uint32_t blocks = mr_params_of(command).abstract.blocks;
    double bytes = 0;
    for (uint32_t k = 0; k < command->operand_count; k++) {
        const mr_tensor *t = command->operands[k].tensor;
        bytes += (double)t->numel * (double)mr_dtype_size(t->dtype);
    }
    *out_cost =
        (mr_cost){.flops = 0, .bytes = bytes, .blocks = blocks > 0 ? blocks : 1, .threads = 256};
}
