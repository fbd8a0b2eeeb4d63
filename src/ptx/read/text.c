/* Places and instructions as texts, for messages and tests. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "ptx/read/tree.h"

const ptx_type_info mr_ptx_types[PTX_TYPE_COUNT] = {{"no type", 0, PTX_BITS},
#define X(name, bytes, sort) {#name, bytes, PTX_##sort},
                                                    PTX_TYPES(X)
#undef X
};

const char *const ptx_opcode_names[PTX_OP_COUNT] = {"",
#define X(name) #name,
                                                    PTX_OPCODES(X)
#undef X
};

const char *const ptx_modifier_names[PTX_MOD_COUNT] = {"",
#define X(name, text) text,
                                                       PTX_MODIFIERS(X)
#undef X
};

const char *const ptx_special_names[PTX_SREG_COUNT] = {
#define X(name, bytes) #name,
    PTX_SPECIALS(X)
#undef X
};

bool ptx_special_is_vector(ptx_special special) {
    switch (special) {
    case PTX_SREG_tid:
    case PTX_SREG_ntid:
    case PTX_SREG_ctaid:
    case PTX_SREG_nctaid:
    case PTX_SREG_clusterid:
    case PTX_SREG_nclusterid:
    case PTX_SREG_cluster_ctaid:
    case PTX_SREG_cluster_nctaid: return true;
    default: return false;
    }
}

bool ptx_has(const ptx_instruction *i, ptx_modifier m) {
    for (int k = 0; k < i->modifier_count; k++)
        if (i->modifiers[k] == m) return true;
    return false;
}

/* ---- places */

static const char *file_of(const ptx_tree *tree, uint32_t file) {
    return file < tree->file_count ? tree->files[file] : "";
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *ptx_place_text(const ptx_tree *tree, const ptx_place *p, char *out, size_t size) {
    const char *outer = file_of(tree, p->outer_file), *inner = file_of(tree, p->file);
    bool inlined = p->file != p->outer_file || p->line != p->outer_line;
    if (!*outer || !p->outer_line) snprintf(out, size, "line %u of the PTX", (unsigned)p->ptx_line);
    else if (inlined && *inner && p->line)
        mr_text_format(out, size, "%s:%u (in code of %s:%u)", outer, (unsigned)p->outer_line,
                       last_part(inner), (unsigned)p->line);
    else mr_text_format(out, size, "%s:%u", outer, (unsigned)p->outer_line);
    return out;
}

/* ---- instructions */

/* A text of a fixed size; a longer one is cut. */
typedef struct {
    const ptx_tree *tree;
    const ptx_function *function;
    char *out;
    size_t size, used;
} text;

static void put(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(text *t, const char *format, ...) {
    va_list args;
    if (t->used + 1 >= t->size) return;
    va_start(args, format);
    int length = mr_number_formatv(t->out + t->used, t->size - t->used, format, args);
    va_end(args);
    if (length > 0) t->used += (size_t)length;
    if (t->used >= t->size) t->used = t->size - 1;
}

static const char *parameter_name(const ptx_signature *s, uint32_t index) {
    return index < s->parameter_count ? s->parameters[index].name
                                      : s->results[index - s->parameter_count].name;
}

static void put_special(text *t, const ptx_operand *o) {
    put(t, "%%%s", ptx_special_names[o->index]);
    if (o->index == PTX_SREG_envreg) put(t, "%u", o->component);
    else if (ptx_special_is_vector((ptx_special)o->index)) put(t, ".%c", "xyz"[o->component]);
}

static void put_offset(text *t, int64_t offset) {
    if (offset) put(t, "+%" PRId64, offset);
}

/* An operand that is not a list. */
static void put_item(text *t, const ptx_operand *o) {
    const ptx_function *f = t->function;
    if (o->is_address) put(t, "[");
    if (o->negated) put(t, "!");
    switch ((ptx_operand_kind)o->kind) {
    case PTX_REGISTER: put(t, "%s", f->registers[o->index].name); break;
    case PTX_SPECIAL: put_special(t, o); break;
    case PTX_INTEGER: put(t, "%" PRId64, (int64_t)o->bits); break;
    case PTX_REAL:
        if (o->single) put(t, "0f%08" PRIX32, (uint32_t)o->bits);
        else put(t, "0d%016" PRIX64, o->bits);
        break;
    case PTX_VARIABLE: put(t, "%s", t->tree->variables[o->index].name); break;
    case PTX_LOCAL_VARIABLE: put(t, "%s", f->variables[o->index].name); break;
    case PTX_PARAMETER: put(t, "%s", parameter_name(&f->signature, o->index)); break;
    case PTX_FUNCTION: put(t, "%s", t->tree->functions[o->index].name); break;
    case PTX_LABEL: put(t, "L%u", (unsigned)o->index); break;
    case PTX_TARGETS: put(t, "T%u", (unsigned)o->index); break;
    case PTX_PROTOTYPE: put(t, "P%u", (unsigned)o->index); break;
    case PTX_SINK:
    case PTX_LIST: put(t, "_"); break;
    }
    bool based = o->kind == PTX_VARIABLE || o->kind == PTX_LOCAL_VARIABLE ||
                 o->kind == PTX_PARAMETER || (o->kind == PTX_REGISTER && o->is_address);
    if (based) put_offset(t, o->offset);
    if (o->is_address) put(t, "]");
}

static void put_operand(text *t, const ptx_operand *o, const char *brackets) {
    if (o->kind != PTX_LIST) {
        put_item(t, o);
        return;
    }
    put(t, "%c", brackets[0]);
    for (int i = 0; i < o->count; i++) {
        if (i) put(t, ", ");
        put_item(t, &o->list[i]);
    }
    put(t, "%c", brackets[1]);
}

static void put_call(text *t, const ptx_instruction *i) {
    if (i->operands[0].count) {
        put_operand(t, &i->operands[0], "()");
        put(t, ", ");
    }
    put_item(t, &i->operands[1]);
    for (int k = 2; k < i->operand_count; k++) {
        if (k == 2 && !i->operands[2].count) continue;
        put(t, ", ");
        put_operand(t, &i->operands[k], "()");
    }
}

static void put_operands(text *t, const ptx_instruction *i) {
    for (int k = 0; k < i->operand_count; k++) {
        if (k) put(t, k == 1 && i->two_results ? "|" : ", ");
        put_operand(t, &i->operands[k], "{}");
    }
}

const char *ptx_instruction_text(const ptx_tree *tree, const ptx_function *f,
                                 const ptx_instruction *i, char *out, size_t size) {
    text t = {tree, f, out, size, 0};
    if (size) *out = '\0';
    if (i->guard >= 0) put(&t, "@%s%s ", i->guard_negated ? "!" : "", f->registers[i->guard].name);
    put(&t, "%s", ptx_opcode_names[i->opcode]);
    for (int k = 0; k < i->modifier_count; k++) put(&t, ".%s", ptx_modifier_names[i->modifiers[k]]);
    for (int k = 0; k < i->type_count; k++) put(&t, ".%s", mr_ptx_types[i->types[k]].name);
    if (i->operand_count) put(&t, " ");
    if (i->opcode == PTX_OP_call) put_call(&t, i);
    else put_operands(&t, i);
    return out;
}
