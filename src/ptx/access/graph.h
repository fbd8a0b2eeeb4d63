/* A kernel as the analysis of accesses sees it. The functions that it calls are copied into it. Registers and local
 * memory have become values that are defined once (SSA form).
 *
 *     blocks.c   the blocks, with copies of called functions; dominators, loops
 *     values.h   the values: how they are made
 *     origin.c   which pointers a value can be derived from
 *     outcome.c  what the outcome depends on besides values: where memory lies, the order of threads
 *     certain.c  the conditions on which an access depends
 *     linear.c   linear forms and facts about them, with the numbers of one launch
 *     launch.c   the values' linear forms in one launch, and the bytes that are accessed
 *     access.c          puts them together
 *
 * All of it rests on one fact: the graph has at least the paths and the values of the kernel. Where an instruction is
 * not understood, its result is OTHER, which can be any number, derived from all of its operands. A result that can be
 * no pointer keeps its operands, too: it may tell where memory lies. */
#ifndef MR_PTX_ACCESS_GRAPH_H
#define MR_PTX_ACCESS_GRAPH_H

#include <setjmp.h>

#include "base/map.h"
#include "base/region.h"
#include "ptx/access/extents.h"

/* Growing arrays in the region of a graph. */
#define ACCESS_LIST(type)                                                                          \
    struct {                                                                                       \
        type *items;                                                                               \
        uint32_t count;                                                                            \
        size_t bytes;                                                                              \
    }
#define access_push(graph, list, item)                                                             \
    (access_reserve(graph, &(list)->items, &(list)->bytes,                                         \
                    ((size_t)(list)->count + 1) * sizeof *(list)->items),                          \
     (list)->items[(list)->count++] = (item))

#define ACCESS_NONE UINT32_MAX

/* ---- blocks */

/* The copy of a function at one place that calls it. Storages are variables of .local and .param space, numbered over
 * all copies; parameters and results of a copy are the caller's variables. */
typedef struct {
    const ptx_function *function;
    uint32_t caller;                     /* copy; ACCESS_NONE: the kernel itself */
    uint32_t first_block;                /* where the blocks of the function begin; see block_of */
    uint32_t first_register, first_site; /* numbers of its register 0 and of its instruction 0 */
    uint32_t *block_of;                  /* by the function's block */
    const uint32_t *variables; /* storage by variable of the function; ACCESS_NONE: shared memory */
    const uint32_t *parameters; /* storage by parameter, then result; NULL: the kernel */
    uint8_t *is_copied_call;    /* by instruction */
    const uint8_t *definitions; /* by register: 0, 1, 2 (or more) instructions that write it */
} access_copy;

typedef struct {
    uint32_t copy;
    uint32_t first, end; /* instructions */
    uint32_t *predecessors, *successors;
    uint32_t predecessor_count, successor_count;
    /* With one predecessor, whose last instruction is guarded: the way here is taken if that guard is
     * `condition_true`. */
    bool has_condition, condition_true;
    bool reached, is_header;
    bool is_irreducible; /* a way back leads here that does not pass through here first */
    uint32_t order;      /* reverse postorder */
    uint32_t dominator;
    uint32_t enter, leave; /* numbers in a walk of the tree of dominators */
    uint32_t loop;         /* the header of the innermost loop around it; itself for a header */
    uint32_t outer_loop;   /* of a header: the header of the loop around it */
    uint32_t condition;    /* the value of the guard */
} access_block;

/* ---- values */

typedef enum {
    ACCESS_UNDEFINED,
    ACCESS_CONSTANT,
    ACCESS_PARAM,         /* number: parameter, offset: of the piece in it */
    ACCESS_SPECIAL,       /* number: ptx_special, offset: component */
    ACCESS_ADDRESS_PARAM, /* of a parameter of the kernel; number */
    ACCESS_ADDRESS_LOCAL, /* number: storage */
    ACCESS_ADDRESS_SHARED,
    ACCESS_ADDRESS_VARIABLE, /* of the module */
    ACCESS_WORKSPACE,        /* half of the address of the grid's workspace; number: which */
    ACCESS_ADD,
    ACCESS_SUB,
    ACCESS_MUL,
    ACCESS_DIV,
    ACCESS_SHL,
    ACCESS_SHR,
    ACCESS_MIN,
    ACCESS_MAX,
    ACCESS_AND,
    ACCESS_OR,
    ACCESS_XOR,
    ACCESS_EXTEND,   /* from `from` bits; signed or not */
    ACCESS_TRUNCATE, /* to `bits`; the rest of a register is as if it were not there */
    ACCESS_SELECT,   /* predicate, if true, if false */
    ACCESS_PHI,      /* by predecessor of the block */
    ACCESS_COMPARE,  /* two integers; comparison */
    /* from memory that is not followed; operand: the address. number: the storage or ACCESS_NONE */
    ACCESS_LOAD,
    ACCESS_PACK,  /* a register of several */
    ACCESS_OTHER, /* not known; derived from the operands */
} access_op;

typedef struct {
    uint8_t op, bits, from;
    bool is_signed;
    bool is_number; /* no pointer, as of floating point: only `number` of its origin counts */
    /* the same number in all threads of a launch, which can be calculated at the start */
    bool is_uniform;
    uint8_t comparison; /* ptx_modifier: eq ne lt le gt ge */
    uint8_t space;      /* of a load */
    uint32_t block;
    uint32_t operands, operand_count; /* in graph->operands */
    uint32_t number, offset;
    /* CONSTANT: sign-extended. LOAD and OTHER: the largest value; 0: not known */
    uint64_t constant;
    uint32_t replaced; /* by another value; ACCESS_NONE */
} access_value;

/* ---- accesses */

typedef struct {
    uint32_t address, block;
    uint32_t copy, instruction;
    uint32_t part; /* of a vector: bytes after its first element */
    uint32_t bytes;
    uint8_t access;
    uint8_t space;
    uint8_t element; /* ptx_type */
    bool is_atomic;  /* for the whole device */
    bool is_system;  /* and for all others and the host */
    bool is_guarded; /* the instruction has a predicate */
    /* taken for a known place in local memory, because the last attempt found that */
    bool is_followed;
} access_site;

/* A value that goes to memory which is not followed: through an access, or as the result of a call into a storage. */
typedef struct {
    uint32_t value;
    uint32_t site, storage; /* one of them is ACCESS_NONE */
} access_escape;

/* A part of a storage that is read and written as one value. */
typedef struct {
    uint32_t storage, offset, bytes;
    bool is_mixed; /* accesses overlap in another way: not followed */
    uint32_t next; /* of the same storage */
} access_cell;

typedef struct {
    const ptx_function *function; /* NULL: not known */
    uint32_t copy, instruction;
    uint32_t argument_count;
    uint32_t *first_of; /* by argument: its first value in graph->arguments; one more at the end */
} access_call;

/* ---- the graph */

typedef MR_MAP(uint32_t) access_value_map;

typedef struct access_graph {
    const ptx_tree *tree;
    const ptx_function *kernel;
    mr_region region;
    /* every allocation ends here when there is none: nothing has to be undone but the region and these two maps */
    jmp_buf out_of_memory;
    access_value_map definitions; /* block and variable -> value */
    access_value_map numbered;    /* hash of a value -> the last one of that hash */

    ACCESS_LIST(access_copy) copies;
    ACCESS_LIST(access_block) blocks; /* 0: the entry */
    ACCESS_LIST(uint32_t) order;      /* the blocks that can be reached, in reverse postorder */
    uint32_t register_count, site_count, storage_count;
    bool too_large;
    const char *gave_up; /* why; NULL */

    /* Facts that one attempt to find the values passes to the next one. */
    ACCESS_LIST(access_cell) cells;
    uint32_t *first_cell;       /* by storage */
    bool *is_exposed;           /* by storage: it is reached in ways that are not followed */
    struct access_known *known; /* by site: the known target of an address in local memory */
    bool again;                 /* the last attempt found something that it had assumed otherwise */

    ACCESS_LIST(access_value) values;
    ACCESS_LIST(uint32_t) operands, arguments;
    ACCESS_LIST(access_site) sites;
    ACCESS_LIST(access_escape) escapes;
    ACCESS_LIST(access_call) calls; /* of functions that are not copied */
} access_graph;

typedef struct access_known {
    uint32_t storage; /* ACCESS_NONE: not in local memory, as far as is known */
    int64_t offset;
} access_known;

void *access_take(access_graph *graph, size_t bytes); /* zeroed */
void access_reserve(access_graph *graph, void *items, size_t *bytes, size_t wanted);

void access_build_blocks(access_graph *graph);
bool access_dominates(const access_graph *graph, uint32_t a, uint32_t b);
/* Is the callee of a call among the copies? Otherwise the call stays an instruction. */
bool access_is_copied(const access_graph *graph, uint32_t copy, uint32_t instruction);
bool access_in_loop(const access_graph *graph, uint32_t block, uint32_t header);

void access_build_values(access_graph *graph);
/* The value that has replaced `value`. */
uint32_t access_find(const access_graph *graph, uint32_t value);
static inline const access_value *access_value_at(const access_graph *graph, uint32_t value) {
    return &graph->values.items[access_find(graph, value)];
}
static inline uint32_t access_operand(const access_graph *graph, const access_value *value,
                                      uint32_t i) {
    return access_find(graph, graph->operands.items[value->operands + i]);
}
/* A value that is an address plus a constant: the address, and the constant. */
uint32_t access_split(const access_graph *graph, uint32_t value, int64_t *out_offset);

/* ---- origins: origin.c */

/* A pointer, or 8 bytes that could be one: of the parameters of the kernel. */
typedef struct {
    uint32_t param, offset;
} access_piece;

/* Bits of sets: pieces, then addresses of parameters, then storages. */
enum {
    ORIGIN_MEMORY,
    ORIGIN_SHARED,
    ORIGIN_VARIABLES,
    ORIGIN_WORKSPACE, /* of the grid: no memory of the program */
    ORIGIN_FIRST_PIECE
};

/* Where the pointers in a value come from.
 *   plus      it is one of these, or a sum of them, plus numbers
 *   minus     these are subtracted; only of an exact one
 *   distance  numbers made from differences of these: added to a pointer they can lead to another one
 *   mixed     what else is made from these, in any way: counts where there is no plus, or the value is not exact
 *   number    what it depends on otherwise, also through 32-bit values, which are not pointers (outcome.c)
 * Exact: the sum of all of plus, minus all of minus, plus a number. */
typedef struct {
    uint64_t *plus, *minus, *distance, *mixed, *number;
    bool is_known, is_exact;
} access_origin;

typedef struct {
    access_piece *pieces;
    uint32_t piece_count, set_words, set_bits;
    uint32_t first_param_address, first_storage;
    access_origin *origins;                /* by value */
    uint64_t *shared_holds, *memory_holds; /* what is stored there */
    uint64_t *numbers_held;   /* `number` of all that is stored to shared and local memory */
    uint64_t **storage_holds; /* by storage, where it is not followed */
} access_origins;

/* Makes the values and their origins. */
void access_settle(access_graph *graph, access_origins *out);
static inline bool access_has(const uint64_t *set, uint32_t bit) {
    return set[bit / 64] >> (bit % 64) & 1;
}
/* The bases that an address can point into. */
void access_bases(const access_origins *origins, uint32_t address, uint64_t *out);
/* ---- what an access depends on: certain.c */

typedef struct access_paths access_paths;

enum {
    ACCESS_LINK_CONDITION, /* the condition of `block` holds */
    /* the loop at header `block` goes on, as an earlier condition in the chain says */
    ACCESS_LINK_TESTED,
    ACCESS_LINK_LOOP, /* the loop at header `block` has gone on so far */
};

typedef struct {
    uint32_t kind, block;
} access_link;

enum { ACCESS_MOST_LINKS = 24 };

/* Looks at the graph as it is. */
const access_paths *access_find_paths(access_graph *graph);
/* The links, at most ACCESS_MOST_LINKS, from `block` up to the entry. A thread comes to the block, in an iteration of
 * the loops around it, exactly if all of them hold. If not MR_PTX_CERTAIN: the reason. */
mr_ptx_reason access_links(const access_paths *paths, uint32_t block, access_link *out,
                           uint32_t *out_count);

/* The kernel may call this without an effect on memory that counts: vprintf, __assertfail, malloc, free. */
bool access_is_harmless(const ptx_function *function);

#endif
