/* Loading a module: its text is read, its memory laid out, its functions decoded, its kernels described. */
#include <stdlib.h>
#include <string.h>

#include "ptx/access/access.h"
#include "ptx/decode/decode.h"

#define FRAME_ALIGN        16
#define MOST_LOCAL         (512u << 10) /* as a thread on a device may have */
#define MOST_STATIC_SHARED (48u << 10)

static uint64_t align_up(uint64_t at, uint64_t align) {
    if (align == 0) align = 1;
    return (at + align - 1) / align * align;
}

static void *allocate(mr_ptx_module *m, size_t bytes) {
    return mr_region_alloc(&m->region, bytes ? bytes : 1);
}

/* An error of a construct that is not covered concerns only the kernels that use it. Its text becomes `problem`. */
static mr_status pardon(mr_ptx_module *m, mr_status error, const char **problem) {
    if (!error || error->code != MR_CODE_NOT_SUPPORTED) return error;
    size_t size = strlen(error->message) + 1;
    char *text = *problem ? NULL : allocate(m, size);
    if (text) *problem = memcpy(text, error->message, size);
    mr_error_destroy(error);
    return *problem ? MR_OK : mr_no_memory("to load a PTX module");
}

/* ---- where variables lie */

static uint64_t place_in(uint64_t *at, const ptx_variable *v) {
    uint64_t natural = mr_ptx_types[v->type].bytes, align = v->align > natural ? v->align : natural;
    *at = align_up(*at, align);
    uint64_t offset = *at;
    /* The sum cannot wrap: what does not fit is refused right after this. */
    *at += v->bytes < (uint64_t)1 << 40 ? v->bytes : (uint64_t)1 << 40;
    return offset;
}

/* Offsets of the variables of one function: of its frame in local memory, or of a kernel's parameters. */
static mr_status lay_out(mr_ptx_module *m, uint32_t index) {
    const ptx_function *f = &m->tree.functions[index];
    ptx_routine *r = &m->routines[index];
    uint32_t parameters = f->signature.parameter_count + f->signature.result_count;
    uint32_t *of_variable = allocate(m, (f->variable_count + 1) * sizeof *of_variable);
    uint32_t *of_parameter = allocate(m, (parameters + 1) * sizeof *of_parameter);
    if (!of_variable || !of_parameter) return mr_no_memory("to load a PTX module");
    r->function = f;
    r->variable_offset = of_variable;
    r->parameter_offset = of_parameter;
    uint64_t local = 0, param = 0;
    for (uint32_t i = 0; i < parameters; i++) {
        uint64_t *at = f->is_entry ? &param : &local;
        of_parameter[i] = (uint32_t)place_in(at, ptx_parameter_of(f, i));
        if (*at > MOST_LOCAL) {
            return mr_fail(MR_CODE_NOT_SUPPORTED, "function `%s`: its parameters are too large",
                           f->name);
        }
    }
    for (uint32_t i = 0; i < f->variable_count; i++) {
        const ptx_variable *v = &f->variables[i];
        if (v->space == PTX_SHARED) continue;
        of_variable[i] = (uint32_t)place_in(&local, v);
        if (local > MOST_LOCAL) {
            return mr_fail(MR_CODE_NOT_SUPPORTED,
                           "function `%s` has more than 512 KiB of local variables (`%s`)", f->name,
                           v->name);
        }
    }
    r->local_bytes = (uint32_t)align_up(local, FRAME_ALIGN);
    return MR_OK;
}

/* ---- what a kernel calls */

typedef struct {
    mr_ptx_module *m;
    uint8_t *state;  /* by function: 0 not seen, 1 on the way, 2 done */
    uint64_t *depth; /* of done ones: bytes of local memory with what they call */
    uint32_t *words;
    uint32_t *stack, *next; /* functions on the way, and which of their callees comes next */
    bool recursive;
} walk;

/* An indirect call may reach each function whose address is taken; all that are defined count. */
static uint32_t callee_at(const walk *w, uint32_t function, uint32_t i) {
    const ptx_routine *r = &w->m->routines[function];
    if (!r->calls_indirectly) return i < r->callee_count ? r->callees[i] : UINT32_MAX;
    for (; i < w->m->tree.function_count; i++) {
        const ptx_function *f = &w->m->tree.functions[i];
        if (f->is_defined && !f->is_entry) return i;
    }
    return UINT32_MAX;
}

static uint32_t next_callee(walk *w, uint32_t function, uint32_t *i) {
    uint32_t callee = callee_at(w, function, *i);
    if (w->m->routines[function].calls_indirectly && callee != UINT32_MAX) *i = callee;
    ++*i;
    return callee;
}

/* Walks the calls without recursion on the C stack. An indirect call counts as recursive only if it leads back. */
static void visit(walk *w, uint32_t root) {
    uint32_t depth = 0;
    w->stack[0] = root, w->next[0] = 0, w->state[root] = 1;
    for (;;) {
        uint32_t f = w->stack[depth], callee = next_callee(w, f, &w->next[depth]);
        if (callee != UINT32_MAX) {
            if (w->state[callee] == 1) w->recursive = true;
            if (w->state[callee] != 0) {
                if (w->state[callee] == 2 && w->depth[callee] > w->depth[f])
                    w->depth[f] = w->depth[callee];
                continue;
            }
            depth++;
            w->stack[depth] = callee, w->next[depth] = 0, w->state[callee] = 1;
            continue;
        }
        w->depth[f] += w->m->routines[f].local_bytes;
        w->state[f] = 2;
        if (depth == 0) return;
        uint32_t caller = w->stack[--depth];
        if (w->depth[f] > w->depth[caller]) w->depth[caller] = w->depth[f];
    }
}

/* ---- shared memory */

static mr_status place_shared(const mr_ptx_module *m, uint64_t *at, uint64_t *offsets,
                              const ptx_variable *variables, uint32_t count, bool dynamic,
                              const char *kernel) {
    (void)m;
    for (uint32_t i = 0; i < count; i++) {
        const ptx_variable *v = &variables[i];
        if (v->space != PTX_SHARED || (v->bytes == 0) != dynamic) continue;
        if (dynamic) { /* all of them name the same bytes */
            offsets[i] = *at;
            continue;
        }
        offsets[i] = place_in(at, v);
        if (*at > (1u << 30)) {
            return mr_fail(MR_CODE_NOT_SUPPORTED, "kernel `%s`: shared variable `%s` is too large",
                           kernel, v->name);
        }
    }
    return MR_OK;
}

/* The variables of the module that a function names. */
static void mark_operand(const ptx_operand *o, uint8_t *used) {
    if (o->kind == PTX_VARIABLE) used[o->index] = 1;
    if (o->kind != PTX_LIST) return;
    for (unsigned i = 0; i < o->count; i++) mark_operand(&o->list[i], used);
}
static void mark_function(const ptx_function *f, uint8_t *used) {
    for (uint32_t i = 0; i < f->instruction_count; i++) {
        const ptx_instruction *instruction = &f->instructions[i];
        for (unsigned k = 0; k < instruction->operand_count; k++) {
            mark_operand(&instruction->operands[k], used);
        }
    }
}

static mr_status lay_out_shared(mr_ptx_module *m, ptx_shared_layout *layout, const uint8_t *called,
                                uint8_t *used, const char *kernel) {
    const ptx_tree *tree = &m->tree;
    layout->shared_of_module = allocate(m, (tree->variable_count + 1) * sizeof(uint64_t));
    layout->shared_of_function = allocate(m, (tree->function_count + 1) * sizeof(uint64_t *));
    if (!layout->shared_of_module || !layout->shared_of_function)
        return mr_no_memory("to load a PTX module");
    memset(used, 0, tree->variable_count);
    for (uint32_t f = 0; f < tree->function_count; f++) {
        if (called[f]) mark_function(&tree->functions[f], used);
    }
    uint64_t at = 0;
    /* A shared variable that is initialised with an address of another is not known to PTX. */
    for (uint32_t i = 0; i < tree->variable_count; i++) layout->shared_of_module[i] = UINT64_MAX;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        for (uint32_t i = 0; i < tree->variable_count; i++) {
            if (!used[i]) continue;
            MR_TRY(place_shared(m, &at, &layout->shared_of_module[i], &tree->variables[i], 1,
                                dynamic, kernel));
        }
        for (uint32_t f = 0; f < tree->function_count; f++) {
            const ptx_function *function = &tree->functions[f];
            if (!called[f] || function->variable_count == 0) continue;
            uint64_t *offsets = layout->shared_of_function[f];
            if (!offsets) {
                offsets = allocate(m, function->variable_count * sizeof *offsets);
                if (!offsets) return mr_no_memory("to load a PTX module");
                for (uint32_t i = 0; i < function->variable_count; i++) offsets[i] = UINT64_MAX;
                layout->shared_of_function[f] = offsets;
            }
            MR_TRY(place_shared(m, &at, offsets, function->variables, function->variable_count,
                                dynamic, kernel));
        }
        if (!dynamic) {
            layout->static_shared = (uint32_t)at;
            at = align_up(at, 16);
        }
    }
    /* Dynamic memory begins at a multiple of 16, which counts as static only where there is such memory. */
    bool has_dynamic = false;
    for (uint32_t i = 0; i < tree->variable_count; i++) {
        const ptx_variable *v = &tree->variables[i];
        has_dynamic |= used[i] && v->space == PTX_SHARED && v->bytes == 0;
    }
    for (uint32_t f = 0; f < tree->function_count; f++) {
        for (uint32_t i = 0; called[f] && i < tree->functions[f].variable_count; i++) {
            const ptx_variable *v = &tree->functions[f].variables[i];
            has_dynamic |= v->space == PTX_SHARED && v->bytes == 0;
        }
    }
    if (has_dynamic) layout->static_shared = (uint32_t)align_up(layout->static_shared, 16);
    return MR_OK;
}

/* ---- kernels */

static const mr_ptx_param *make_params(mr_ptx_module *m, uint32_t index, uint32_t *out_bytes) {
    const ptx_function *f = &m->tree.functions[index];
    uint32_t count = f->signature.parameter_count;
    mr_ptx_param *params = allocate(m, (count + 1) * sizeof *params);
    if (!params) return NULL;
    uint32_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        const ptx_variable *v = &f->signature.parameters[i];
        /* Compilers name parameters KERNEL_param_0: the number is all that is left of the source. */
        const char *number = strstr(v->name, "_param_");
        bool is_word = v->type == PTX_b64 || v->type == PTX_u64 || v->type == PTX_s64;
        params[i] =
            (mr_ptx_param){.name = number ? number + 7 : v->name,
                           .type = v->type,
                           .bytes = (uint32_t)v->bytes,
                           .align = v->align ? v->align : mr_ptx_types[v->type].bytes,
                           .offset = m->routines[index].parameter_offset[i],
                           .is_struct = v->count != 1 || mr_ptx_types[v->type].bytes != v->bytes,
                           .may_be_pointer = v->bytes == 8 && is_word};
        end = params[i].offset + params[i].bytes;
    }
    *out_bytes = end;
    return params;
}

static uint32_t most_threads(const ptx_function *f) {
    uint64_t most = 1024;
    const uint32_t *given = f->wanted_threads[0] ? f->wanted_threads : f->max_threads;
    if (given[0]) {
        uint64_t threads = (uint64_t)given[0] * (given[1] ? given[1] : 1);
        threads = threads < 1024 ? threads * (given[2] ? given[2] : 1) : threads;
        if (threads < most) most = threads;
    }
    return (uint32_t)most;
}

/* The driver's compiler refuses the module. Dynamic shared memory may be larger. */
static mr_status check_shared(const mr_ptx_module *m, const ptx_function *f,
                              const ptx_shared_layout *layout) {
    char where[256];
    if (layout->static_shared <= MOST_STATIC_SHARED) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: kernel `%s` has %u bytes of static shared memory; CUDA allows %u. Declare "
                   "it as `extern __shared__`, and give its bytes to the launch as `shared`",
                   ptx_place_text(&m->tree, &f->place, where, sizeof where), f->name,
                   layout->static_shared, MOST_STATIC_SHARED);
}

static mr_status make_kernel(mr_ptx_module *m, walk *w, uint8_t *used, uint32_t index,
                             uint32_t at) {
    const ptx_function *f = &m->tree.functions[index];
    uint32_t count = m->tree.function_count;
    memset(w->state, 0, count);
    memset(w->depth, 0, count * sizeof *w->depth);
    w->recursive = false;
    visit(w, index);
    uint32_t registers = 0;
    const char *problem = m->routines[index].problem;
    for (uint32_t i = 0; i < count; i++) {
        if (w->state[i] && m->routines[i].registers > registers)
            registers = m->routines[i].registers;
        if (w->state[i] && !problem) problem = m->routines[i].problem;
    }
    ptx_shared_layout *layout = &m->layouts[at];
    MR_TRY(pardon(m, lay_out_shared(m, layout, w->state, used, f->name), &problem));
    MR_TRY(check_shared(m, f, layout));
    mr_ptx_kernel *k = &m->kernels[at];
    *k = (mr_ptx_kernel){
        .module = m,
        .tree = &m->tree,
        .function = f,
        .name = f->name,
        .problem = problem,
        .param_count = f->signature.parameter_count,
        .shared_bytes = layout->static_shared,
        .local_bytes = w->depth[index] < UINT32_MAX ? (uint32_t)w->depth[index] : UINT32_MAX,
        /* registers that a kernel always needs: addresses, the stack pointer, the constant bank's base */
        .registers = registers + 4 < 16    ? 16
                     : registers + 4 > 255 ? 255
                                           : registers + 4,
        .max_threads = most_threads(f),
        .recursive = w->recursive};
    if (f->max_registers && k->registers > f->max_registers) k->registers = f->max_registers;
    k->params = make_params(m, index, &k->param_bytes);
    k->access = ptx_access_infer(&m->tree, f);
    return k->params && k->access ? MR_OK : mr_no_memory("to load a PTX module");
}

static mr_status make_kernels(mr_ptx_module *m) {
    const ptx_tree *tree = &m->tree;
    uint32_t count = tree->function_count, kernels = 0;
    for (uint32_t i = 0; i < count; i++) {
        kernels += tree->functions[i].is_entry && tree->functions[i].is_defined;
    }
    m->kernels = allocate(m, (kernels + 1) * sizeof *m->kernels);
    m->layouts = allocate(m, (kernels + 1) * sizeof *m->layouts);
    walk w = {.m = m,
              .state = calloc(count + 1, 1),
              .depth = calloc(count + 1, sizeof *w.depth),
              .stack = calloc(count + 1, sizeof *w.stack),
              .next = calloc(count + 1, sizeof *w.next)};
    uint8_t *used = calloc(tree->variable_count + 1, 1);
    mr_status status = MR_OK;
    if (!m->kernels || !m->layouts || !w.state || !w.depth || !w.stack || !w.next || !used) {
        status = mr_no_memory("to load a PTX module");
    }
    for (uint32_t i = 0; i < count && !status; i++) {
        if (!tree->functions[i].is_entry || !tree->functions[i].is_defined) continue;
        status = make_kernel(m, &w, used, i, m->kernel_count);
        m->kernel_count++;
    }
    free(w.state);
    free(w.depth);
    free(w.stack);
    free(w.next);
    free(used);
    return status;
}

/* ---- loading */

static mr_status decode_all(mr_ptx_module *m, ptx_run *const *lanes) {
    ptx_constants constants = {0};
    mr_status status = MR_OK;
    for (uint32_t i = 0; i < m->tree.function_count && !status; i++) {
        const char **problem = &m->routines[i].problem;
        if (!m->tree.functions[i].is_defined) continue;
        if (!*problem) status = pardon(m, ptx_decode(m, &constants, lanes, i), problem);
        /* A function that the decoder refused may not be analysed. */
        if (!status && *problem && !ptx_tree_empty(&m->tree, i))
            status = mr_no_memory("to load a PTX module");
    }
    mr_map_free(&constants.known);
    if (!status) {
        m->constants = aligned_alloc(64, (constants.data.count + 127) / 64 * 64);
        m->constant_bytes = constants.data.count;
        if (!m->constants) status = mr_no_memory("to load a PTX module");
        else if (constants.data.count)
            memcpy(m->constants, constants.data.items, constants.data.count);
    }
    mr_vec_free(&constants.data);
    return status;
}

static mr_status load(mr_ptx_module *m, const char *text, size_t size, const char *name,
                      ptx_run *const *lanes) {
    MR_TRY(ptx_read(text, size, name, &m->tree));
    m->name = strdup(name);
    m->printing = malloc(sizeof *m->printing);
    m->routines = allocate(m, (m->tree.function_count + 1) * sizeof *m->routines);
    if (!m->name || !m->printing || !m->routines) return mr_no_memory("to load a PTX module");
    pthread_mutex_init(m->printing, NULL);
    m->launch_bytes = PTX_LAUNCH_VECTORS * 4 * PTX_LANES;
    for (uint32_t i = 0; i < m->tree.function_count; i++) {
        m->routines[i].problem = m->tree.functions[i].problem;
        MR_TRY(pardon(m, lay_out(m, i), &m->routines[i].problem));
    }
    MR_TRY(decode_all(m, lanes));
    return make_kernels(m);
}

mr_status mr_ptx_module_load(const char *text, size_t size, const char *name,
                             mr_ptx_module **out_module) {
    mr_ptx_module *m = calloc(1, sizeof *m);
    if (!m) return mr_no_memory("to load a PTX module");
    m->references = 1;
    mr_status status = load(m, text, size, name, ptx_has_v3() ? ptx_lanes_v3 : ptx_lanes_plain);
    if (status) {
        mr_ptx_module_release(m);
        return status;
    }
    *out_module = m;
    return MR_OK;
}
