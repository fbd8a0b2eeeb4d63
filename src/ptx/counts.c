/* Counts of one run, and their sums in the profile of a launch: see profile.h. */
#include "ptx/counts.h"
#include "ptx/runs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct ptx_counts {
    mr_ptx_counts *of_code; /* by index of a code in the module */
    uint32_t code_count;
    uint64_t blocks;
};

struct mr_ptx_profile {
    pthread_mutex_t lock;
    mr_ptx_module *module;
    ptx_counts counts;
};

ptx_counts *ptx_counts_create(const mr_ptx_module *module) {
    ptx_counts *counts = calloc(1, sizeof *counts);
    if (!counts) return NULL;
    counts->code_count = module->code_count;
    counts->of_code = calloc(module->code_count + 1u, sizeof *counts->of_code);
    if (counts->of_code) return counts;
    free(counts);
    return NULL;
}

static void add(mr_ptx_counts *to, const mr_ptx_counts *from) {
    to->warps += from->warps;
    to->lanes += from->lanes;
    to->requests += from->requests;
    to->sectors += from->sectors;
    to->least += from->least;
    to->wavefronts += from->wavefronts;
    to->bytes += from->bytes;
}

void ptx_counts_merge(mr_ptx_profile *profile, ptx_counts *counts) {
    pthread_mutex_lock(&profile->lock);
    profile->counts.blocks += counts->blocks;
    for (uint32_t i = 0; i < counts->code_count; i++) {
        add(&profile->counts.of_code[i], &counts->of_code[i]);
    }
    pthread_mutex_unlock(&profile->lock);
    free(counts->of_code);
    free(counts);
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

/* Passes over shared memory: 32 banks of 4 bytes give one word each. Lanes with more than 4 bytes take turns: halves of the
 * warp, or quarters. */
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

void ptx_counts_access(ptx_counts *counts, const ptx_routine *routine, const ptx_code *code,
                       const ptx_memory_code *memory, ptx_space space, uint32_t mask,
                       const uint64_t address[PTX_LANES]) {
    mr_ptx_counts *c = of(counts, routine, code);
    uint64_t first[PTX_LANES];
    unsigned count = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        first[count++] = address[(unsigned)__builtin_ctz(left)];
    }
    c->requests++;
    c->bytes += (uint64_t)count * memory->bytes;
    if (space == PTX_SHARED) {
        c->wavefronts += wavefronts(first, count, memory->bytes);
    } else if (space == PTX_GLOBAL || space == PTX_CONST) {
        c->sectors += pieces(first, count, memory->bytes, 32);
        c->least += (pieces(first, count, memory->bytes, 1) + 31) / 32;
    }
}

/* ---- the profile of a launch */

mr_ptx_profile *mr_ptx_profile_create(const mr_ptx_module *module) {
    mr_ptx_profile *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->counts.code_count = module->code_count;
    p->counts.of_code = calloc(module->code_count + 1u, sizeof *p->counts.of_code);
    if (!p->counts.of_code) {
        free(p);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    p->module = (mr_ptx_module *)(uintptr_t)module; /* its count of references is not const */
    mr_ptx_module_retain(p->module);
    return p;
}

void mr_ptx_profile_destroy(mr_ptx_profile *p) {
    if (!p) return;
    pthread_mutex_destroy(&p->lock);
    mr_ptx_module_release(p->module);
    free(p->counts.of_code);
    free(p);
}

uint64_t mr_ptx_profile_blocks(const mr_ptx_profile *p) {
    return p->counts.blocks;
}

/* A join executes for no instruction. */
static bool counts_for(const ptx_code *code) {
    return code->source && code->run != ptx_run_join;
}

/* An instruction of several codes was executed as often as the one that most warps came to. */
static void add_code(mr_ptx_counts *to, const mr_ptx_counts *from) {
    uint64_t warps = to->warps > from->warps ? to->warps : from->warps;
    uint64_t lanes = to->lanes > from->lanes ? to->lanes : from->lanes;
    add(to, from);
    to->warps = warps, to->lanes = lanes;
}

bool mr_ptx_profile_instruction(const mr_ptx_profile *p, const ptx_function *function, uint32_t i,
                                mr_ptx_counts *out) {
    const ptx_routine *r = &p->module->routines[function - p->module->tree.functions];
    const ptx_instruction *wanted = &function->instructions[i];
    memset(out, 0, sizeof *out);
    for (uint32_t k = 0; k < r->code_count; k++) {
        if (r->codes[k].source != wanted || !counts_for(&r->codes[k])) continue;
        add_code(out, &p->counts.of_code[r->first_index + k]);
    }
    return out->warps != 0;
}

/* Calls `each` with the counts of each instruction that was executed. */
typedef void each_instruction(void *context, const ptx_instruction *instruction,
                              const mr_ptx_counts *counts);
static void for_each(const mr_ptx_profile *p, each_instruction *each, void *context) {
    const mr_ptx_module *m = p->module;
    for (uint32_t f = 0; f < m->tree.function_count; f++) {
        const ptx_routine *r = &m->routines[f];
        for (uint32_t k = 0; k < r->code_count;) {
            const ptx_instruction *source = r->codes[k].source;
            mr_ptx_counts sum = {0};
            bool any = false;
            for (; k < r->code_count && r->codes[k].source == source; k++) {
                if (!counts_for(&r->codes[k])) continue;
                add_code(&sum, &p->counts.of_code[r->first_index + k]);
                any = true;
            }
            if (any && sum.warps) each(context, source, &sum);
        }
    }
}

typedef struct {
    ptx_class which;
    mr_ptx_counts *sum;
} class_sum;
static void add_class(void *context, const ptx_instruction *i, const mr_ptx_counts *counts) {
    class_sum *s = context;
    if (ptx_class_of(i) == s->which) add(s->sum, counts);
}

void mr_ptx_profile_class(const mr_ptx_profile *p, ptx_class which, mr_ptx_counts *out) {
    memset(out, 0, sizeof *out);
    class_sum s = {which, out};
    for_each(p, add_class, &s);
}

typedef struct {
    mr_ptx_line *lines;
    uint32_t count, most;
} line_list;
static void add_line(void *context, const ptx_instruction *i, const mr_ptx_counts *counts) {
    line_list *list = context;
    for (uint32_t k = 0; k < list->count && k < list->most; k++) {
        mr_ptx_line *line = &list->lines[k];
        if (line->file != i->place.outer_file || line->line != i->place.outer_line) continue;
        add(&line->counts, counts);
        return;
    }
    if (list->count < list->most) {
        list->lines[list->count] = (mr_ptx_line){
            .file = i->place.outer_file, .line = i->place.outer_line, .counts = *counts};
    }
    list->count++;
}
static int by_place(const void *a, const void *b) {
    const mr_ptx_line *x = a, *y = b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

uint32_t mr_ptx_profile_lines(const mr_ptx_profile *p, mr_ptx_line *out, uint32_t most) {
    line_list list = {out, 0, most};
    for_each(p, add_line, &list);
    uint32_t written = list.count < most ? list.count : most;
    qsort(out, written, sizeof *out, by_place);
    return list.count;
}
