/* Operations: the struct of a row of the table (ops/table.h), and how a body runs.
 *
 * An operation's work is a range of independent items (elements, rows, chunks), so it can be run in slices. Slices run
 * on several threads, or spread over the virtual duration. Then a race leaves half-written data, as on hardware. Slices
 * of one command may run in any order and give the same bits. */
#ifndef MR_OPS_OP_H
#define MR_OPS_OP_H

#include "tensor/tensor.h"

#define MR_MAX_INPUTS 3 /* tensors or numbers that an operation reads, besides its output */

typedef enum {
    MR_FAMILY_UNARY,      /* out = f(a), broadcast, any strides */
    MR_FAMILY_BINARY,     /* out = f(a, b) */
    MR_FAMILY_COMPARE,    /* out(bool) = a ? b */
    MR_FAMILY_TERNARY,    /* out = f(a, b, c) */
    MR_FAMILY_FILL,       /* out = f(position, scalars) */
    MR_FAMILY_RANDOM,     /* out = f(position, seed, scalars) */
    MR_FAMILY_REDUCE,     /* operand 1 permuted so that its last dims are reduced */
    MR_FAMILY_SOFTMAX,    /* out = f(a, max and sum along a dim) */
    MR_FAMILY_MATMUL,     /* out[b..., m, n] = a[b..., m, k] b[b..., k, n] */
    MR_FAMILY_COPY,       /* out = a, broadcast, converting dtype, any strides */
    MR_FAMILY_BYTES,      /* memset */
    MR_FAMILY_ABSTRACT,   /* mr.op, mr.spin */
    MR_FAMILY_CONV,       /* network.h */
    MR_FAMILY_POOL,       /* likewise */
    MR_FAMILY_LOSS,       /* network.h */
    MR_FAMILY_OPTIMISE,   /* steps of optimisers: optimise.h */
    MR_FAMILY_INDEX,      /* elements that an index chooses (index.h) */
    MR_FAMILY_SCAN,       /* out = the elements up to here along a dim, combined */
    MR_FAMILY_SORT,       /* out = the elements and their positions in order along a dim (sort.h) */
    MR_FAMILY_MOVE,       /* out = the input's elements at other places (move.h) */
    MR_FAMILY_COMPACT,    /* out = the elements that a condition selects */
    MR_FAMILY_KERNEL,     /* a kernel of the user's (kernel.h) */
    MR_FAMILY_COLLECTIVE, /* several devices at once: collective.h */
    MR_FAMILY_COUNT
} mr_family_id;

/* Facts about all rows of a family. Other tables for each family (checks of a call, kernels, Lua functions) they keep
 * in tables of their own, by its id. */
typedef struct {
    mr_family_id id;
    const char *name;
    bool copies;    /* the output is the input, whether or not anything has been written there */
    bool draws;     /* takes a seed and an offset of the machine's random numbers */
    bool widens;    /* a number that the inputs' type does not hold makes it i64 */
    bool may_fail;  /* on the device: an index that is out of range */
    double portion; /* the amount of work between two checks for Ctrl-C (run.c); 0: the usual */
    /* Optional. The first: whether a library with threads of its own runs it on the CPU. The second: whether a library
     * runs it on a GPU, at a higher cost for the host than a launch. */
    bool (*brings_threads)(const mr_command *command);
    bool (*by_library)(const mr_command *command);
} mr_op_family;

extern const mr_op_family mr_families[MR_FAMILY_COUNT];

/* The cost of a command to a device; the cost model turns it into time. */
typedef struct {
    double flops;
    double bytes; /* read + written */
    /* the least duration, whatever the rates of the device are; 0: unknown */
    double least_ns;
    uint32_t blocks;  /* thread blocks that a kernel would launch */
    uint32_t threads; /* a block */
} mr_cost;

/* The numbers after the tensor in a call of an in-place form. */
typedef struct {
    uint8_t required, optional;
    double otherwise[2]; /* the optional ones, where they are not given */
} mr_op_numbers;

struct mr_op {
    const char *name;          /* "add" */
    const char *name_in_place; /* "add_"; for messages, and the method where forms say so */
    uint16_t id;               /* mr_op_id */
    const mr_op_family *family;
    uint8_t inputs;         /* tensors or numbers read, besides the output */
    uint8_t dtypes;         /* which dtypes it takes: MR_TAKES_* */
    uint8_t result;         /* MR_RESULT_* */
    uint8_t forms;          /* MR_FORM_*: which Lua functions come from the row */
    uint8_t rules;          /* MR_RULE_*: further checks of the arguments by mr_call_run */
    mr_op_numbers numbers;  /* FILL, RANDOM, and BINARY with a parameter */
    uint16_t variants[2];   /* MR_OP_NONE, or the rows that other arguments ask for: see table.h */
    double flops;           /* an item, for the cost model */
    const char *usage;      /* "x:add(y: tensor|number [, {out: tensor}]) -> tensor" */
    const char *help;       /* one or two sentences */
    const char *expression; /* the body's text, for the CUDA kernel and the reference page */

    int64_t (*items)(const mr_command *command);
    /* Runs items [first, end), in order; after a failure the items after the one that failed have not been
     * run. Any code but INTERRUPTED: a code that is sticky (R50) loses the device, others fail this command
     * only. */
    mr_status (*run)(const mr_command *command, void *state, int64_t first, int64_t end);
    /* Optional: how much memory one command needs from its first item to its last step, for partial results;
     * 0: none, then `state` is NULL everywhere. The memory belongs to the runner of the command, which may
     * at any time copy its bytes, go on later with the copy, or free it to abandon the command. So it
     * holds no pointers into itself or to anything that must be freed. */
    int64_t (*state_bytes)(const mr_command *command);
    /* Optional: before the first item; sets up the state, if there is one. Without it, a state's first bytes are
     * any. */
    void (*begin)(const mr_command *command, void *state);
    /* Optional: the last step, after all items; not after a failure. Frees nothing. */
    void (*finish)(const mr_command *command, void *state);
    /* Optional: the same after a failure. Writes to no operand. */
    void (*fail)(const mr_command *command, void *state);
    void (*cost)(const mr_command *command, mr_cost *out_cost);
    /* Optional: the arguments refer to something that is counted. A copy of their bytes retains it. */
    void (*arguments_retain)(void *arguments);
    void (*arguments_release)(void *arguments);
    const void *body; /* the family's own: loops by dtype */
};

enum { MR_TAKES_BOOL = 1, MR_TAKES_INTEGER = 2, MR_TAKES_FLOAT = 4, MR_TAKES_ALL = 7 };
enum {
    MR_RESULT_SAME,  /* the promoted dtype of the inputs */
    MR_RESULT_FLOAT, /* likewise, but integers and bools become f32 (div, exp, mean) */
    MR_RESULT_BOOL,
    MR_RESULT_SUM,   /* integers and bools become i64 (sum) */
    MR_RESULT_INDEX, /* i64 */
};
enum { MR_FORM_METHOD = 1, MR_FORM_INPLACE = 2, MR_FORM_FUNCTION = 4 /* mr.NAME too */ };

enum {
    MR_RULE_NEEDS_ELEMENT = 1, /* REDUCE: of nothing it is an error (max) */
    MR_RULE_ONE_DIM = 2,       /* REDUCE: over one dim or everything (argmax) */
    MR_RULE_CORRECTION = 4,    /* REDUCE: takes a correction (var) */
    MR_RULE_MASK = 8,          /* TERNARY: scripts write the third input first (masked_fill) */
    MR_RULE_RANKS = 16,        /* MATMUL: inputs have exactly rules / 16 % 4 and rules / 64 dims */
};
#define MR_RANKS(a, b) (MR_RULE_RANKS * (a) + 4 * MR_RULE_RANKS * (b))

extern const mr_op mr_ops[]; /* by mr_op_id (ids.h), from MR_OP_FIRST on */
/* For names that come from outside; NULL: there is none. */
const mr_op *mr_op_find(const char *name);

/* True for a MATMUL of floats on a device that is so small that the CUDA backend has its own kernel for it. cuBLAS
 * takes longer to choose a kernel than that one takes to run. */
bool mr_matmul_is_small(const mr_command *command);

/* The three steps of running a command. First: allocates and sets up its state. *out_state is NULL where
 * the command has none, or a block for free(), at a multiple of MR_STATE_ALIGNMENT; a copy of it must be,
 * too. */
enum { MR_STATE_ALIGNMENT = 64 };
int64_t mr_op_state_bytes(const mr_command *command);
void *mr_op_state_alloc(int64_t bytes); /* aligned as a state must be; NULL: memory is out */
mr_status mr_op_begin(const mr_command *command, void **out_state);

/* Then: runs items [*io_first, end) on this thread and, where there is enough to do, its helpers. With
 * `may_stop`, long work asks the machine's `interrupted` hook now and then: INTERRUPTED leaves in *io_first where
 * to go on. If several threads fail, the failure of the first item counts. */
mr_status mr_op_run_items(const mr_command *command, void *state, int64_t *io_first, int64_t end,
                          bool may_stop);

/* Last, after all items; the state is still the caller's to free. */
void mr_op_finish(const mr_command *command, void *state);
/* In its place, after mr_op_run_items has failed. */
void mr_op_fail(const mr_command *command, void *state);

/* All three at once: host tensors, and tests. Interrupted or failed, it leaves the output half written. */
mr_status mr_op_run_now(const mr_command *command);

#endif
