/* The body of a function: declarations, labels and instructions, in scopes that may be nested. Nesting is a counter,
 * not recursion. */
#include <string.h>

#include "ptx/read/reader.h"

/* ---- declarations */

static mr_status read_variable(ptx_reader *r, ptx_space space) {
    ptx_declaration attributes, d;
    MR_TRY(ptx_read_attributes(r, space, &attributes));
    for (bool more = true; more;) {
        MR_TRY(ptx_read_declarator(r, &attributes, &d));
        ptx_symbol symbol = {PTX_NAMES_LOCAL_VARIABLE, (uint32_t)r->body.variables.count, 1};
        if (ptx_at(r, '='))
            return ptx_wrong(r, "a variable in local or shared memory has no initial value");
        if (!mr_vec_push(&r->body.variables, d.variable)) return ptx_no_memory(r);
        MR_TRY(ptx_bind(r, d.name, symbol));
        MR_TRY(ptx_accept(r, ',', &more));
    }
    return ptx_expect(r, ';', "after the variable");
}

static mr_status read_directive(ptx_reader *r) {
    static const struct {
        const char *word;
        ptx_space space;
    } spaces[] = {{"param", PTX_PARAM}, {"shared", PTX_SHARED}, {"local", PTX_LOCAL}};
    bool taken;
    MR_TRY(ptx_accept_dot(r, "loc", &taken));
    if (taken) return ptx_read_loc(r);
    MR_TRY(ptx_accept_dot(r, "reg", &taken));
    if (taken) return ptx_read_registers(r);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        MR_TRY(ptx_accept_dot(r, spaces[i].word, &taken));
        if (taken) return read_variable(r, spaces[i].space);
    }
    MR_TRY(ptx_accept_dot(r, "pragma", &taken));
    if (taken) return ptx_read_pragma(r);
    MR_TRY(ptx_accept_dot(r, "file", &taken));
    if (taken) return ptx_read_file(r);
    MR_TRY(ptx_accept_dot(r, "section", &taken));
    if (taken) return ptx_skip_section(r);
    return ptx_expected(r, "an instruction or a declaration");
}

/* ---- labels, and what looks like one */

/* After `name: .branchtargets`. */
static mr_status read_targets(ptx_reader *r, ptx_name name) {
    MR_VEC(ptx_label_use) uses = {0};
    mr_status status = MR_OK;
    for (bool more = true; !status && more;) {
        ptx_label_use use = {.line = r->token.line, .place = r->place};
        status = ptx_take_name(r, "a label", &use.name);
        if (!status && !mr_vec_push(&uses, use)) status = ptx_no_memory(r);
        if (!status) status = ptx_accept(r, ',', &more);
    }
    uint32_t *items = status ? NULL : ptx_alloc(r, uses.count, sizeof *items);
    if (!status && !items) status = ptx_no_memory(r);
    for (size_t i = 0; !status && i < uses.count; i++) {
        uses.items[i].slot = &items[i];
        status = ptx_use_label(r, uses.items[i]);
    }
    ptx_targets targets = {items, (uint32_t)uses.count};
    ptx_symbol symbol = {PTX_NAMES_TARGETS, (uint32_t)r->body.targets.count, 1};
    mr_vec_free(&uses);
    MR_TRY(status);
    if (!mr_vec_push(&r->body.targets, targets)) return ptx_no_memory(r);
    MR_TRY(ptx_bind(r, name, symbol));
    return ptx_expect(r, ';', "after the labels");
}

static mr_status bind_prototype(ptx_reader *r, ptx_name name, const ptx_signature *signature) {
    ptx_symbol symbol = {PTX_NAMES_PROTOTYPE, (uint32_t)r->body.prototypes.count, 1};
    if (!mr_vec_push(&r->body.prototypes, *signature)) return ptx_no_memory(r);
    return ptx_bind(r, name, symbol);
}

/* After `name: .callprototype`. */
static mr_status read_prototype(ptx_reader *r, ptx_name name) {
    ptx_signature signature;
    ptx_name placeholder;
    bool taken;
    MR_TRY(ptx_read_signature(r, &signature, &placeholder));
    MR_TRY(ptx_accept_dot(r, "noreturn", &taken));
    MR_TRY(bind_prototype(r, name, &signature));
    return ptx_expect(r, ';', "after the prototype");
}

/* After `name: .calltargets`: functions of one signature, which serves as the prototype. */
static mr_status read_call_targets(ptx_reader *r, ptx_name name) {
    const ptx_signature *signature = NULL;
    for (bool more = true; more;) {
        ptx_name callee;
        ptx_symbol symbol;
        bool found;
        MR_TRY(ptx_take_name(r, "the name of a function", &callee));
        MR_TRY(ptx_resolve(r, callee, &symbol, &found));
        if (!found || symbol.kind != PTX_NAMES_FUNCTION)
            return ptx_wrong(r, "`.calltargets` names something that is not a function");
        signature = &r->functions.items[symbol.index].signature;
        MR_TRY(ptx_accept(r, ',', &more));
    }
    MR_TRY(bind_prototype(r, name, signature));
    return ptx_expect(r, ';', "after the functions");
}

/* After `name:`. */
static mr_status read_label(ptx_reader *r, ptx_name name) {
    bool taken;
    MR_TRY(ptx_accept_dot(r, "branchtargets", &taken));
    if (taken) return read_targets(r, name);
    MR_TRY(ptx_accept_dot(r, "callprototype", &taken));
    if (taken) return read_prototype(r, name);
    MR_TRY(ptx_accept_dot(r, "calltargets", &taken));
    if (taken) return read_call_targets(r, name);
    ptx_symbol symbol = {PTX_NAMES_LABEL, (uint32_t)r->body.instructions.count, 1};
    return ptx_bind(r, name, symbol);
}

/* ---- statements */

/* After `@`. */
static mr_status read_guard(ptx_reader *r, int32_t *out_guard, bool *out_negated) {
    ptx_operand operand;
    uint32_t line = r->token.line;
    MR_TRY(ptx_accept(r, '!', out_negated));
    if (r->token.kind != PTX_TOKEN_WORD) return ptx_expected(r, "a predicate register after `@`");
    MR_TRY(ptx_read_operand(r, &operand));
    if (operand.kind != PTX_REGISTER || r->body.registers.items[operand.index].type != PTX_pred)
        return ptx_fail(r, line, MR_CODE_INVALID_ARGUMENT,
                        "the guard after `@` must be a register of the type `.pred`");
    *out_guard = (int32_t)operand.index;
    return MR_OK;
}

static mr_status read_statement(ptx_reader *r) {
    uint32_t line = r->token.line;
    int32_t guard = -1;
    bool negated = false, guarded, labelled;
    ptx_name name;
    if (r->token.kind == PTX_TOKEN_DOT) return read_directive(r);
    MR_TRY(ptx_accept(r, '@', &guarded));
    if (guarded) MR_TRY(read_guard(r, &guard, &negated));
    MR_TRY(ptx_take_name(r, "an instruction", &name));
    MR_TRY(ptx_accept(r, ':', &labelled));
    if (labelled && guarded)
        return ptx_wrong(r, "a guard (`@%%p`) stands after a label, not before it");
    if (labelled) return read_label(r, name);
    return ptx_read_instruction(r, guard, negated, line, name);
}

static mr_status read_statements(ptx_reader *r) {
    for (bool taken;;) {
        MR_TRY(ptx_accept(r, '{', &taken));
        if (taken) {
            MR_TRY(ptx_open_scope(r));
            continue;
        }
        if (ptx_at(r, '}')) {
            MR_TRY(ptx_close_scope(r));
            if (r->depth == 0) return MR_OK;
            MR_TRY(ptx_advance(r));
            continue;
        }
        MR_TRY(ptx_accept(r, ';', &taken));
        if (!taken) MR_TRY(read_statement(r));
    }
}

/* ---- the function */

static mr_status bind_parameters(ptx_reader *r, const ptx_variable *items, uint32_t count,
                                 uint32_t first) {
    for (uint32_t i = 0; i < count; i++) {
        ptx_symbol symbol = {PTX_NAMES_PARAMETER, first + i, 1};
        ptx_name name = ptx_names_find(&r->names, items[i].name, strlen(items[i].name));
        if (strcmp(items[i].name, "_") != 0) MR_TRY(ptx_bind(r, name, symbol));
    }
    return MR_OK;
}

#define KEEP(field, name)                                                                          \
    do {                                                                                           \
        f->field = ptx_copy(r, b->name.items, b->name.count, sizeof *b->name.items);               \
        if (!f->field) return ptx_no_memory(r);                                                    \
    } while (0)

static mr_status keep(ptx_reader *r, ptx_function *f) {
    ptx_body *b = &r->body;
    KEEP(registers, registers);
    KEEP(variables, variables);
    KEEP(instructions, instructions);
    KEEP(targets, targets);
    KEEP(prototypes, prototypes);
    f->register_count = (uint32_t)b->registers.count;
    f->variable_count = (uint32_t)b->variables.count;
    f->instruction_count = (uint32_t)b->instructions.count;
    f->targets_count = (uint32_t)b->targets.count;
    f->prototype_count = (uint32_t)b->prototypes.count;
    uint32_t line = f->place.ptx_line;
    f->place = b->first_place;
    f->place.ptx_line = line;
    f->is_defined = true;
    return ptx_find_blocks(f, r->arena) ? MR_OK : ptx_no_memory(r);
}

static void begin(ptx_reader *r) {
    ptx_body *b = &r->body;
    b->registers.count = b->variables.count = b->instructions.count = 0;
    b->targets.count = b->prototypes.count = b->label_uses.count = 0;
    r->place = (ptx_place){0};
}

static mr_status read_body(ptx_reader *r, ptx_function *f) {
    begin(r);
    r->body.first_place = r->body.own_place = r->place;
    MR_TRY(ptx_expect(r, '{', "before the body of a function"));
    MR_TRY(ptx_open_scope(r));
    MR_TRY(bind_parameters(r, f->signature.parameters, f->signature.parameter_count, 0));
    MR_TRY(bind_parameters(r, f->signature.results, f->signature.result_count,
                           f->signature.parameter_count));
    return read_statements(r);
}

/* Skips the body without reading it. */
static mr_status skip_body(ptx_reader *r) {
    begin(r);
    MR_TRY(ptx_expect(r, '{', "before the body of a function"));
    for (uint64_t depth = 1; depth > 0;) {
        if (ptx_at(r, '}') && --depth == 0) break;
        if (ptx_at(r, '{')) depth++;
        if (r->token.kind == PTX_TOKEN_END) return ptx_expected(r, "`}` after the body");
        MR_TRY(ptx_advance(r));
    }
    return MR_OK;
}

mr_status ptx_read_body(ptx_reader *r, ptx_function *f) {
    ptx_lexer lexer = r->lexer;
    ptx_token token = r->token;
    size_t first_binding = r->names.bindings.count;
    mr_status status = f->problem ? skip_body(r) : read_body(r, f);
    if (status) {
        MR_TRY(ptx_pardon(r, status, &f->problem));
        ptx_unbind(r, first_binding);
        r->depth = 0;
        r->lexer = lexer;
        r->token = token;
        MR_TRY(skip_body(r));
    }
    MR_TRY(keep(r, f));
    r->place = (ptx_place){0};
    return ptx_advance(r); /* the brace, only now: an error after it has no source line */
}
