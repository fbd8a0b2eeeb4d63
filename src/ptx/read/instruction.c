/* One instruction: opcode, modifiers, types and operands, as they stand. Three families have operands of their own
 * form: calls, branches, and those with two results (`p|q`). */
#include <stdio.h>
#include <string.h>

#include "ptx/read/reader.h"

/* Many branches may share a long list: without a limit, the control flow of a short text could fill the memory. */
#define MOST_TABLE_EDGES (1 << 22)

/* `of` is the opcode that a modifier belongs to; NULL: the word is the opcode. */
static mr_status unknown_word(ptx_reader *r, uint32_t line, const char *word, uint32_t size,
                              const char *of) {
    char shown[PTX_SHOWN];
    const char *group = ptx_uncovered(word, size);
    mr_code code = group ? MR_CODE_NOT_SUPPORTED : MR_CODE_INVALID_ARGUMENT;
    ptx_shown(word, size, shown);
    if (group && of)
        return ptx_fail(r, line, code, "%s of `%s` is not covered: %s", shown, of, group);
    if (group) return ptx_fail(r, line, code, "%s is not covered: %s", shown, group);
    if (of)
        return ptx_fail(r, line, code, "%s of `%s` is no modifier and no type of PTX that is known",
                        shown, of);
    return ptx_fail(r, line, code, "%s is no instruction of PTX that is known", shown);
}

/* The words after the opcode. Each begins with a dot. */
static mr_status read_words(ptx_reader *r, ptx_instruction *i, const char *opcode) {
    for (; r->token.kind == PTX_TOKEN_DOT;) {
        const ptx_token *t = &r->token;
        ptx_name name = ptx_names_find(&r->names, t->text, t->size);
        const ptx_name_record *record = name == PTX_NO_NAME ? NULL : ptx_record(r, name);
        if (record && record->type) {
            if (i->type_count == PTX_MOST_TYPES)
                return ptx_wrong(r, "`%s` has more than %d types", opcode, PTX_MOST_TYPES);
            i->types[i->type_count++] = record->type;
        } else if (record && record->modifier) {
            if (i->modifier_count == PTX_MOST_MODIFIERS)
                return ptx_wrong(r, "`%s` has more than %d modifiers", opcode, PTX_MOST_MODIFIERS);
            i->modifiers[i->modifier_count++] = record->modifier;
        } else {
            return unknown_word(r, t->line, t->text - 1, t->size + 1, opcode);
        }
        MR_TRY(ptx_advance(r));
    }
    return MR_OK;
}

/* Room for one more; NULL: there is none. */
static ptx_operand *next_operand(ptx_instruction *i) {
    return i->operand_count < PTX_MOST_OPERANDS ? &i->operands[i->operand_count++] : NULL;
}

static mr_status too_many(ptx_reader *r) {
    return ptx_wrong(r, "the instruction has more than %d operands", PTX_MOST_OPERANDS);
}

static mr_status read_operand(ptx_reader *r, ptx_instruction *i) {
    ptx_operand *operand = next_operand(i);
    return operand ? ptx_read_operand(r, operand) : too_many(r);
}

/* ---- branches */

static mr_status read_label(ptx_reader *r, ptx_instruction *i) {
    ptx_label_use use = {.line = r->token.line,
                         .place = r->place,
                         .instruction = (uint32_t)r->body.instructions.count,
                         .operand = i->operand_count};
    MR_TRY(ptx_take_name(r, "the label to branch to", &use.name));
    *next_operand(i) = (ptx_operand){.kind = PTX_LABEL};
    return ptx_use_label(r, use);
}

static mr_status read_declared(ptx_reader *r, ptx_instruction *i, uint8_t kind, const char *what) {
    char message[100];
    MR_TRY(read_operand(r, i));
    if (i->operands[i->operand_count - 1].kind == kind) return MR_OK;
    snprintf(message, sizeof message, "expected %s, declared before this line, as the last operand",
             what);
    return ptx_wrong(r, "%s", message);
}

static mr_status read_indexed_branch(ptx_reader *r, ptx_instruction *i) {
    MR_TRY(read_operand(r, i));
    MR_TRY(ptx_expect(r, ',', "after the index"));
    MR_TRY(read_declared(r, i, PTX_TARGETS, "a list of labels (`.branchtargets`)"));
    r->table_edges += r->body.targets.items[i->operands[1].index].count;
    if (r->table_edges <= MOST_TABLE_EDGES) return MR_OK;
    return ptx_fail(r, r->token.line, MR_CODE_NOT_SUPPORTED,
                    "more than %d branches through lists of labels are not covered",
                    MOST_TABLE_EDGES);
}

/* ---- calls */

/* A list in parentheses, or an empty one. */
static mr_status read_call_list(ptx_reader *r, ptx_instruction *i) {
    ptx_operand *operand = next_operand(i); /* one of four at most */
    bool open;
    MR_TRY(ptx_accept(r, '(', &open));
    if (open) return ptx_read_operands_in(r, ')', operand);
    *operand = (ptx_operand){.kind = PTX_LIST};
    return MR_OK;
}

/* call (results), callee, (arguments), prototype; all but the callee may be missing. */
static mr_status read_call(ptx_reader *r, ptx_instruction *i) {
    bool has_results = ptx_at(r, '('), more;
    MR_TRY(read_call_list(r, i));
    if (has_results) MR_TRY(ptx_expect(r, ',', "after the results of the call"));
    MR_TRY(read_operand(r, i));
    uint8_t callee = i->operands[1].kind;
    if (callee != PTX_FUNCTION && callee != PTX_REGISTER)
        return ptx_wrong(r, "only a function, or a register with its address, can be called");
    MR_TRY(ptx_accept(r, ',', &more));
    bool has_arguments = more && ptx_at(r, '(');
    MR_TRY(read_call_list(r, i));
    if (has_arguments) MR_TRY(ptx_accept(r, ',', &more));
    if (more) return read_declared(r, i, PTX_PROTOTYPE, "a prototype (`.callprototype`)");
    if (callee == PTX_REGISTER)
        return ptx_wrong(r, "a call through a register needs a prototype (`.callprototype`)");
    return MR_OK;
}

/* ---- the others */

static mr_status read_operands(ptx_reader *r, ptx_instruction *i) {
    if (ptx_at(r, ';')) return MR_OK;
    MR_TRY(read_operand(r, i));
    MR_TRY(ptx_accept(r, '|', &i->two_results));
    if (i->two_results) MR_TRY(read_operand(r, i));
    for (bool more;;) {
        MR_TRY(ptx_accept(r, ',', &more));
        if (!more) return MR_OK;
        MR_TRY(read_operand(r, i));
    }
}

mr_status ptx_read_instruction(ptx_reader *r, int32_t guard, bool guard_negated, uint32_t line,
                               ptx_name opcode) {
    const ptx_name_record *record = ptx_record(r, opcode);
    const char *text = record->text;
    ptx_instruction i = {.opcode = record->opcode,
                         .guard = guard,
                         .guard_negated = guard_negated,
                         .place = r->place};
    i.place.ptx_line = line;
    if (!i.opcode) return unknown_word(r, line, text, record->size, NULL);
    MR_TRY(read_words(r, &i, text));
    if (i.opcode == PTX_OP_bra) MR_TRY(read_label(r, &i));
    else if (i.opcode == PTX_OP_brx) MR_TRY(read_indexed_branch(r, &i));
    else if (i.opcode == PTX_OP_call) MR_TRY(read_call(r, &i));
    else MR_TRY(read_operands(r, &i));
    if (!ptx_at(r, ';')) {
        char what[100];
        snprintf(what, sizeof what, "`,` or `;` after the operands of `%s`", text);
        return ptx_expected(r, what);
    }
    MR_TRY(ptx_advance(r));
    return mr_vec_push(&r->body.instructions, i) ? MR_OK : ptx_no_memory(r);
}
