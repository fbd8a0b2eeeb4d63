/* The decoded form of a function: decode/ makes it from the tree, and the handlers execute it.
 *
 * A decoded instruction (a code) names its handler; nothing is looked up while a kernel runs. An operand says where a
 * vector of 32 lanes lies, in one of four areas. So reading a register, a constant, a special register or the address
 * of a variable is the same load without a branch:
 *
 *     area[operand & 3] + (operand & ~3)
 *
 * A predicate is one word with a bit for each lane. Easiest to break: a register keeps its slot of the frame only while
 * it is live (slots.c). So a code may write nothing but its results, and only in the lanes of its mask. */
#ifndef MR_PTX_CODE_H
#define MR_PTX_CODE_H

#include "ptx/ptx.h"

#define PTX_LANES    32
#define PTX_ALL      0xffffffffu
#define PTX_BARRIERS 16

/* An operand: offset of a vector in an area, with the area in the low two bits. */
typedef uint32_t ptx_place_of;

enum {
    PTX_AREA_FRAME, /* registers, predicates */
    /* of the module: immediates, and what is the same in every launch (%laneid) */
    PTX_AREA_CONSTANT,
    PTX_AREA_WARP,   /* %tid, %warpid */
    PTX_AREA_LAUNCH, /* sizes and position in the grid, addresses of variables */
    PTX_AREAS
};

/* Vectors at the start of the launch's area, 128 bytes each. */
enum {
    PTX_LAUNCH_NTID,
    PTX_LAUNCH_NCTAID = PTX_LAUNCH_NTID + 3,
    PTX_LAUNCH_CTAID = PTX_LAUNCH_NCTAID + 3,
    PTX_LAUNCH_NWARPID = PTX_LAUNCH_CTAID + 3,
    PTX_LAUNCH_SMID,
    PTX_LAUNCH_NSMID,
    PTX_LAUNCH_TOTAL_SHARED,
    PTX_LAUNCH_DYNAMIC_SHARED,
    PTX_LAUNCH_WORKSPACE, /* its upper half, its lower half */
    PTX_LAUNCH_VECTORS = PTX_LAUNCH_WORKSPACE + 2
};
/* In the warp's area. */
enum { PTX_WARP_TID, PTX_WARP_WARPID = PTX_WARP_TID + 3, PTX_WARP_VECTORS };

/* Where generic addresses of memory that is not global lie: far from every address of a process. The top three bits
 * tell them apart; PTX_TOP_GLOBAL stands for global and constant memory. */
#define PTX_WINDOW_SHIFT 61
enum { PTX_TOP_GLOBAL, PTX_TOP_SHARED, PTX_TOP_LOCAL, PTX_TOP_PARAM, PTX_TOP_FUNCTION };
#define PTX_WINDOW(top) ((uint64_t)(top) << PTX_WINDOW_SHIFT)

typedef struct ptx_warp ptx_warp;
typedef struct ptx_code ptx_code;
typedef struct ptx_routine ptx_routine;

/* Executes a code for the lanes of `mask`, which is not empty, and returns the one that comes next; NULL: the warp
 * cannot go on, and warp->state says why. */
typedef const ptx_code *ptx_run(ptx_warp *warp, const ptx_code *code, uint32_t mask);

typedef struct ptx_reach ptx_reach; /* memory.h */
/* Moves one part of each lane between a register and `offset` bytes after where the lane's access begins. */
typedef void ptx_load(const ptx_reach *reach, size_t offset, void *to, uint32_t mask);
typedef void ptx_store(const ptx_reach *reach, size_t offset, const void *from, uint32_t mask);
/* Carries out an atomic operation with operands b and c; returns the old value. */
typedef uint64_t ptx_atom(void *at, uint64_t b, uint64_t c);

/* The access of a load, store or atomic operation. */
typedef struct {
    uint8_t space; /* ptx_space */
    uint8_t access;
    uint8_t count; /* of a vector */
    uint8_t bytes; /* of all parts together: what a lane accesses */
    uint8_t part_bytes;
    bool wide_address;
    /* the address is `offset`: in the parameters of the kernel, or after the frame's local_base */
    bool fixed;
    bool may_be_unset; /* parameters of calls: their padding */
    bool atomic;       /* for watch.h: an atomic operation, or a load or store that is strong */
    uint8_t order, scope;
    uint8_t align;  /* the required alignment of the address */
    uint32_t index; /* of this access: the run keeps the range that it used last */
    int64_t offset;
    ptx_place_of parts[8]; /* the registers, of a vector one for each part; PTX_NO_PART: `_` */
    union {
        ptx_load *load;
        ptx_store *store;
        ptx_atom *atom;
    };
} ptx_memory_code;
#define PTX_NO_PART UINT32_MAX

typedef struct {
    uint32_t from, to, bytes; /* offsets in the local memory of caller and callee */
} ptx_copy;

typedef struct {
    const ptx_routine *callee; /* NULL: indirect, `code->a` says which */
    uint32_t argument_count, result_count;
    const uint32_t *arguments, *argument_bytes; /* where they lie in the caller's local memory */
    const uint32_t *results, *result_bytes;
} ptx_call_code;

struct ptx_code {
    ptx_run *run;
    ptx_place_of guard;  /* of a predicate; a constant where the instruction has no guard */
    uint32_t guard_flip; /* all bits: `@!p` */
    ptx_place_of d, a, b, c;
    union {
        uint64_t bits; /* immediates of a handler (a lookup table, flags of rounding ...) */
        const ptx_memory_code *memory;
        const ptx_call_code *call;
        const ptx_code *const *targets; /* brx.idx */
        const ptx_code *target;
    };
    union {
        /* branches: where the lanes meet again; NULL: at the end of the function */
        const ptx_code *join;
        uint64_t more;
    };
    const ptx_instruction *source;
};

/* A function with code. */
struct ptx_routine {
    const ptx_function *function;
    const ptx_code *codes;
    uint32_t code_count;
    uint32_t first_index; /* of codes[0] among all codes of the module (profile.h) */
    uint32_t frame_bytes; /* registers */
    uint32_t local_bytes; /* its .local and .param variables, for each lane; a multiple of 16 */
    const uint32_t *variable_offset; /* of function->variables: in local memory */
    /* of parameters, then of results: in local memory; for a kernel: in its params */
    const uint32_t *parameter_offset;
    uint32_t registers; /* 32-bit ones that live at once */
    uint32_t *callees;  /* indices of functions */
    uint32_t callee_count;
    bool calls_indirectly;
    /* the part of it that is not supported; then it has no codes. NULL: none */
    const char *problem;
};

/* A vector of the launch's area that holds an address: of a variable of the module, or of a .shared one of a function;
 * or a parameter of the kernel. */
#define PTX_SLOT_PARAM (-2)
typedef struct {
    int32_t function;  /* -1: variable of the module; or PTX_SLOT_PARAM */
    uint32_t variable; /* PTX_SLOT_PARAM: the offset of the parameter */
    int64_t addend;
    uint8_t bytes; /* 4 or 8 */
    bool generic;
    uint32_t offset; /* of the vector */
} ptx_address_slot;

#endif
