/* PTX modules on the virtual GPU: load one, look at its kernels, run blocks of a launch.
 *
 * This folder knows no streams, tensors or commands (it includes base/ only). A caller passes memory as address ranges,
 * which the kernel changes. One module may be used by several threads at once; blocks of one launch may run on several
 * threads at once. */
#ifndef MR_PTX_PTX_H
#define MR_PTX_PTX_H

#include "ptx/access/extents.h"
#include "ptx/read/tree.h"

/* ---- modules */

typedef struct mr_ptx_module mr_ptx_module;

typedef struct {
    const char *name; /* as in the C source where the compiler gives it, else "0", "1", ... */
    ptx_type type;    /* of an element */
    uint32_t bytes, align;
    uint32_t offset;     /* in the block of parameters */
    bool is_struct;      /* an array of bytes: a struct passed by value */
    bool may_be_pointer; /* 8 bytes of type b64, u64 or s64 */
} mr_ptx_param;

typedef struct {
    const mr_ptx_module *module;
    const ptx_tree *tree; /* of the module */
    const ptx_function *function;
    const char *name; /* the symbol in the PTX */
    const mr_ptx_param *params;
    uint32_t param_count;
    uint32_t param_bytes;
    uint32_t shared_bytes; /* static, with those of the functions that it calls */
    uint32_t local_bytes;  /* a thread: the largest known depth of calls, without recursion */
    /* 32-bit ones that are live at once at most: an estimate of what ptxas would use */
    uint32_t registers;
    uint32_t max_threads; /* a block; 1024 unless .maxntid says less */
    bool recursive;
    /* an unsupported instruction or feature that it uses, with the line: it cannot run. NULL: none */
    const char *problem;
    const struct ptx_access *access; /* access/access.h */
} mr_ptx_kernel;

/* Reads and decodes. `name` stands for the text in messages. Unsupported code in a function becomes the `problem` of
 * the kernels that may call it. Outside functions it is an error here (NOT_SUPPORTED, with the source line). */
mr_status mr_ptx_module_load(const char *text, size_t size, const char *name,
                             mr_ptx_module **out_module);
void mr_ptx_module_retain(mr_ptx_module *module);  /* atomic: threads share programs */
void mr_ptx_module_release(mr_ptx_module *module); /* accepts NULL */
const ptx_tree *mr_ptx_module_tree(const mr_ptx_module *module);
uint32_t mr_ptx_kernel_count(const mr_ptx_module *module);
const mr_ptx_kernel *mr_ptx_kernel_at(const mr_ptx_module *module, uint32_t i);
const mr_ptx_kernel *mr_ptx_kernel_find(const mr_ptx_module *module,
                                        const char *name); /* NULL: there is none */

/* The variables of the module in global and constant memory. The caller allocates each one of `tree->variables` with
 * the space PTX_GLOBAL or PTX_CONST and a size above 0; `addresses` has their addresses, by index of variable. Writes
 * the initial value of variable `i` to `out`: tree->variables[i].bytes bytes. */
void mr_ptx_variable_init(const mr_ptx_module *module, uint32_t i, const uint64_t *addresses,
                          void *out);

/* The variable of shared memory that holds the byte at `offset`, as in the source; NULL: none that is known. */
const char *mr_ptx_shared_name(const mr_ptx_kernel *kernel, uint64_t offset);

/* ---- the memory of a launch */

/* One allocation that the device can reach. */
typedef struct {
    uint64_t first, end; /* addresses */
    char *host;          /* where the byte at `first` is */
    void *owner;         /* the caller's, for `describe` and `will_write` */
    bool read_only;      /* constant memory */
    /* the accesses that the launch is known to make there: MR_PTX_READS | MR_PTX_WRITES */
    uint8_t access;
    /* One bit a byte, lowest bit first; 1: nothing has ever been written there. NULL: all is written. The machine
     * clears bits that it writes, atomically. */
    uint8_t *unset;
} mr_ptx_range;

typedef struct {
    void *context;
    /* The allocation in which `address` lies. False: none is there, or it was freed. Any thread. */
    bool (*find)(void *context, uint64_t address, mr_ptx_range *out_range);
    /* Before the first write of a call of mr_ptx_run to a range. May be NULL. Any thread. */
    void (*will_write)(void *context, const mr_ptx_range *range);
    /* For messages: describes an address: "byte 8 of x (4000 bytes, made at a.lua:3)", "16 bytes past the end of y
     * (...)", "where no tensor is". `meant`: the pointer that it was computed from, or 0 if that is not known. The text
     * may be cut. */
    void (*describe)(void *context, uint64_t address, uint64_t meant, char *out, size_t size);
} mr_ptx_memory;

/* ---- launches */

typedef struct mr_ptx_watch mr_ptx_watch;     /* watch.h: races, uninitialised reads */
typedef struct mr_ptx_profile mr_ptx_profile; /* run/profile.h: counts by line */

/* Bytes that an instruction reads and nothing has written. */
typedef struct {
    const ptx_instruction *instruction;
    ptx_space space;
    uint64_t address; /* in the space, of the first lane that reads them */
    uint32_t bytes;
    const char *text; /* a sentence */
} mr_ptx_unset_read;

/* The values of the device's special registers and limits. */
typedef struct {
    uint32_t sm_count;
    uint32_t max_shared; /* bytes a block may ask for, dynamic and static together */
    /* of local memory a thread; 0: 64 KiB (CUDA's default is 1 KiB, which grows) */
    uint64_t stack_bytes;
    uint64_t local_limit; /* bytes of local memory that one call of mr_ptx_run may take; 0: none */
    uint64_t resident_blocks; /* of this kernel that run at once; 0: one */
    /* a warp may execute; 0: none. Beyond it: LAUNCH_TIMEOUT, which names the loop's line */
    uint64_t instruction_limit;
    uint64_t clock_hz; /* of %clock; %globaltimer counts nanoseconds from `start_ns` */
    uint64_t start_ns;
} mr_ptx_device;

/* Where kernels of a cooperative launch find the barrier of the grid (%envreg1, %envreg2): a size and the barrier. It
 * is an address of global memory that no allocation has. */
#define MR_PTX_WORKSPACE       ((uint64_t)1 << 60)
#define MR_PTX_WORKSPACE_WORDS 4

/* How far the blocks of one launch are: shared by all calls of mr_ptx_run for it. Zeros before the first one. While
 * none is under way, a copy of the bytes is as good. */
typedef struct {
    uint32_t active; /* calls under way */
    /* changes when a block has ended, or has changed memory while others wait (grid.c) */
    uint64_t epoch;
    uint32_t workspace[MR_PTX_WORKSPACE_WORDS]; /* for a cooperative launch */
    uint8_t begun[];                            /* by block, one bit each */
} mr_ptx_progress;
static inline size_t mr_ptx_progress_bytes(uint64_t blocks) {
    return sizeof(mr_ptx_progress) + (size_t)(blocks / 8 + 1);
}

typedef struct {
    const mr_ptx_kernel *kernel;
    const char *name;           /* of the kernel, in messages; NULL: its symbol */
    uint32_t grid[3], block[3]; /* checked by the caller against R48's limits; none is 0 */
    uint32_t dynamic_shared;
    /* zeros at first, the same in all calls of mr_ptx_run; NULL: not a cooperative launch */
    uint32_t *workspace;
    const void *params;        /* kernel->param_bytes */
    const uint64_t *variables; /* addresses, by index of the module's variables */
    mr_ptx_memory memory;
    mr_ptx_device device;
    mr_ptx_progress *progress; /* NULL: a block that waits for one of another call waits for ever */
    /* checks bounds by allocation, and alignment; without it only the host's safety: an access outside every range is
     * always an error */
    bool check;
    /* With `check`: an access must lie in the allocation of a pointer, or in a variable, that its address was computed
     * from, if the code shows that. Otherwise in any allocation. */
    bool check_sources;
    /* with check_sources: an access outside them is carried out, and reported by `strayed` */
    bool may_stray;
    mr_ptx_watch *watch;     /* NULL: races are not looked for */
    mr_ptx_profile *profile; /* NULL: nothing is counted */
    /* Counts one block of so many (0 or 1: each), by number among all of the kernel's blocks; block 0 of this launch
     * has the number `count_from`. */
    uint32_t count_every;
    uint64_t count_from;
    /* The output of printf; a call has whole lines or parts of them, in the order of one thread. Called with a lock
     * held. NULL: it goes nowhere. */
    void (*print)(void *context, const char *text, size_t size);
    /* With `check`: an instruction reads unwritten bytes (global memory by range->unset, shared, local). That is not an
     * error, as CUDA goes on with any values. Called once for each instruction in a call of mr_ptx_run, without a lock.
     * NULL: writes are not followed at all. */
    void (*unset_read)(void *context, const mr_ptx_unset_read *read);
    /* An access was carried out that its range does not name (mr_ptx_range.access), or see may_stray. Called once or
     * more, by any thread. NULL: not reported. */
    void (*strayed)(void *context);
    /* Asked now and then while a block runs: true ends the run with INTERRUPTED. NULL: never. Any thread. */
    bool (*interrupted)(void *context);
    void *context;
} mr_ptx_launch;

static inline const char *ptx_launch_name(const mr_ptx_launch *launch) {
    return launch->name ? launch->name : launch->kernel ? launch->kernel->name : "?";
}

/* Runs blocks [first, end) of the grid, numbered x fastest, to their ends, on the calling thread. If they wait for
 * later blocks, it runs those, too, as far as `progress` says that they have not begun. An error is that of the first
 * access (instruction, thread) that failed. It has CUDA's code where CUDA has one: ILLEGAL_ADDRESS, MISALIGNED_ADDRESS,
 * ASSERT, LAUNCH_FAILURE for trap and for a stack overflow, LAUNCH_TIMEOUT. It has a sentence that names kernel, source
 * line, thread, block, and the accessed memory. Memory then is as the kernel left it. */
mr_status mr_ptx_run(const mr_ptx_launch *launch, uint64_t first, uint64_t end);

/* ---- what a kernel reads and writes: kernel.c asks the folder access, which finds it out */

/* By param; computed once when the module is loaded. */
const mr_ptx_param_access *mr_ptx_kernel_access(const mr_ptx_kernel *kernel);
/* Whether it uses pointers that are in memory, are made from other numbers, or are known to functions that the analysis
 * does not know. No extent covers such accesses. */
bool mr_ptx_kernel_follows_memory(const mr_ptx_kernel *kernel);
/* Whether the result of a launch can depend on the address at offset `at` of the parameters itself, not only on the
 * memory there. The other one: on addresses of the module's variables (access/outcome.h). */
bool mr_ptx_kernel_uses_address(const mr_ptx_kernel *kernel, uint32_t at);
bool mr_ptx_kernel_uses_addresses_of_variables(const mr_ptx_kernel *kernel);
/* Can the order in which the threads of a launch run, or the time, decide its values? (access/outcome.h) */
bool mr_ptx_kernel_depends_on_order(const mr_ptx_kernel *kernel);
/* The same, or it has volatile and similar accesses by which threads may communicate; only a watch can tell. */
bool mr_ptx_kernel_may_depend_on_order(const mr_ptx_kernel *kernel);
/* The single kind of its atomic operations, if their results are not used: they commute with others of the same kind.
 * 0: it has none, or others. */
uint8_t mr_ptx_kernel_updates(const mr_ptx_kernel *kernel);

/* How it uses each variable of its module (tree->variables): `out_access` has one entry for each; 0: it does not.
 * False: memory is out. */
bool mr_ptx_kernel_uses(const mr_ptx_kernel *kernel, uint8_t *out_access);
/* Whether it, or a function that it calls, has atomic operations with the scope of one block; false, too, if the
 * kernel is too long to analyse. */
bool mr_ptx_kernel_has_block_atomics(const mr_ptx_kernel *kernel);

/* Interval analysis with the launch's numbers: grid, block, and the values in `params`. Writes at most `most` extents,
 * in no certain order, and returns how many there are, which can be more than `most`. An access through a number that
 * is not a pointer has extents relative to that number. */
uint32_t mr_ptx_launch_extents(const mr_ptx_kernel *kernel, const mr_ptx_plan *plan,
                               mr_ptx_extent *out, uint32_t most);

#endif
