/* The handlers that are not made from tables (lanes.h): control flow, memory, barriers, warp operations, and rare
 * arithmetic. The comment beside each names its operands. */
#ifndef MR_PTX_RUN_RUNS_H
#define MR_PTX_RUN_RUNS_H

#include "ptx/code.h"

/* control.c */
ptx_run ptx_run_branch;       /* target, join; the guard selects the lanes that branch */
ptx_run ptx_run_branch_index; /* a: index, bits: targets, b: how many (a number), join */
ptx_run ptx_run_join;
ptx_run ptx_run_call;          /* call */
ptx_run ptx_run_call_indirect; /* call, a: address */
ptx_run ptx_run_return, ptx_run_exit, ptx_run_trap, ptx_run_nothing;
ptx_run ptx_run_end;   /* after the last instruction of a function: as a return */
ptx_run ptx_run_fence; /* bits: order | scope << 8 */

/* predicate.c: d, a, b, c are predicates */
ptx_run ptx_run_pred_mov, ptx_run_pred_not, ptx_run_pred_and, ptx_run_pred_or, ptx_run_pred_xor;

/* move.c */
/* d: 32 or 64 bits by `more`; bits: offset in the frame, with the window if generic */
ptx_run ptx_run_local_address;
ptx_run ptx_run_clock;    /* d; more: bytes; a: which ptx_special (a number) */
ptx_run ptx_run_isspacep; /* d: predicate, a: address of 64 bits, bits: PTX_TOP_* */

/* load.c */
ptx_run ptx_run_load, ptx_run_store, ptx_run_copy_async; /* memory, a: address */
ptx_run ptx_run_copy_commit;
ptx_run ptx_run_copy_wait; /* bits: groups that need not be over, or PTX_WAIT_ALL */

ptx_load *ptx_find_load(unsigned part_bytes, bool is_signed, unsigned register_bytes);
ptx_load *ptx_find_load_strong(unsigned part_bytes, bool is_signed, unsigned register_bytes);
ptx_store *ptx_find_store(unsigned part_bytes, unsigned register_bytes);
ptx_store *ptx_find_store_strong(unsigned part_bytes, unsigned register_bytes);

/* atomic.c */
ptx_run ptx_run_atomic;                                         /* memory, a: address, b, c, d */
ptx_atom *ptx_find_atom(ptx_modifier operation, ptx_type type); /* NULL: there is none */

/* barrier.c */
ptx_run ptx_run_barrier;        /* a: number, b: threads or a constant 0; bits: is it .aligned */
ptx_run ptx_run_barrier_arrive; /* as above */
ptx_run ptx_run_barrier_red;    /* c: predicate, d; more: PTX_MOD_popc, _and, _or */
ptx_run ptx_run_warp_barrier;   /* c: members */

/* together.c; c: members where the instruction has .sync */
/* d, a, b: lane or offset; bits: modifier; more: clamp | predicate << 32 */
ptx_run ptx_run_shuffle;
ptx_run ptx_run_vote;  /* d, a: predicate, bits: modifier */
ptx_run ptx_run_match; /* d, a; bits: modifier | bytes << 8; b: predicate's place, or PTX_NO_PART */
ptx_run ptx_run_redux; /* d, a; bits: modifier | type << 8 */
ptx_run ptx_run_activemask; /* d */
/* rounding.c, carry.c, half_ops.c */
ptx_run ptx_run_rounded; /* bits: PTX_ROUNDED(...) */
ptx_run ptx_run_carry;   /* bits: PTX_CARRY(...) */
ptx_run ptx_run_half;    /* bits: PTX_HALF(...) */

typedef enum {
    PTX_R_ADD,
    PTX_R_SUB,
    PTX_R_MUL,
    PTX_R_FMA,
    PTX_R_DIV,
    PTX_R_RCP,
    PTX_R_SQRT,
    PTX_R_F32_OF_F64,
    PTX_R_F32_OF_S64,
    PTX_R_F32_OF_U64,
    PTX_R_F64_OF_S64,
    PTX_R_F64_OF_U64,
} ptx_rounded_op;
#define PTX_ROUNDED(op, rounding, is_64, ftz, sat)                                                 \
    ((uint64_t)(op) | (uint64_t)(rounding) << 8 | (uint64_t)(is_64) << 16 |                        \
     (uint64_t)(ftz) << 17 | (uint64_t)(sat) << 18)

typedef enum { PTX_C_ADD, PTX_C_SUB, PTX_C_MAD_LO, PTX_C_MAD_HI } ptx_carry_op;
#define PTX_CARRY(op, is_64, is_signed, in, out)                                                   \
    ((uint64_t)(op) | (uint64_t)(is_64) << 8 | (uint64_t)(is_signed) << 9 | (uint64_t)(in) << 10 | \
     (uint64_t)(out) << 11)

typedef enum {
    PTX_H_ADD,
    PTX_H_SUB,
    PTX_H_MUL,
    PTX_H_FMA,
    PTX_H_MIN,
    PTX_H_MAX,
    PTX_H_NEG,
    PTX_H_ABS,
    PTX_H_EX2,
    PTX_H_TANH,
    PTX_H_OF_F32, /* d = a; of two: d = a << 16 | b */
    PTX_H_OF_F64,
    PTX_H_OF_S64,
    PTX_H_OF_U64,
    PTX_H_TF32_OF_F32,
} ptx_half_op;
#define PTX_HALF(op, is_bf16, is_two, rounding, ftz, sat, relu, nan, xorsign, finite)              \
    ((uint64_t)(op) | (uint64_t)(is_bf16) << 8 | (uint64_t)(is_two) << 9 |                         \
     (uint64_t)(rounding) << 10 | (uint64_t)(ftz) << 14 | (uint64_t)(sat) << 15 |                  \
     (uint64_t)(relu) << 16 | (uint64_t)(nan) << 17 | (uint64_t)(xorsign) << 18 |                  \
     (uint64_t)(finite) << 19)

/* system.c: functions that the device provides. */
/* With so many parameters. NULL: there is none; the code's `call` says where its arguments are. */
ptx_run *ptx_find_system(const char *name, uint32_t arguments);

#endif
