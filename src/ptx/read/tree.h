/* A PTX module as the reader (read.c) gives it: names resolved, scopes flattened, control flow known. Everything that
 * comes after it (decode, inference of accesses) works on this and never looks at text again.
 *
 * All of it lives in one arena, which goes with the module. Nothing changes after reading. */
#ifndef MR_PTX_READ_TREE_H
#define MR_PTX_READ_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "ptx/read/words.h"

typedef enum {
    PTX_OP_NONE,
#define X(name) PTX_OP_##name,
    PTX_OPCODES(X)
#undef X
        PTX_OP_COUNT
} ptx_opcode;

typedef enum {
    PTX_MOD_NONE,
#define X(name, text) PTX_MOD_##name,
    PTX_MODIFIERS(X)
#undef X
        PTX_MOD_COUNT
} ptx_modifier;

typedef enum { PTX_BITS, PTX_UNSIGNED, PTX_SIGNED, PTX_FLOAT } ptx_sort;

typedef enum {
    PTX_NO_TYPE,
#define X(name, bytes, sort) PTX_##name,
    PTX_TYPES(X)
#undef X
        PTX_TYPE_COUNT
} ptx_type;

typedef struct {
    const char *name; /* "f32" */
    uint8_t bytes;    /* 0: a predicate */
    ptx_sort sort;
} ptx_type_info;
extern const ptx_type_info mr_ptx_types[PTX_TYPE_COUNT];

typedef enum {
#define X(name, bytes) PTX_SREG_##name,
    PTX_SPECIALS(X)
#undef X
        PTX_SREG_COUNT
} ptx_special;

/* As PTX spells them; "" for none. Special registers are without the `%`. */
extern const char *const ptx_opcode_names[PTX_OP_COUNT];
extern const char *const ptx_modifier_names[PTX_MOD_COUNT];
extern const char *const ptx_special_names[PTX_SREG_COUNT];

/* It has another value each time that it is read. */
static inline bool ptx_special_is_clock(ptx_special s) {
    return s == PTX_SREG_clock || s == PTX_SREG_clock_hi || s == PTX_SREG_clock64 ||
           s == PTX_SREG_globaltimer || s == PTX_SREG_globaltimer_lo ||
           s == PTX_SREG_globaltimer_hi;
}
bool ptx_special_is_vector(ptx_special special); /* has .x .y .z: tid, ctaid, ... */

typedef enum {
    PTX_GENERIC,
    PTX_GLOBAL,
    PTX_SHARED,
    PTX_LOCAL,
    PTX_CONST,
    /* of the kernel; in a device function its own parameters, and those of the calls that it
     * makes */
    PTX_PARAM,
} ptx_space;

/* Where an instruction comes from. `file` indexes module->files, 0: unknown. For code that was inlined, `line` is the
 * innermost place and `outer_line` the line in `outer_file` of the outermost call: for a user, a line of the kernel. */
typedef struct {
    uint32_t ptx_line; /* in the PTX text, from 1 */
    uint32_t file, line;
    uint32_t outer_file, outer_line; /* as file and line where nothing was inlined */
    uint32_t outer_column;           /* 0: unknown */
} ptx_place;

/* ---- variables */

/* `size` bytes at `offset` of the initial value are the address of a symbol plus `addend`. */
typedef struct {
    uint64_t offset;
    uint32_t size;
    bool generic;     /* generic(symbol): a generic address, else one in the symbol's space */
    int32_t variable; /* of the module, or -1: */
    int32_t function;
    int64_t addend;
} ptx_relocation;

typedef struct {
    const char *name;
    ptx_space space;
    ptx_type type; /* of an element */
    uint32_t align;
    uint64_t bytes; /* all of it; 0: .extern .shared x[], whose size the launch gives */
    uint64_t count; /* elements, rows and columns multiplied; 1: no array */
    bool is_extern, is_visible, is_managed;
    /* the first `init_bytes` of its bytes; the others are zeros. NULL: all are */
    const uint8_t *init;
    uint64_t init_bytes;
    const ptx_relocation *relocations;
    uint32_t relocation_count;
    /* Only of a parameter whose attribute .ptr says so: the space that it points into (else PTX_GENERIC), and the
     * alignment of what it points to (else 0). */
    ptx_space points_into;
    uint32_t points_align;
} ptx_variable;

/* ---- instructions */

typedef enum {
    PTX_REGISTER,       /* index: of the function's registers */
    PTX_SPECIAL,        /* index: ptx_special; component 0..2 */
    PTX_INTEGER,        /* bits: an immediate, sign-extended */
    PTX_REAL,           /* bits: those of the f64, or of the f32 if `single` (0f3F800000) */
    PTX_VARIABLE,       /* index: of the module's variables; offset */
    PTX_LOCAL_VARIABLE, /* index: of the function's variables (.local, .shared, .param); offset */
    PTX_PARAMETER,      /* index: of the function's parameters, then of its results; offset */
    PTX_FUNCTION,       /* index: of the module's functions */
    /* index: of the instruction that it stands before (may be instruction_count: the end) */
    PTX_LABEL,
    PTX_TARGETS,   /* index: of the function's target lists (brx.idx) */
    PTX_PROTOTYPE, /* index: of the function's prototypes (indirect call) */
    PTX_SINK,      /* `_` */
    PTX_LIST,      /* {a, b, c, d} or (a, b): `list`, `count` */
} ptx_operand_kind;

typedef struct ptx_operand ptx_operand;
struct ptx_operand {
    uint8_t kind;      /* ptx_operand_kind */
    bool is_address;   /* in brackets: [register + offset], [variable + offset], [immediate] */
    bool negated;      /* !p */
    bool single;       /* PTX_REAL */
    uint8_t component; /* PTX_SPECIAL: 0 x, 1 y, 2 z */
    uint8_t count;     /* PTX_LIST */
    uint32_t index;
    union {
        int64_t offset; /* of an address, or of a variable used as a number */
        uint64_t bits;
        const ptx_operand *list;
    };
};

#define PTX_MOST_MODIFIERS 8
#define PTX_MOST_TYPES     4
#define PTX_MOST_OPERANDS  8

/* setp's two destinations p|q, and shfl's d|p, are operands 0 and 1 with `two_results`. A call's operands are: results
 * (PTX_LIST, may be empty), callee (PTX_FUNCTION or PTX_REGISTER), arguments (PTX_LIST, may be empty), and for an
 * indirect call the prototype. */
typedef struct {
    uint8_t opcode; /* ptx_opcode */
    uint8_t modifier_count, type_count, operand_count;
    uint8_t modifiers[PTX_MOST_MODIFIERS]; /* in the order of the text, without types */
    uint8_t types[PTX_MOST_TYPES];
    bool two_results;
    bool guard_negated;
    int32_t guard; /* a predicate register; -1: none */
    ptx_operand operands[PTX_MOST_OPERANDS];
    ptx_place place;
} ptx_instruction;

/* ---- functions */

typedef struct {
    const char *name; /* "%r1" */
    ptx_type type;
} ptx_register;

/* A basic block: instructions [first, end). At most two successors, or more after a brx. */
typedef struct {
    uint32_t first, end;
    const uint32_t *successors; /* blocks; the function's block_count stands for its exit */
    uint32_t successor_count;
    uint32_t post_dominator; /* the immediate one; block_count: the exit */
} ptx_block;

typedef struct {
    const uint32_t *items; /* indices of instructions, as of PTX_LABEL */
    uint32_t count;
} ptx_targets;

typedef struct {
    const ptx_variable *results, *parameters;
    uint32_t result_count, parameter_count;
} ptx_signature;

typedef struct {
    const char *name;
    bool is_entry, is_visible, is_weak;
    bool is_defined; /* false: only declared (vprintf, __assertfail, malloc, free) */
    bool never_returns;
    /* A sentence that names the part that is not covered, with its line; the body is then empty. NULL: the reader found
     * none. */
    const char *problem;
    ptx_signature signature;
    uint32_t max_threads[3];    /* .maxntid; 0: not given */
    uint32_t wanted_threads[3]; /* .reqntid; 0: not given */
    uint32_t min_blocks;        /* .minnctapersm */
    uint32_t max_registers;     /* .maxnreg */

    const ptx_register *registers;
    uint32_t register_count;
    const ptx_variable *variables; /* .local, .shared, .param of any scope in it */
    uint32_t variable_count;
    const ptx_instruction *instructions;
    uint32_t instruction_count;
    const ptx_block *blocks; /* block 0 is the entry */
    uint32_t block_count;
    const ptx_targets *targets;
    uint32_t targets_count;
    const ptx_signature *prototypes;
    uint32_t prototype_count;
    ptx_place place;
} ptx_function;

typedef struct {
    int version_major, version_minor; /* .version */
    int target;                       /* 90 of sm_90, sm_90a */
    const char *const *files;         /* [0] is "" */
    uint32_t file_count;
    const ptx_variable *variables;
    uint32_t variable_count;
    const ptx_function *functions;
    uint32_t function_count;
    void *arena; /* owns all of the above */
} ptx_tree;

/* PTX of `.target sm_90` and older is read; it also runs on GPUs that are newer. */
enum { PTX_NEWEST_TARGET = 90 };

/* Reads PTX text. Valid PTX that the reader does not cover becomes the `problem` of its function. Outside of functions
 * it is the error NOT_SUPPORTED. Errors (else INVALID_ARGUMENT) name the line of the PTX text, and where .loc tells it
 * the source line; they say what was expected. `name` stands in messages for the text's origin. The text may be
 * anything: truncated, hostile, without an end. */
mr_status ptx_read(const char *text, size_t size, const char *name, ptx_tree *out_tree);
/* Takes the body of a function away: it returns at once. False: no memory. */
bool ptx_tree_empty(ptx_tree *tree, uint32_t function);
void ptx_tree_free(ptx_tree *tree); /* accepts a zeroed one */

bool ptx_has(const ptx_instruction *i, ptx_modifier m);
static inline bool ptx_is_atomic(const ptx_instruction *i) {
    return i->opcode == PTX_OP_atom || i->opcode == PTX_OP_red;
}
/* "t.cu:14" or "line 31 of the PTX": where, for a person; returns `out`. */
const char *ptx_place_text(const ptx_tree *tree, const ptx_place *place, char *out, size_t size);
/* "ld.global.f32 %f1, [%rd4+4]": for messages and tests; returns `out`. */
const char *ptx_instruction_text(const ptx_tree *tree, const ptx_function *f,
                                 const ptx_instruction *i, char *out, size_t size);

#endif
