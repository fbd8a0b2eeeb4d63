/* The variables of its module that a kernel uses, directly or in functions that it calls, and how. If the address of a
 * variable is taken, the variable is used in the ways of all accesses that may go through such an address. If there are
 * none, it counts as read and written. A variable to which an initial value points counts as that, too. A string that
 * the compiler made is only read. */
#include <stdlib.h>
#include <string.h>

#include "ptx/access/access.h"
#include "ptx/access/values.h"

typedef struct {
    const ptx_tree *tree;
    bool *seen;         /* functions */
    uint8_t *uses;      /* variables */
    bool *used, *taken; /* variables; those whose addresses are values */
    uint8_t through;    /* the accesses that may go through such values */
    const ptx_access *access;
    uint32_t *todo,
        *variables; /* functions to search; variables whose initial values must be searched */
    uint32_t count, variable_count;
} search;

static void call(search *s, uint32_t function) {
    if (function >= s->tree->function_count || s->seen[function]) return;
    s->seen[function] = true;
    s->todo[s->count++] = function;
}

/* By their names: those of string literals, of __func__ and of assert's texts. */
static bool is_text(const ptx_variable *v) {
    static const char *const starts[] = {"$str",       ".str",     "_$_str",
                                         "__unnamed_", "__func__", "__PRETTY_FUNCTION__"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(v->name, starts[i], strlen(starts[i])) == 0) return true;
    return false;
}

static bool is_read_only(const ptx_variable *v) {
    return v->space == PTX_CONST || is_text(v);
}

static void use(search *s, uint32_t variable, uint8_t access) {
    const ptx_variable *v = &s->tree->variables[variable];
    if (!s->used[variable]) s->variables[s->variable_count++] = variable; /* once for each */
    s->used[variable] = true;
    s->uses[variable] |= access && is_read_only(v) ? MR_PTX_READS : access;
}

static void use_what_it_points_to(search *s, const ptx_variable *v) {
    for (uint32_t i = 0; i < v->relocation_count; i++) {
        const ptx_relocation *r = &v->relocations[i];
        if (r->function >= 0) call(s, (uint32_t)r->function);
        else if (r->variable >= 0) use(s, (uint32_t)r->variable, MR_PTX_READS | MR_PTX_WRITES);
    }
}

static uint8_t access_by(const ptx_instruction *i) {
    switch (i->opcode) {
    case PTX_OP_ld:
    case PTX_OP_ldu: return MR_PTX_READS;
    case PTX_OP_st: return MR_PTX_WRITES;
    default: return MR_PTX_READS | MR_PTX_WRITES;
    }
}

static void look_at_operand(search *s, const ptx_instruction *i, const ptx_operand *o) {
    if (o->kind == PTX_VARIABLE) {
        use(s, o->index, o->is_address ? access_by(i) : 0);
        s->taken[o->index] |= !o->is_address;
    } else if (o->kind == PTX_FUNCTION) call(s, o->index);
    else if (o->kind == PTX_PROTOTYPE) /* an indirect call: any function */
        for (uint32_t f = 0; f < s->tree->function_count; f++) call(s, f);
}

/* Through a register, unless all that its address is computed from are the kernel's parameters. */
static void look_through(search *s, const ptx_instruction *i, const ptx_operand *o) {
    const ptx_pointer_place *list;
    ptx_space space = access_space_of(i);
    if (!o->is_address || o->kind != PTX_REGISTER) return;
    if (space != PTX_GLOBAL && space != PTX_GENERIC) return;
    uint32_t count = ptx_access_sources(s->access, i, &list);
    bool is_other = count == 0;
    for (uint32_t k = 0; k < count; k++) is_other |= list[k].param == PTX_SOURCE_VARIABLES;
    if (is_other) s->through |= access_by(i);
}

static void look_at(search *s, const ptx_instruction *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        const ptx_operand *o = &i->operands[k];
        look_at_operand(s, i, o);
        look_through(s, i, o);
        for (uint32_t e = 0; o->kind == PTX_LIST && e < o->count; e++)
            look_at_operand(s, i, &o->list[e]);
    }
}

static bool open_search(search *s, const ptx_access *access, const ptx_tree *tree,
                        const ptx_function *kernel, uint8_t *uses) {
    *s = (search){.tree = tree,
                  .uses = uses,
                  .access = access,
                  .used = calloc(tree->variable_count + 1, sizeof *s->used),
                  .taken = calloc(tree->variable_count + 1, sizeof *s->taken),
                  .seen = calloc(tree->function_count + 1, sizeof *s->seen),
                  .todo = calloc(tree->function_count + 1, sizeof *s->todo),
                  .variables = calloc(tree->variable_count + 1, sizeof *s->variables)};
    if (uses) memset(uses, 0, tree->variable_count);
    bool ready = uses && s->used && s->taken && s->seen && s->todo && s->variables;
    if (ready) call(s, (uint32_t)(kernel - tree->functions));
    return ready;
}

static void close_search(search *s) {
    free(s->used);
    free(s->taken);
    free(s->seen);
    free(s->todo);
    free(s->variables);
}

/* False: the kernel reaches no other function. */
static bool look_at_next_function(search *s) {
    while (s->variable_count)
        use_what_it_points_to(s, &s->tree->variables[s->variables[--s->variable_count]]);
    if (!s->count) return false;
    const ptx_function *f = &s->tree->functions[s->todo[--s->count]];
    for (uint32_t i = 0; i < f->instruction_count; i++) look_at(s, &f->instructions[i]);
    if (!f->instruction_count) s->through |= MR_PTX_READS; /* printf reads the text of a %s */
    return true;
}

bool ptx_access_of_variables(const ptx_access *access, const ptx_tree *tree,
                             const ptx_function *kernel, uint8_t *out_access) {
    search s;
    bool ready = open_search(&s, access, tree, kernel, out_access);
    while (ready && look_at_next_function(&s)) continue;
    for (uint32_t v = 0; ready && v < tree->variable_count; v++)
        if (s.taken[v])
            out_access[v] |= is_read_only(&tree->variables[v]) ? MR_PTX_READS
                             : s.through                       ? s.through
                                                               : MR_PTX_READS | MR_PTX_WRITES;
    close_search(&s);
    return ready;
}
