/* The user's kernels: modules of CUDA C or PTX as the script loads them, and one launch as a command.
 *
 *   mr_kernel_code     what the compiler made: text and decoded form. It belongs to no machine, never changes, and is
 *                      counted atomically, since recorded programs keep it and several threads may replay one.
 *   mr_kernel_module   a code that is loaded on a machine: its variables are in the devices' memory there.
 *   mr_kernel          one kernel of a module, with facts about its parameters beyond the PTX.
 *
 * A launch is an OP of the row `kernel`. Its operands are the bytes that it may touch (through pointer arguments and
 * variables of the module). Its arguments are a blob that holds everything else, and of each pointer which operand's
 * storage it points into. So it can be carried out again on another machine, where that storage has another address. */
#ifndef MR_OPS_KERNEL_H
#define MR_OPS_KERNEL_H

#include <stdatomic.h>

#include "ops/op.h"
#include "ptx/run/profile.h"
#include "ptx/ptx.h"

/* ---- code */

typedef struct mr_kernel_code {
    atomic_uint refs;
    uint64_t id; /* unique in the process; backends use it as the key of their data */
    mr_ptx_module *ptx;
    char *text; /* PTX, with a NUL after it: what a GPU's driver loads */
    size_t size;
    struct mr_kernel_count *counts;   /* by kernel */
    struct mr_kernel_timing *timings; /* by kernel: kernel_time.h */
    struct mr_kernel_once *once;      /* by kernel */
    uint8_t *uses; /* by kernel, then by variable of the module: MR_READ | MR_WRITE, or 0 */
    bool prints;   /* some kernel calls printf */
} mr_kernel_code;

/* Takes over `text` (malloc), also on failure. `name` stands for it in messages. */
mr_status mr_kernel_code_load(char *text, size_t size, const char *name, mr_kernel_code **out_code);
void mr_kernel_code_retain(mr_kernel_code *code);
void mr_kernel_code_release(mr_kernel_code *code); /* accepts NULL */
/* Whether there is another reference than the caller's. */
static inline bool mr_kernel_code_is_shared(const mr_kernel_code *code) {
    return atomic_load_explicit(&code->refs, memory_order_acquire) > 1;
}

/* A launch that is under way. */
typedef struct {
    const mr_command *command;
    uint64_t count_from; /* mr_ptx_launch */
} mr_kernel_counting;

/* Counts of a kernel's launches on the virtual GPU since mr_kernel_code_forget, if the setting kernel_profile is on.
 * Counting takes several times as long as running, so only a sample of the blocks is counted. */
typedef struct mr_kernel_count {
    mr_ptx_profile *profile; /* of the blocks that were counted; NULL: none were */
    uint64_t launched;       /* blocks, counted or not */
    uint64_t launches;
    double bytes; /* that they may have read, and that they may have written, added up */
    uint32_t threads, shared; /* of a block of the last one; dynamic shared memory */
    MR_VEC(mr_kernel_counting) running;
} mr_kernel_count;

/* Counts for a warp that executes each instruction of the kernel once, and the bytes of global memory that one of its
 * threads then accesses. */
typedef struct mr_kernel_once {
    mr_ptx_course course[PTX_COURSES];
    uint64_t bytes[PTX_COURSES];
} mr_kernel_once;
const mr_kernel_once *mr_kernel_code_once(const mr_kernel_code *code, const mr_ptx_kernel *kernel);

/* By variable of the module: how the kernel uses it. */
const uint8_t *mr_kernel_code_uses(const mr_kernel_code *code, const mr_ptx_kernel *kernel);

struct mr_kernel_timing *mr_kernel_code_timing(const mr_kernel_code *code,
                                               const mr_ptx_kernel *kernel);
mr_kernel_count *mr_kernel_code_count(const mr_kernel_code *code, const mr_ptx_kernel *kernel);
void mr_kernel_code_forget(const mr_kernel_code *code, const mr_ptx_kernel *kernel);

/* ---- modules */

typedef struct {
    uint32_t refs;
    uint32_t epoch;
    mr_machine *machine;
    mr_kernel_code *code;
    /* by device, then by variable of the tree: bytes; NULL: not there yet, or of no size */
    mr_tensor ***variables;
} mr_kernel_module;

mr_status mr_kernel_module_create(const mr_caller *caller, mr_kernel_code *code,
                                  mr_kernel_module **out_module);
void mr_kernel_module_release(mr_kernel_module *module); /* accepts NULL; waits for nothing */

/* The variable `name` on a device, as a tensor of bytes that the module owns. The first call for a device copies the
 * initial values of the variables that kernels use there, and waits; one that none uses is made when it is asked for.
 * invalid-argument: there is none of that name. */
mr_status mr_kernel_variable(const mr_caller *caller, mr_kernel_module *module, mr_device *device,
                             const char *name, mr_tensor **out_tensor,
                             const ptx_variable **out_what);

/* The registers of a thread on the current device; an estimate if the backend does not know. */
mr_status mr_kernel_registers(mr_machine *machine, mr_kernel_code *code,
                              const mr_ptx_kernel *kernel, int *out_registers);

/* ---- launches */

/* A pointer among the arguments. */
typedef struct {
    uint32_t param;    /* of the kernel */
    uint32_t at;       /* its offset in the block of parameters, in bytes */
    mr_tensor *tensor; /* it points to its first element */
    uint8_t access;    /* MR_READ | MR_WRITE as the script says; 0: as was inferred */
    const char *name;  /* of the parameter; NULL: as the PTX has it */
    bool in_data;      /* a number among the arguments is its address (kernel_operands.c) */
} mr_kernel_pointer;

typedef struct {
    mr_kernel_module *module;
    const mr_ptx_kernel *kernel;
    mr_name *name;             /* its name in the script */
    int64_t grid[3], block[3]; /* any numbers: the launch checks them */
    uint32_t shared;           /* dynamic, bytes */
    bool cooperative;          /* all blocks run at once, and may meet in grid.sync() (R69) */
    mr_stream *stream;         /* NULL: the current one of the device of the first tensor */
    const void *params;        /* kernel->param_bytes; pointers are filled in here */
    const mr_kernel_pointer *pointers;
    uint32_t pointer_count;
} mr_kernel_call;

/* Checks the launch (R48) and the tensors, finds out which bytes it may touch, and submits it.
 * invalid-configuration: grid, block or shared memory are beyond the device's limits. */
mr_status mr_kernel_launch(const mr_caller *caller, const mr_kernel_call *call);

/* ---- what the command of a launch holds */

typedef struct {
    uint32_t at;      /* in the params, or the index of a variable */
    uint32_t operand; /* whose storage it points into */
    uint64_t offset;  /* bytes from that storage's start */
    uint8_t dtype;    /* of the tensor that was passed; 0 of a variable */
    uint8_t ndim;     /* and its shape, for messages; 0: it has more dims, or larger ones */
    uint32_t shape[4];
} mr_kernel_address;

/* Bytes from the start of its storage to the tensor's first element. */
static inline uint64_t mr_kernel_pointer_offset(const mr_tensor *t) {
    return (uint64_t)t->offset * mr_dtype_size((mr_dtype)t->dtype);
}

/* Facts about a launch that its operands do not contain. */
typedef struct {
    /* It may access memory through pointers that are not arguments of their own: in structs by value that the kernel
     * reads, in memory, in numbers. These accesses have no operand, except (MR_ASSUMED_IN_DATA) for a number argument
     * that was the address of an allocation at the call. */
    bool follows_data;
    bool is_declared;      /* the script says (access=) that it does less than its code can do */
    bool uses_addresses;   /* mr_ptx_kernel_uses_address */
    bool depends_on_order; /* mr_ptx_kernel_depends_on_order */
    bool may_depend_on_order;
    uint8_t updates; /* mr_ptx_kernel_updates */
} mr_kernel_escapes;

typedef struct {
    mr_kernel_code *code; /* one reference */
    const mr_ptx_kernel *kernel;
    uint32_t grid[3], block[3];
    uint32_t shared;
    mr_kernel_escapes escapes;
    bool cooperative;
    uint32_t pointer_count, variable_count;
    double bytes, instructions;    /* for the cost model: see estimate() */
    double passes;                 /* of its loops, if the loops touch those bytes */
    mr_kernel_address addresses[]; /* pointers, then variables; then the params */
} mr_kernel_arguments;

static inline const mr_kernel_arguments *mr_kernel_arguments_of(const mr_command *command) {
    return command->u.op.arguments;
}
/* Operands of launches are bytes. Sets *io_view, which is a copy of one, to elements as the tensor had them that was
 * passed, if the bytes are whole elements. Not where several pointers into the memory differ. */
void mr_kernel_type_view(const mr_command *command, mr_tensor *io_view);
static inline const void *mr_kernel_params_of(const mr_kernel_arguments *a) {
    return a->addresses + a->pointer_count + a->variable_count;
}
static inline uint64_t mr_kernel_blocks(const mr_kernel_arguments *a) {
    return (uint64_t)a->grid[0] * a->grid[1] * a->grid[2];
}
/* NULL: it is not a launch of a user's kernel. */
const mr_kernel_escapes *mr_kernel_escapes_of(const mr_command *command);
/* It may print: a launch of a kernel whose module calls printf. */
bool mr_kernel_may_print(const mr_command *command);
/* Some atomic operations of the launch are atomic inside one block only. */
bool mr_kernel_has_block_atomics(const mr_command *launch);
/* The params with the addresses of this command's storages in them: `out` has kernel->param_bytes. */
void mr_kernel_fill_params(const mr_command *command, void *out);

/* The row (kernel/run.c). */
int64_t mr_kernel_items(const mr_command *command);
int64_t mr_kernel_state_bytes(const mr_command *command); /* mr_ptx_progress; 0: none */
mr_status mr_kernel_run(const mr_command *command, void *state, int64_t first, int64_t end);
bool mr_kernel_runs_alone(const mr_command *command); /* not on several threads */
void mr_kernel_begin(const mr_command *command, void *state);
void mr_kernel_finish(const mr_command *command, void *state);
void mr_kernel_fail(const mr_command *command, void *state); /* the findings so far count */
void mr_kernel_cost(const mr_command *command, mr_cost *out_cost);
void mr_kernel_arguments_retain(void *arguments);
void mr_kernel_arguments_release(void *arguments);

#endif
