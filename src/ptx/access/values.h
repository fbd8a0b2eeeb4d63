/* How the values of a kernel are made from its instructions.
 *
 *     values.c      goes through the blocks; which instructions are known
 *     memory.c      loads, stores, atomics, copies, calls that stay
 *     arithmetic.c  moves, conversions, integer arithmetic, predicates
 *     operands.c    operands of an instruction as values, results as registers
 *     ssa.c         values with their numbers, and variables in SSA form
 *
 * All numbers of values are indices in graph->values. */
#ifndef MR_PTX_ACCESS_VALUES_H
#define MR_PTX_ACCESS_VALUES_H

#include "ptx/access/graph.h"

typedef struct {
    uint32_t phi, variable, block;
    uint32_t next; /* of the incomplete ones of that block */
} access_pending_phi;

/* A variable is a register, or (after the registers) a cell of local memory. */
typedef struct {
    access_graph *graph;
    ACCESS_LIST(uint32_t) same_hash; /* by value: the one before */
    uint32_t *only;                  /* by register that one instruction writes: its value */
    uint32_t *only_block;
    bool *is_filled;
    ACCESS_LIST(access_pending_phi) pending;    /* phis whose operands are still to be read */
    ACCESS_LIST(access_pending_phi) incomplete; /* phis of loops that are not complete yet */
    uint32_t *first_incomplete;                 /* by block */

    uint32_t copy, block, instruction; /* which is being read */
    const ptx_instruction *at;
} access_maker;

/* ---- ssa.c */

/* The value of this operation and operands: the one that exists, or (fresh) a new one in any case. */
uint32_t access_number(access_maker *m, access_value value, const uint32_t *operands,
                       uint32_t count);
uint32_t access_fresh(access_maker *m, access_value value, const uint32_t *operands,
                      uint32_t count);
uint32_t access_constant(access_maker *m, uint64_t x, uint32_t bits);
bool access_is_constant(const access_maker *m, uint32_t value, uint64_t *out);
/* A value without operands: an address, a parameter, a special register. */
uint32_t access_leaf(access_maker *m, access_op op, uint32_t bits, uint32_t number,
                     uint32_t offset);
/* A value that is not known but that it is derived from the operands. */
uint32_t access_other(access_maker *m, uint32_t bits, const uint32_t *operands, uint32_t count);
/* The same, which can be no pointer; at most `largest`, 0: that is not known. */
uint32_t access_other_number(access_maker *m, uint32_t bits, uint64_t largest,
                             const uint32_t *operands, uint32_t count);
uint32_t access_binary(access_maker *m, access_op op, uint32_t bits, bool is_signed, uint32_t a,
                       uint32_t b);
uint32_t access_extend(access_maker *m, uint32_t value, uint32_t from, uint32_t bits,
                       bool is_signed);
uint32_t access_truncate(access_maker *m, uint32_t value, uint32_t bits);
uint32_t access_select(access_maker *m, uint32_t bits, uint32_t p, uint32_t a, uint32_t b);

/* A write happens only where the guard of the instruction holds. */
uint32_t access_read_variable(access_maker *m, uint32_t variable);
uint32_t access_read_register(access_maker *m, uint32_t index);
void access_write_variable(access_maker *m, uint32_t variable, uint32_t value);
void access_write_register(access_maker *m, uint32_t index, uint32_t value);
/* Gives their operands to phis of loops whose last way in is known now, as `block` is filled. */
void access_complete_phis(access_maker *m, uint32_t block);
void access_remove_phis(access_graph *graph);

/* ---- operands.c */

bool access_is_integer(ptx_type type);
uint32_t access_type_bits(ptx_type type); /* 1: a predicate */
uint32_t access_register_bits(const access_maker *m, uint32_t index);
/* The type that the instruction names in the place k, or its last. */
ptx_type access_type_at(const access_maker *m, uint32_t k);
uint32_t access_read_operand(access_maker *m, const ptx_operand *o, uint32_t bits);
uint32_t access_source(access_maker *m, uint32_t k, uint32_t bits); /* operand k */
/* A value of `from` bits as the register wants it. */
void access_write_operand(access_maker *m, const ptx_operand *o, uint32_t value, uint32_t from,
                          bool is_signed);
void access_write_other(access_maker *m, bool keeps_pointers);
/* A number that is derived from the registers among the operands from the first one on. */
uint32_t access_number_of(access_maker *m, uint32_t bits, uint32_t first, uint64_t largest);

/* ---- instructions: true if its effect on the values is known */

bool access_memory_instruction(access_maker *m);
bool access_arithmetic_instruction(access_maker *m);
ptx_space access_space_of(const ptx_instruction *i);

#endif
