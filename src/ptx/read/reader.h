/* Shared by the parts of the reader: the text, the names, the function that is being read, and the making of errors.
 *
 * The parts call one way: read.c (the module) calls function.c, then body.c, instruction.c, operand.c, scope.c and
 * constant.c. All of them call reader.c, names.c and lex.c.
 *
 * Names are resolved once. Each spelling has one record in a hash table. The record says which opcode, modifier, type
 * and declaration the spelling stands for at this place of the text. `.reg .b32 %r<100>` makes no registers: a register
 * is made at its first use, so a declaration of four billion registers costs nothing.
 *
 * The text may be anything. Each structure grows with the text and not with the numbers in it. No step takes
 * quadratic time, and none recurses without a limit. Tests read damaged samples of both compilers under the
 * sanitizers.
 *
 * Control flow. `flow.c` finds the basic blocks and, for each block, its immediate post-dominator: the block where
 * the lanes of a warp meet again after a branch. It uses the algorithm of Lengauer and Tarjan. The common iteration
 * over the graph takes quadratic time for some graphs. Paths into an endless loop do not count, because they would
 * keep all other lanes apart up to the end of the function. */
#ifndef MR_PTX_READ_READER_H
#define MR_PTX_READ_READER_H

#include "ptx/read/lex.h"
#include "ptx/read/names.h"

/* How deep scopes, parentheses and braces may be nested. */
#define PTX_DEEPEST 64

/* A label that is used. It is looked up when the scope ends, since labels may follow their uses. */
typedef struct {
    ptx_name name;
    uint32_t line;   /* of the text */
    ptx_place place; /* in the source */
    uint32_t *slot;  /* in a list of targets; NULL: */
    uint32_t instruction, operand;
} ptx_label_use;

/* `{ ... }` in a function. */
typedef struct {
    size_t first_binding, first_use; /* counts when it began */
} ptx_braces;

/* The function whose body is being read. The arrays are copied to the arena at its end, and used again. */
typedef struct {
    MR_VEC(ptx_register) registers;
    MR_VEC(ptx_variable) variables;
    MR_VEC(ptx_instruction) instructions;
    MR_VEC(ptx_targets) targets;
    MR_VEC(ptx_signature) prototypes;
    MR_VEC(ptx_label_use) label_uses;
    ptx_braces scopes[PTX_DEEPEST];
    ptx_place first_place; /* of the first .loc */
    ptx_place own_place;   /* of the last .loc that is of the same file and not of inlined code */
} ptx_body;

typedef struct {
    const char *name; /* of the text, for messages */
    ptx_lexer lexer;
    ptx_token token; /* the next one */
    mr_region *arena;
    ptx_names names;
    uint32_t depth; /* 0: the module; else that of the innermost scope */
    ptx_body body;
    bool failed;     /* the error is made */
    bool has_files;  /* all .file of the text are read, also those after the next token */
    ptx_place place; /* where the last .loc says that the code is from; ptx_line is not kept here */

    int version_major, version_minor, target;
    MR_VEC(const char *) files; /* NULL: not named yet */
    ptx_map file_indices;       /* number in .file -> index */
    ptx_map inlined;            /* place inside of inlined code -> index in `callers` */
    MR_VEC(ptx_place) callers;  /* the outermost calls */
    MR_VEC(ptx_variable) variables;
    MR_VEC(ptx_function) functions;
    uint64_t init_bytes;  /* of all initial values so far */
    uint64_t table_edges; /* of all branches through tables so far */
} ptx_reader;

/* ---- errors */

/* "t.cu:14: ... (line 31 of the PTX)", or where the source is not known "k.ptx, line 31 of the PTX: ...". */
mr_status ptx_fail(ptx_reader *r, uint32_t line, mr_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* INVALID_ARGUMENT at the next token. */
mr_status ptx_wrong(ptx_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "expected WHAT, found `...`" of the next token. */
mr_status ptx_expected(ptx_reader *r, const char *what);
mr_status ptx_no_memory(ptx_reader *r);
/* Takes an error that concerns one function only: keeps its text as the function's problem, and the reader goes on. Any
 * other error comes back. */
mr_status ptx_pardon(ptx_reader *r, mr_status error, const char **problem);
/* A token as in messages, quoted; unprintable characters are escaped. */
#define PTX_SHOWN 100
const char *ptx_shown(const char *text, size_t size, char out[PTX_SHOWN]);

/* ---- tokens */

mr_status ptx_advance(ptx_reader *r); /* an error if the next token is malformed */
static inline bool ptx_at(const ptx_reader *r, uint16_t mark) {
    return r->token.kind == PTX_TOKEN_MARK && r->token.mark == mark;
}
bool ptx_at_dot(const ptx_reader *r, const char *word);
/* Takes the mark if it is the next token. */
mr_status ptx_accept(ptx_reader *r, uint16_t mark, bool *out_taken);
mr_status ptx_accept_dot(ptx_reader *r, const char *word, bool *out_taken);
/* Takes the mark; `where` continues the message: "`;` after the operands". */
mr_status ptx_expect(ptx_reader *r, uint16_t mark, const char *where);
/* Takes a word and finds its record. */
mr_status ptx_take_name(ptx_reader *r, const char *what, ptx_name *out_name);
mr_status ptx_take_count(ptx_reader *r, const char *what, uint64_t most, uint64_t *out);

static inline ptx_name_record *ptx_record(ptx_reader *r, ptx_name name) {
    return &r->names.records.items[name];
}

/* Zeroed, in the arena; at least one byte. */
void *ptx_alloc(ptx_reader *r, size_t count, size_t size);
/* Copies an array to the arena; NULL: no memory. */
const void *ptx_copy(ptx_reader *r, const void *items, size_t count, size_t size);
/* Index of the file that .file and .loc call `number`. */
mr_status ptx_file_index(ptx_reader *r, uint64_t number, uint32_t *out_index);
mr_status ptx_read_file(ptx_reader *r); /* after `.file` */

/* ---- scope.c: names and what they stand for */

mr_status ptx_open_scope(ptx_reader *r);
mr_status ptx_close_scope(ptx_reader *r);
/* Forgets what was bound since then, without a look at labels. */
void ptx_unbind(ptx_reader *r, size_t first_binding);
/* An error if the name is taken in this scope. */
mr_status ptx_bind(ptx_reader *r, ptx_name name, ptx_symbol symbol);
/* False: not declared. A register of a range comes into being here. */
mr_status ptx_resolve(ptx_reader *r, ptx_name name, ptx_symbol *out_symbol, bool *out_found);
mr_status ptx_use_label(ptx_reader *r, ptx_label_use use);

/* ---- constant.c */

typedef struct {
    bool is_real, single, is_unsigned;
    uint64_t bits;
} ptx_literal;
mr_status ptx_read_constant(ptx_reader *r, ptx_literal *out);
/* An integer; what stands after a name: "+4", "-4". 0 if neither follows. */
mr_status ptx_read_offset(ptx_reader *r, int64_t *out);
bool ptx_begins_constant(const ptx_reader *r);

/* ---- variable.c, initialiser.c */

/* The declaration after the directive of a space. */
typedef struct {
    ptx_variable variable;
    ptx_name name;
    uint64_t dimensions[PTX_DEEPEST]; /* the first may be 0: given by the initial value */
    uint32_t dimension_count;
    uint32_t vector; /* .v2, .v4: its parts; else 1 */
} ptx_declaration;
/* .align 4 .v4 .b32 .ptr .global: the type and all attributes that stand before the names. */
mr_status ptx_read_attributes(ptx_reader *r, ptx_space space, ptx_declaration *out);
/* x[4][2]: a name with its dimensions, not the initial value. */
mr_status ptx_read_declarator(ptx_reader *r, const ptx_declaration *attributes,
                              ptx_declaration *out);
/* "= ..."; sets bytes, too, where they depend on it. */
mr_status ptx_read_initialiser(ptx_reader *r, ptx_declaration *declaration);

/* ---- location.c */

mr_status ptx_read_loc(ptx_reader *r);     /* after `.loc` */
mr_status ptx_read_pragma(ptx_reader *r);  /* after `.pragma` */
mr_status ptx_skip_section(ptx_reader *r); /* after `.section` */

/* ---- operand.c, instruction.c, signature.c, body.c, function.c */

mr_status ptx_read_registers(ptx_reader *r); /* after `.reg` */
mr_status ptx_read_operand(ptx_reader *r, ptx_operand *out);
/* Up to and with `close`: a list. */
mr_status ptx_read_operands_in(ptx_reader *r, char close, ptx_operand *out_list);
/* After the opcode, up to and with the semicolon. `line` is where the instruction begins. */
mr_status ptx_read_instruction(ptx_reader *r, int32_t guard, bool guard_negated, uint32_t line,
                               ptx_name opcode);
/* (results) name (parameters), where `_` is a name, too. */
mr_status ptx_read_signature(ptx_reader *r, ptx_signature *out, ptx_name *out_name);
/* `{ ... }` of a function whose signature is known, into the function. Anything in it that is not covered becomes its
 * problem. */
mr_status ptx_read_body(ptx_reader *r, ptx_function *function);
/* After `.entry` or `.func`. */
mr_status ptx_read_function(ptx_reader *r, ptx_function *linkage);

/* ---- uncovered.c, flow.c */

/* For an opcode or modifier that the reader does not know: the part of PTX that has it; NULL: it is not a word of
 * PTX. */
const char *ptx_uncovered(const char *word, size_t size);
/* Finds blocks and post-dominators; false: no memory. */
bool ptx_find_blocks(ptx_function *function, mr_region *arena);

#endif
