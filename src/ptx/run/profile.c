/* The profile of a launch: sums of the counts of its runs, by instruction, by line and by kind of work. See
 * profile.h. */
#include "ptx/run/counts.h"
#include "ptx/run/runs.h"
#include "ptx/run/waits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- kinds of work */

const char *mr_ptx_class_text(ptx_class which) {
    static const char *const texts[] = {
#define X(name, text) text,
        PTX_CLASSES(X)
#undef X
    };
    return texts[which];
}

static ptx_class class_of_memory(const ptx_instruction *i) {
    if (ptx_has(i, PTX_MOD_shared) || ptx_has(i, PTX_MOD_shared_cta)) return PTX_CLASS_SHARED;
    if (ptx_has(i, PTX_MOD_local)) return PTX_CLASS_LOCAL;
    if (ptx_has(i, PTX_MOD_const_) || ptx_has(i, PTX_MOD_param)) return PTX_CLASS_CONSTANT;
    return PTX_CLASS_GLOBAL; /* generic addresses, too: most of them are global */
}

static ptx_class class_of_type(const ptx_instruction *i) {
    switch (i->type_count ? (ptx_type)i->types[0] : PTX_NO_TYPE) {
    case PTX_f32: return PTX_CLASS_F32;
    case PTX_f64: return PTX_CLASS_F64;
    case PTX_f16:
    case PTX_bf16:
    case PTX_f16x2:
    case PTX_bf16x2: return PTX_CLASS_HALF;
    case PTX_pred: return PTX_CLASS_PREDICATE;
    default: return PTX_CLASS_INTEGER;
    }
}

static ptx_class class_of(const ptx_instruction *i) {
    switch ((ptx_opcode)i->opcode) {
    case PTX_OP_ld:
    case PTX_OP_ldu:
    case PTX_OP_st:
    case PTX_OP_prefetch:
    case PTX_OP_prefetchu:
    case PTX_OP_discard: return class_of_memory(i);
    case PTX_OP_cp: return PTX_CLASS_GLOBAL;
    case PTX_OP_atom:
    case PTX_OP_red: return PTX_CLASS_ATOMIC;
    case PTX_OP_bra:
    case PTX_OP_brx:
    case PTX_OP_call:
    case PTX_OP_ret:
    case PTX_OP_exit:
    case PTX_OP_trap:
    case PTX_OP_brkpt:
    case PTX_OP_nanosleep:
    case PTX_OP_pmevent:
    case PTX_OP_griddepcontrol: return PTX_CLASS_CONTROL;
    case PTX_OP_bar:
    case PTX_OP_barrier:
    case PTX_OP_membar:
    case PTX_OP_fence: return PTX_CLASS_BARRIER;
    case PTX_OP_shfl:
    case PTX_OP_vote:
    case PTX_OP_match:
    case PTX_OP_redux:
    case PTX_OP_activemask: return PTX_CLASS_WARP;
    case PTX_OP_setp:
    case PTX_OP_set:
    case PTX_OP_testp:
    case PTX_OP_isspacep: return PTX_CLASS_PREDICATE;
    case PTX_OP_mov:
    case PTX_OP_selp:
    case PTX_OP_slct:
    case PTX_OP_cvta: return PTX_CLASS_MOVE;
    case PTX_OP_cvt: return PTX_CLASS_CONVERSION;
    case PTX_OP_sin:
    case PTX_OP_cos:
    case PTX_OP_ex2:
    case PTX_OP_lg2:
    case PTX_OP_tanh:
    case PTX_OP_rsqrt: return PTX_CLASS_SPECIAL;
    case PTX_OP_sqrt:
    case PTX_OP_rcp: return ptx_has(i, PTX_MOD_approx) ? PTX_CLASS_SPECIAL : class_of_type(i);
    default: return class_of_type(i);
    }
}

/* ---- the profile of a launch */

struct mr_ptx_profile {
    pthread_mutex_t lock;
    mr_ptx_module *module;
    ptx_counts counts;
};

static void add(mr_ptx_counts *to, const mr_ptx_counts *from) {
    to->warps += from->warps;
    to->executed += from->executed;
    to->lanes += from->lanes;
    to->requests += from->requests;
    to->cached += from->cached;
    to->banked += from->banked;
    to->sectors += from->sectors;
    to->least += from->least;
    to->lines += from->lines;
    to->wavefronts += from->wavefronts;
    to->bytes += from->bytes;
}

static void merge(mr_ptx_profile *profile, const ptx_counts *counts) {
    pthread_mutex_lock(&profile->lock);
    profile->counts.blocks += counts->blocks;
    for (int i = 0; i < PTX_CACHE_PARTS; i++)
        profile->counts.atomic_passes[i] += counts->atomic_passes[i];
    for (uint32_t i = 0; i < counts->code_count; i++) {
        add(&profile->counts.of_code[i], &counts->of_code[i]);
    }
    pthread_mutex_unlock(&profile->lock);
}

void mr_ptx_profile_add(mr_ptx_profile *to, const mr_ptx_profile *from) {
    merge(to, &from->counts);
}

void ptx_counts_merge(mr_ptx_profile *profile, ptx_counts *counts) {
    merge(profile, counts);
    free(counts->of_code);
    free(counts);
}

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
    uint64_t executed = to->executed > from->executed ? to->executed : from->executed;
    uint64_t lanes = to->lanes > from->lanes ? to->lanes : from->lanes;
    add(to, from);
    to->warps = warps, to->executed = executed, to->lanes = lanes;
}

/* Calls `each` with the counts of each instruction of the function that was executed. */
typedef void each_instruction(void *context, const ptx_instruction *instruction,
                              const mr_ptx_counts *counts);
static void for_each_of(const mr_ptx_profile *p, uint32_t function, each_instruction *each,
                        void *context) {
    const ptx_routine *r = &p->module->routines[function];
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

static void for_each(const mr_ptx_profile *p, each_instruction *each, void *context) {
    for (uint32_t f = 0; f < p->module->tree.function_count; f++) for_each_of(p, f, each, context);
}

typedef struct {
    ptx_class which;
    mr_ptx_counts *sum;
} class_sum;
static void add_class(void *context, const ptx_instruction *i, const mr_ptx_counts *counts) {
    class_sum *s = context;
    if (class_of(i) == s->which) add(s->sum, counts);
}

void mr_ptx_profile_class(const mr_ptx_profile *p, ptx_class which, mr_ptx_counts *out) {
    memset(out, 0, sizeof *out);
    class_sum s = {which, out};
    for_each(p, add_class, &s);
}

static bool is_load(const ptx_instruction *i) {
    return i->opcode == PTX_OP_ld || i->opcode == PTX_OP_ldu;
}

typedef struct {
    ptx_class which;
    mr_ptx_counts *loads, *stores;
} move_sum;
static void add_move(void *context, const ptx_instruction *i, const mr_ptx_counts *counts) {
    move_sum *s = context;
    if (class_of(i) != s->which) return;
    if (is_load(i)) add(s->loads, counts);
    if (i->opcode == PTX_OP_st) add(s->stores, counts);
}

void mr_ptx_profile_moves(const mr_ptx_profile *p, ptx_class which, mr_ptx_counts *out_loads,
                          mr_ptx_counts *out_stores) {
    *out_loads = *out_stores = (mr_ptx_counts){0};
    move_sum s = {which, out_loads, out_stores};
    for_each(p, add_move, &s);
}

typedef struct {
    mr_ptx_line *lines;
    uint32_t count, most;
} line_list;
static void add_to_line(mr_ptx_line *line, const ptx_instruction *i, const mr_ptx_counts *counts) {
    bool is_constant = class_of(i) == PTX_CLASS_CONSTANT; /* parameters, above all */
    add(&line->counts, counts);
    if (is_load(i) && !is_constant) add(&line->loads, counts);
    if (i->opcode == PTX_OP_st && !is_constant) add(&line->stores, counts);
}
static void add_line(void *context, const ptx_instruction *i, const mr_ptx_counts *counts) {
    line_list *list = context;
    for (uint32_t k = 0; k < list->count && k < list->most; k++) {
        mr_ptx_line *line = &list->lines[k];
        if (line->file != i->place.outer_file || line->line != i->place.outer_line) continue;
        add_to_line(line, i, counts);
        return;
    }
    if (list->count < list->most) {
        mr_ptx_line *line = &list->lines[list->count];
        *line = (mr_ptx_line){.file = i->place.outer_file, .line = i->place.outer_line};
        add_to_line(line, i, counts);
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

/* ---- one after the other */

typedef struct {
    const ptx_function *f;
    const uint8_t *waits;
    mr_ptx_course *sum;
} course;
/* Compilers put the number into a register first. */
static double nanoseconds(const ptx_function *f, const ptx_operand *o) {
    if (o->kind == PTX_INTEGER) return (double)(uint32_t)o->bits;
    for (uint32_t i = 0; o->kind == PTX_REGISTER && i < f->instruction_count; i++) {
        const ptx_instruction *move = &f->instructions[i];
        if (move->opcode == PTX_OP_mov && move->operands[0].kind == PTX_REGISTER &&
            move->operands[0].index == o->index && move->operands[1].kind == PTX_INTEGER)
            return (double)(uint32_t)move->operands[1].bits;
    }
    return 0;
}

/* As in a barrier of the grid: the block's writes are published before its arrival. */
static bool is_arrival(const ptx_instruction *i, const mr_ptx_counts *counts) {
    bool is_fence = i->opcode == PTX_OP_fence || i->opcode == PTX_OP_membar;
    bool releases = is_fence || (ptx_is_atomic(i) &&
                                 (ptx_has(i, PTX_MOD_release) || ptx_has(i, PTX_MOD_acq_rel)));
    return releases && !ptx_has(i, PTX_MOD_cta) && counts->lanes == counts->executed;
}

static void add_course(void *context, const ptx_instruction *i, const mr_ptx_counts *counts) {
    course *c = context;
    ptx_class which = class_of(i);
    c->sum->instructions += counts->executed;
    c->sum->warp_operations += which == PTX_CLASS_WARP ? counts->executed : 0;
    c->sum->arrivals += is_arrival(i, counts) ? counts->executed : 0;
    c->sum->barriers += which == PTX_CLASS_BARRIER ? counts->executed : 0;
    if (i->opcode == PTX_OP_nanosleep)
        c->sum->sleep_ns += (double)counts->executed * nanoseconds(c->f, &i->operands[0]);
    switch ((ptx_wait)c->waits[i - c->f->instructions]) {
    case PTX_WAIT_MEMORY: c->sum->memory_waits += counts->executed; break;
    case PTX_WAIT_SHARED: c->sum->shared_waits += counts->executed; break;
    case PTX_NO_WAIT: break;
    }
}

bool mr_ptx_profile_course(const mr_ptx_profile *p, mr_ptx_course *out) {
    const ptx_tree *tree = &p->module->tree;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < PTX_CACHE_PARTS; i++)
        if (p->counts.atomic_passes[i] > out->hottest_cells)
            out->hottest_cells = p->counts.atomic_passes[i];
    for (uint32_t f = 0; f < tree->function_count; f++) {
        const ptx_function *function = &tree->functions[f];
        uint8_t *waits = calloc(function->instruction_count + 1u, 1);
        bool found = waits && ptx_find_waits(function, waits);
        course c = {function, waits, out};
        if (found) for_each_of(p, f, add_course, &c);
        free(waits);
        if (!found) return false;
    }
    return true;
}

static uint64_t bytes_of(const ptx_instruction *i) {
    bool moves = i->opcode == PTX_OP_ld || i->opcode == PTX_OP_st;
    if (!moves || class_of(i) != PTX_CLASS_GLOBAL || !i->type_count) return 0;
    const ptx_operand *value = &i->operands[i->opcode == PTX_OP_ld ? 0 : 1];
    uint64_t count = value->kind == PTX_LIST ? value->count : 1;
    return count * mr_ptx_types[i->types[i->type_count - 1]].bytes;
}

/* Blocks from the target of a jump back to where it starts. */
static void mark_loops(const ptx_function *f, bool *in_loop) {
    for (uint32_t b = 0; b < f->block_count; b++)
        for (uint32_t k = 0; k < f->blocks[b].successor_count; k++)
            for (uint32_t l = f->blocks[b].successors[k]; l <= b; l++) in_loop[l] = true;
}

bool mr_ptx_kernel_course(const mr_ptx_kernel *kernel, mr_ptx_course out[PTX_COURSES],
                          uint64_t out_bytes[PTX_COURSES]) {
    const ptx_function *f = kernel->function;
    static const mr_ptx_counts once = {.warps = 1, .executed = 1};
    uint8_t *waits = calloc(f->instruction_count + 1u, 1);
    bool *in_loop = calloc(f->block_count + 1u, 1);
    bool found = waits && in_loop && ptx_find_waits(f, waits);
    memset(out, 0, PTX_COURSES * sizeof *out);
    memset(out_bytes, 0, PTX_COURSES * sizeof *out_bytes);
    if (found) mark_loops(f, in_loop);
    for (uint32_t b = 0; found && b < f->block_count; b++) {
        course c = {f, waits, &out[in_loop[b]]};
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
            add_course(&c, &f->instructions[i], &once);
            out_bytes[in_loop[b]] += bytes_of(&f->instructions[i]);
        }
    }
    free(waits);
    free(in_loop);
    return found;
}
