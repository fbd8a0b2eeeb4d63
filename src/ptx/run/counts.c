/* Counts of one run: see counts.h. */
#include "ptx/run/counts.h"

#include <stdlib.h>
#include <string.h>

ptx_counts *ptx_counts_create(const mr_ptx_module *module) {
    ptx_counts *counts = calloc(1, sizeof *counts);
    if (!counts) return NULL;
    counts->code_count = module->code_count;
    counts->of_code = calloc(module->code_count + 1u, sizeof *counts->of_code);
    if (counts->of_code) return counts;
    free(counts);
    return NULL;
}

#define FIRST_THREADS 2048 /* whose blocks are all counted: small launches are counted as a whole */

bool mr_ptx_block_is_counted(const mr_ptx_launch *launch, uint64_t block) {
    uint64_t number = launch->count_from + block, every = launch->count_every;
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    if (every <= 1 || number * threads < FIRST_THREADS) return true;
    uint64_t group = number / every, hash = group * 0x9e3779b97f4a7c15u;
    return number % every == (hash >> 32) % every;
}

void ptx_counts_block(ptx_counts *counts) {
    counts->blocks++;
}

static mr_ptx_counts *of(ptx_counts *counts, const ptx_routine *routine, const ptx_code *code) {
    return &counts->of_code[routine->first_index + (uint32_t)(code - routine->codes)];
}

void ptx_counts_add(ptx_counts *counts, const ptx_routine *routine, const ptx_code *code,
                    uint32_t mask) {
    mr_ptx_counts *c = of(counts, routine, code);
    c->warps++;
    c->executed += mask != 0;
    c->lanes += (uint64_t)__builtin_popcount(mask);
}

/* ---- memory */

/* Sorts the few values of a warp; many are in order already. */
static void sort(uint64_t *values, unsigned count) {
    for (unsigned i = 1; i < count; i++) {
        uint64_t v = values[i];
        unsigned k = i;
        for (; k > 0 && values[k - 1] > v; k--) values[k] = values[k - 1];
        values[k] = v;
    }
}

/* How many pieces of `size` bytes the lanes touch. */
static unsigned pieces(const uint64_t *first, unsigned count, uint32_t bytes, uint32_t size) {
    uint64_t sorted[PTX_LANES], last = UINT64_MAX;
    memcpy(sorted, first, count * sizeof *sorted);
    sort(sorted, count);
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t end = sorted[i] + bytes; /* 0: the last byte of all; a wild pointer may be there */
        for (uint64_t p = sorted[i] / size, most = (end - 1) / size; p <= most; p++) {
            if (last == UINT64_MAX || p > last) {
                last = p;
                found++;
            }
            if (p == most) break;
        }
    }
    return found;
}

/* Passes over shared memory: 32 banks of 4 bytes give one word each. Lanes with more than 4 bytes take turns: halves of
 * the warp, or quarters. */
static unsigned wavefronts(const uint64_t *first, unsigned count, uint32_t bytes) {
    unsigned per_pass = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8, total = 0;
    for (unsigned begin = 0; begin < count; begin += per_pass) {
        unsigned end = begin + per_pass < count ? begin + per_pass : count, most = 1;
        uint64_t words[PTX_LANES * 4];
        unsigned n = 0;
        for (unsigned i = begin; i < end; i++) {
            uint64_t last = (first[i] + bytes - 1) / 4;
            for (uint64_t w = first[i] / 4; w <= last && n < PTX_LANES * 4; w++) {
                bool known = false;
                for (unsigned k = 0; k < n && !known; k++) known = words[k] == w;
                if (!known) words[n++] = w;
            }
        }
        unsigned of_bank[32] = {0};
        for (unsigned k = 0; k < n; k++) {
            unsigned now = ++of_bank[words[k] % 32];
            if (now > most) most = now;
        }
        total += most;
    }
    return total;
}

/* The usual shapes, which need no search: neighbours, or one place for all; `all` bytes from `first` on. */
static void count_together(mr_ptx_counts *c, ptx_space space, uint64_t first, uint64_t all,
                           unsigned count, uint32_t bytes) {
    if (space == PTX_SHARED) {
        unsigned per_pass = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
        c->wavefronts += (count + per_pass - 1) / per_pass;
    } else if (space == PTX_GLOBAL || space == PTX_CONST) {
        c->sectors += (first + all - 1) / 32 - first / 32 + 1;
        c->lines += (first + all - 1) / 128 - first / 128 + 1;
        c->least += (all + 31) / 32;
    }
}

/* One of the lanes that change the same address does so in a pass; a warp whose lanes all change one address adds up
 * first. */
static void count_atomics(ptx_counts *counts, const uint64_t *first, unsigned count, bool is_one) {
    for (unsigned i = 0; i < count; i++) {
        uint64_t sector = first[i] / 32;
        unsigned most = 0, before = 0;
        for (unsigned k = 0; k < i; k++) before += first[k] / 32 == sector;
        if (before) continue; /* this sector was counted */
        for (unsigned k = i; k < count; k++) {
            unsigned same = 0;
            if (first[k] / 32 != sector) continue;
            for (unsigned n = i; n < count; n++) same += first[n] == first[k];
            if (same > most) most = same;
        }
        uint64_t line = first[i] / 128;
        uint64_t hash = line ^ line >> 6 ^ line >> 12 ^ line >> 18;
        counts->atomic_passes[hash % PTX_CACHE_PARTS] += is_one ? 1 : most;
        if (is_one) return;
    }
}

void ptx_counts_access(ptx_counts *counts, const ptx_routine *routine, const ptx_code *code,
                       const ptx_memory_code *memory, ptx_space space, uint32_t mask,
                       const uint64_t address[PTX_LANES]) {
    mr_ptx_counts *c = of(counts, routine, code);
    uint64_t first[PTX_LANES] = {0}, row = 0, same = 0;
    uint32_t bytes = memory->bytes;
    unsigned count = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint64_t at = address[(unsigned)__builtin_ctz(left)];
        first[count] = at;
        row |= at ^ (first[0] + (uint64_t)count * bytes);
        same |= at ^ first[0];
        count++;
    }
    if (space == PTX_GLOBAL && code->source && ptx_is_atomic(code->source))
        count_atomics(counts, first, count, same == 0);
    c->requests++;
    c->banked += space == PTX_SHARED;
    c->cached += space == PTX_GLOBAL || space == PTX_CONST;
    c->bytes += (uint64_t)count * memory->bytes;
    if (row == 0 || same == 0) {
        count_together(c, space, first[0], same == 0 ? bytes : count * bytes, count, bytes);
    } else if (space == PTX_SHARED) {
        c->wavefronts += wavefronts(first, count, memory->bytes);
    } else if (space == PTX_GLOBAL || space == PTX_CONST) {
        c->sectors += pieces(first, count, memory->bytes, 32);
        c->lines += pieces(first, count, memory->bytes, 128);
        c->least += (pieces(first, count, memory->bytes, 1) + 31) / 32;
    }
}
