/* Reads a module: its directives, and the order of its parts. See reader.h for the other files of the reader. */
#include <stdlib.h>
#include <string.h>

#include "ptx/read/reader.h"

/* ---- .version, .target, .address_size */

/* `8.3` is one number to the lexer, so the parts are taken from its text. */
static mr_status read_version(ptx_reader *r) {
    const ptx_token *t = &r->token;
    int part[2] = {0, 0}, dots = 0;
    bool good = t->kind == PTX_TOKEN_REAL && t->size <= 8;
    for (uint32_t i = 0; good && i < t->size; i++) {
        if (t->text[i] == '.') dots++;
        else if (t->text[i] >= '0' && t->text[i] <= '9' && dots <= 1)
            part[dots] = part[dots] * 10 + (t->text[i] - '0');
        else good = false;
    }
    if (!good || dots != 1) return ptx_expected(r, "a version such as `8.3`");
    r->version_major = part[0];
    r->version_minor = part[1];
    return ptx_advance(r);
}

/* sm_90, sm_90a, compute_80; 0: another word. */
static int architecture(const ptx_token *t) {
    uint32_t at = t->size > 3 && memcmp(t->text, "sm_", 3) == 0        ? 3
                  : t->size > 8 && memcmp(t->text, "compute_", 8) == 0 ? 8
                                                                       : t->size;
    int number = 0;
    for (; at < t->size && t->text[at] >= '0' && t->text[at] <= '9' && number < 10000; at++)
        number = number * 10 + (t->text[at] - '0');
    return number;
}

static mr_status read_target(ptx_reader *r) {
    char shown[PTX_SHOWN];
    uint32_t line = r->token.line;
    for (bool more = true; more;) {
        const ptx_token t = r->token;
        if (t.kind != PTX_TOKEN_WORD) return ptx_expected(r, "a target such as `sm_90`");
        ptx_shown(t.text, t.size, shown);
        int number = architecture(&t);
        if (number > PTX_NEWEST_TARGET)
            return ptx_fail(
                r, t.line, MR_CODE_NOT_SUPPORTED,
                "the PTX is made for %s, which is newer than sm_%d: compile it for sm_%d "
                "or older",
                shown, PTX_NEWEST_TARGET, PTX_NEWEST_TARGET);
        if (number) r->target = number;
        if (t.size == 14 && memcmp(t.text, "map_f64_to_f32", 14) == 0)
            return ptx_fail(r, t.line, MR_CODE_NOT_SUPPORTED,
                            "the target `map_f64_to_f32` (GPUs without double) is not covered");
        MR_TRY(ptx_advance(r));
        MR_TRY(ptx_accept(r, ',', &more));
    }
    if (r->target) return MR_OK;
    return ptx_fail(r, line, MR_CODE_INVALID_ARGUMENT,
                    "`.target` names no architecture, such as `sm_90`");
}

static mr_status read_address_size(ptx_reader *r) {
    uint64_t bits;
    uint32_t line = r->token.line;
    MR_TRY(ptx_take_count(r, "64 after `.address_size`", UINT32_MAX, &bits));
    if (bits == 64) return MR_OK;
    return ptx_fail(r, line, MR_CODE_NOT_SUPPORTED,
                    "addresses of %u bits are not covered: compile for 64 bits (`-m64`)",
                    (unsigned)bits);
}

static mr_status read_head(ptx_reader *r) {
    bool taken;
    MR_TRY(ptx_accept_dot(r, "version", &taken));
    if (!taken) return ptx_expected(r, "`.version` at the start of the PTX text");
    MR_TRY(read_version(r));
    MR_TRY(ptx_accept_dot(r, "target", &taken));
    if (!taken) return ptx_expected(r, "`.target` after `.version`");
    MR_TRY(read_target(r));
    MR_TRY(ptx_accept_dot(r, "address_size", &taken));
    return taken ? read_address_size(r) : MR_OK;
}

/* ---- variables */

/* The variable of that name, made if this is its first declaration; `.extern` may be followed by the definition. */
static mr_status declare_variable(ptx_reader *r, const ptx_declaration *d, uint32_t *out_index) {
    ptx_symbol symbol = {PTX_NAMES_VARIABLE, (uint32_t)r->variables.count, 1};
    int32_t binding = ptx_record(r, d->name)->binding;
    *out_index = symbol.index;
    if (binding >= 0 && r->names.bindings.items[binding].symbol.kind == PTX_NAMES_VARIABLE) {
        *out_index = r->names.bindings.items[binding].symbol.index;
        ptx_variable *before = &r->variables.items[*out_index];
        if ((before->is_extern || d->variable.is_extern) && before->space == d->variable.space) {
            if (before->is_extern) *before = d->variable;
            return MR_OK;
        }
    }
    MR_TRY(ptx_bind(r, d->name, symbol));
    return mr_vec_push(&r->variables, d->variable) ? MR_OK : ptx_no_memory(r);
}

static mr_status read_variables(ptx_reader *r, ptx_space space, const ptx_function *linkage,
                                bool is_extern) {
    ptx_declaration attributes, d;
    MR_TRY(ptx_read_attributes(r, space, &attributes));
    for (bool more = true; more;) {
        uint32_t index;
        MR_TRY(ptx_read_declarator(r, &attributes, &d));
        d.variable.is_extern = is_extern;
        d.variable.is_visible = linkage->is_visible || linkage->is_weak;
        MR_TRY(declare_variable(r, &d, &index));
        MR_TRY(ptx_accept(r, '=', &more));
        if (more && (is_extern || space == PTX_SHARED || space == PTX_LOCAL))
            return ptx_wrong(r, "only variables in global and constant memory have initial values");
        if (more) {
            MR_TRY(ptx_read_initialiser(r, &d));
            r->variables.items[index] = d.variable;
        } else if (!d.variable.bytes && !is_extern) {
            return ptx_wrong(r, "the array `%.200s` has no size and no initial value",
                             d.variable.name);
        }
        MR_TRY(ptx_accept(r, ',', &more));
    }
    return ptx_expect(r, ';', "after the variable");
}

/* ---- the module */

/* After `.alias`: a, b: the declared function a is the function b. */
static mr_status read_alias(ptx_reader *r) {
    uint32_t indices[2];
    for (int i = 0; i < 2; i++) {
        ptx_name name;
        ptx_symbol symbol;
        bool found;
        if (i) MR_TRY(ptx_expect(r, ',', "after the first name of an alias"));
        MR_TRY(ptx_take_name(r, "the name of a function", &name));
        MR_TRY(ptx_resolve(r, name, &symbol, &found));
        if (!found || symbol.kind != PTX_NAMES_FUNCTION)
            return ptx_wrong(r, "`.alias` names something that is not a function");
        indices[i] = symbol.index;
    }
    ptx_function *alias = &r->functions.items[indices[0]], *of = &r->functions.items[indices[1]];
    if (alias->is_defined || !of->is_defined)
        return ptx_wrong(
            r, "`.alias` needs a function that is only declared, and one that is defined");
    const char *name = alias->name;
    bool is_visible = alias->is_visible, is_weak = alias->is_weak;
    *alias = *of;
    alias->name = name;
    alias->is_visible = is_visible;
    alias->is_weak = is_weak;
    return ptx_expect(r, ';', "after the alias");
}

static mr_status read_linkage(ptx_reader *r, ptx_function *out, bool *out_extern) {
    bool extern_, visible, weak, common = true;
    *out_extern = false;
    do {
        MR_TRY(ptx_accept_dot(r, "visible", &visible));
        MR_TRY(ptx_accept_dot(r, "extern", &extern_));
        MR_TRY(ptx_accept_dot(r, "weak", &weak));
        MR_TRY(ptx_accept_dot(r, "common", &common));
        out->is_visible |= visible;
        out->is_weak |= weak || common;
        *out_extern |= extern_;
    } while (visible || extern_ || weak || common);
    return MR_OK;
}

static mr_status read_symbol(ptx_reader *r) {
    static const struct {
        const char *word;
        ptx_space space;
    } spaces[] = {
        {"global", PTX_GLOBAL}, {"const", PTX_CONST}, {"shared", PTX_SHARED}, {"local", PTX_LOCAL}};
    ptx_function linkage = {0};
    bool is_extern, taken;
    MR_TRY(read_linkage(r, &linkage, &is_extern));
    MR_TRY(ptx_accept_dot(r, "func", &taken));
    if (taken) return ptx_read_function(r, &linkage);
    MR_TRY(ptx_accept_dot(r, "entry", &taken));
    linkage.is_entry = taken;
    if (taken) return ptx_read_function(r, &linkage);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        MR_TRY(ptx_accept_dot(r, spaces[i].word, &taken));
        if (taken) return read_variables(r, spaces[i].space, &linkage, is_extern);
    }
    char shown[PTX_SHOWN];
    const ptx_token *t = &r->token;
    const char *group = t->kind == PTX_TOKEN_DOT ? ptx_uncovered(t->text - 1, t->size + 1) : NULL;
    if (group)
        return ptx_fail(r, t->line, MR_CODE_NOT_SUPPORTED, "%s is not covered: %s",
                        ptx_shown(t->text - 1, t->size + 1, shown), group);
    return ptx_expected(r, "a function, a kernel, a variable or a directive");
}

static mr_status read_module(ptx_reader *r) {
    bool taken;
    MR_TRY(ptx_advance(r));
    MR_TRY(read_head(r));
    while (r->token.kind != PTX_TOKEN_END) {
        MR_TRY(ptx_accept_dot(r, "file", &taken));
        if (taken) MR_TRY(ptx_read_file(r));
        if (taken) continue;
        MR_TRY(ptx_accept_dot(r, "section", &taken));
        if (taken) MR_TRY(ptx_skip_section(r));
        if (taken) continue;
        MR_TRY(ptx_accept_dot(r, "pragma", &taken));
        if (taken) MR_TRY(ptx_read_pragma(r));
        if (taken) continue;
        MR_TRY(ptx_accept_dot(r, "alias", &taken));
        if (taken) MR_TRY(read_alias(r));
        if (taken) continue;
        MR_TRY(ptx_accept_dot(r, "loc", &taken));
        if (taken) MR_TRY(ptx_read_loc(r));
        if (taken) continue;
        MR_TRY(ptx_accept(r, ';', &taken));
        if (!taken) MR_TRY(read_symbol(r));
    }
    return MR_OK;
}

static mr_status make_tree(ptx_reader *r, ptx_tree *out) {
    for (size_t i = 0; i < r->files.count; i++)
        if (!r->files.items[i]) r->files.items[i] = "";
    *out = (ptx_tree){
        .version_major = r->version_major,
        .version_minor = r->version_minor,
        .target = r->target,
        .files = ptx_copy(r, r->files.items, r->files.count, sizeof *r->files.items),
        .file_count = (uint32_t)r->files.count,
        .variables =
            ptx_copy(r, r->variables.items, r->variables.count, sizeof *r->variables.items),
        .variable_count = (uint32_t)r->variables.count,
        .functions =
            ptx_copy(r, r->functions.items, r->functions.count, sizeof *r->functions.items),
        .function_count = (uint32_t)r->functions.count,
        .arena = r->arena,
    };
    return out->files && out->variables && out->functions ? MR_OK : ptx_no_memory(r);
}

static void free_reader(ptx_reader *r) {
    ptx_names_free(&r->names);
    mr_map_free(&r->file_indices);
    mr_map_free(&r->inlined);
    mr_vec_free(&r->files);
    mr_vec_free(&r->callers);
    mr_vec_free(&r->variables);
    mr_vec_free(&r->functions);
    mr_vec_free(&r->body.registers);
    mr_vec_free(&r->body.variables);
    mr_vec_free(&r->body.instructions);
    mr_vec_free(&r->body.targets);
    mr_vec_free(&r->body.prototypes);
    mr_vec_free(&r->body.label_uses);
    free(r);
}

mr_status ptx_read(const char *text, size_t size, const char *name, ptx_tree *out) {
    *out = (ptx_tree){0};
    if (size > PTX_LONGEST_TEXT)
        return mr_fail(MR_CODE_NOT_SUPPORTED, "%s: PTX text of more than 1 GiB is not covered",
                       name);
    mr_region *arena = calloc(1, sizeof *arena);
    ptx_reader *r = calloc(1, sizeof *r);
    mr_status status = MR_OK;
    if (!arena || !r) {
        free(arena);
        free(r);
        return mr_no_memory("to read %s", name);
    }
    r->name = name;
    r->lexer = (ptx_lexer){text, text + size, 1};
    r->arena = arena;
    if (!ptx_names_init(&r->names, arena) || !mr_vec_push(&r->files, "")) status = ptx_no_memory(r);
    if (!status) status = read_module(r);
    if (!status) status = make_tree(r, out);
    free_reader(r);
    if (!status) return MR_OK;
    mr_region_free(arena);
    free(arena);
    *out = (ptx_tree){0};
    return status;
}

bool ptx_tree_empty(ptx_tree *tree, uint32_t function) {
    ptx_function *f = (ptx_function *)(uintptr_t)&tree->functions[function]; /* the tree owns it */
    f->instruction_count = f->variable_count = f->targets_count = 0;
    return ptx_find_blocks(f, tree->arena);
}

void ptx_tree_free(ptx_tree *tree) {
    if (tree->arena) mr_region_free(tree->arena);
    free(tree->arena);
    *tree = (ptx_tree){0};
}
