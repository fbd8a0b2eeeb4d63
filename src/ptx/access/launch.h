/* The bytes that one launch can access. A compact form of the values that addresses and conditions need is made when
 * the module is loaded, and calculated with the numbers of a launch. */
#ifndef MR_PTX_ACCESS_LAUNCH_H
#define MR_PTX_ACCESS_LAUNCH_H

#include "ptx/access/graph.h"

/* A value. Operands of a phi are pairs of a node and the block that it comes from. A phi of a loop has operands only
 * for the ways into the loop. Its `step` lists what an iteration adds, as pairs of a node and a sign. */
typedef struct {
    uint8_t op, bits, from;
    bool is_signed;
    bool is_loop_phi, is_affine,
        is_shrinking; /* shrinking: an iteration makes it smaller, not below 0 */
    uint32_t number, offset;
    uint64_t constant;
    uint64_t holds; /* the pieces that it can be made from, as a set: launch_bit */
    uint32_t operands, operand_count;
    uint32_t step, step_count;
    uint32_t block;
} launch_node;

/* `left` compared with `right` is true where it is used. */
typedef struct {
    uint32_t left, right;
    uint8_t comparison, bits;
    bool is_signed;
} launch_atom;

/* The loop goes on only if a counter, `phi` plus the terms of `chain`, compares so with `bound`. */
typedef struct {
    uint32_t phi, bound;
    uint32_t chain, chain_count; /* pairs of a node and a sign */
    uint8_t comparison, bits;
    bool is_signed;
} launch_test;

typedef struct {
    uint32_t enter, leave;
    uint32_t dominator;
    uint32_t atoms, atom_count; /* that hold in it */
    uint32_t nodes, node_count; /* phis first */
    bool is_header;
    uint32_t tests, test_count;
} launch_block;

typedef struct {
    uint32_t address, block;
    uint32_t bytes;
    uint8_t access;
    bool is_atomic, is_system;
    uint32_t bases, base_count; /* in program->bases: pieces that it is plus a number */
    uint32_t links,
        link_count;      /* in program->links: what it depends on, of blocks of the program */
    mr_ptx_reason doubt; /* why the links are not enough */
    /* directly after these: pieces that it can point into, at an unknown place */
    uint32_t unclear_count;
} launch_site;

typedef struct access_program {
    const launch_node *nodes;
    const launch_block *blocks; /* in reverse postorder, those that matter */
    const launch_atom *atoms;
    const launch_test *tests;
    const launch_site *sites;
    const uint32_t *operands, *bases;
    const access_link *links;
    const access_piece *pieces;
    const uint32_t *piece_offsets; /* in the block of parameters */
    const uint32_t *param_offsets;
    uint32_t node_count, block_count, site_count, piece_count;
} access_program;

/* In `region`, which has to outlive it, as has `param_offsets`: where each parameter begins in the block of parameters.
 * NULL: memory is out. */
const access_program *access_compile(access_graph *graph, const access_origins *origins,
                                     const uint32_t *param_offsets, mr_region *region);
/* The extents of a launch, at most `most`. Returns how many there are; without memory, it says that nothing is
 * bounded. */
uint32_t access_evaluate(const access_program *program, const mr_ptx_plan *plan, mr_ptx_extent *out,
                         uint32_t most);

/* Sets of pieces in a word: one bit each, the last ones share one; and a bit for addresses of any other memory. */
#define LAUNCH_SHARED_BIT 62
#define LAUNCH_ELSEWHERE  (UINT64_C(1) << 63)
static inline uint64_t launch_bit(uint32_t piece) {
    return UINT64_C(1) << (piece < LAUNCH_SHARED_BIT ? piece : LAUNCH_SHARED_BIT);
}

#endif
