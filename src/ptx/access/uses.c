/* The variables of its module that a kernel uses, directly or in functions that it calls, and how. A variable whose
 * address is taken, and what its initial value points to, count as read and written; a string that the compiler made
 * is only read. */
#include <stdlib.h>
#include <string.h>

#include "ptx/access/access.h"

typedef struct {
    const ptx_tree *tree;
    bool *seen;    /* functions */
    uint8_t *uses; /* variables */
    uint32_t *todo,
        *variables; /* functions to look at; variables whose initial values are to be looked at */
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

static void use(search *s, uint32_t variable, uint8_t access) {
    const ptx_variable *v = &s->tree->variables[variable];
    if (!s->uses[variable]) s->variables[s->variable_count++] = variable; /* once for each */
    s->uses[variable] |= v->space == PTX_CONST || is_text(v) ? MR_PTX_READS : access;
}

static void use_what_it_points_to(search *s, const ptx_variable *v) {
    for (uint32_t i = 0; i < v->relocation_count; i++) {
        const ptx_relocation *r = &v->relocations[i];
        if (r->function >= 0) call(s, (uint32_t)r->function);
        else if (r->variable >= 0) use(s, (uint32_t)r->variable, MR_PTX_READS | MR_PTX_WRITES);
    }
}

/* The operand is the variable, or an address in it. */
static uint8_t access_by(const ptx_instruction *i, const ptx_operand *o) {
    if (!o->is_address) return MR_PTX_READS | MR_PTX_WRITES;
    switch (i->opcode) {
    case PTX_OP_ld:
    case PTX_OP_ldu: return MR_PTX_READS;
    case PTX_OP_st: return MR_PTX_WRITES;
    default: return MR_PTX_READS | MR_PTX_WRITES;
    }
}

static void look_at_operand(search *s, const ptx_instruction *i, const ptx_operand *o) {
    if (o->kind == PTX_VARIABLE) use(s, o->index, access_by(i, o));
    else if (o->kind == PTX_FUNCTION) call(s, o->index);
    else if (o->kind == PTX_PROTOTYPE) /* an indirect call: any function */
        for (uint32_t f = 0; f < s->tree->function_count; f++) call(s, f);
}

static void look_at(search *s, const ptx_instruction *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        const ptx_operand *o = &i->operands[k];
        look_at_operand(s, i, o);
        for (uint32_t e = 0; o->kind == PTX_LIST && e < o->count; e++)
            look_at_operand(s, i, &o->list[e]);
    }
}

static bool open_search(search *s, const ptx_tree *tree, const ptx_function *kernel,
                        uint8_t *uses) {
    *s = (search){.tree = tree,
                  .uses = uses,
                  .seen = calloc(tree->function_count + 1, sizeof *s->seen),
                  .todo = calloc(tree->function_count + 1, sizeof *s->todo),
                  .variables = calloc(tree->variable_count + 1, sizeof *s->variables)};
    if (uses) memset(uses, 0, tree->variable_count);
    bool ready = uses && s->seen && s->todo && s->variables;
    if (ready) call(s, (uint32_t)(kernel - tree->functions));
    return ready;
}

static void close_search(search *s) {
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
    return true;
}

bool ptx_access_of_variables(const ptx_tree *tree, const ptx_function *kernel,
                             uint8_t *out_access) {
    search s;
    bool ready = open_search(&s, tree, kernel, out_access);
    while (ready && look_at_next_function(&s)) continue;
    close_search(&s);
    return ready;
}
