/* Shared by the files that evaluate one launch.
 *
 *     numbers.c   forms as numbers of a register, and as pointers
 *     forms.c     arithmetic, parameters: the form of each value
 *     several.c   conditions; values that are one of several
 *     loops.c     counters of loops
 *     shape.c     bytes that are accessed for certain
 *     launch.c    goes through the blocks; the bytes that are accessed
 *
 * A pointer is a symbol with an unknown number, from 1 up. So a comparison of pointers decides only what holds for
 * every address: two pointers into one allocation are compared by their distance, and two allocations are in no order.
 * Each symbol says which pointers it `holds`. A number holds none, the base of a pointer exactly one, and any other
 * symbol all that its value can be made from. A form names the allocation that it points into only if it is one base
 * plus numbers; any other can point into everything that the address can be derived from. */
#ifndef MR_PTX_ACCESS_RUN_H
#define MR_PTX_ACCESS_RUN_H

#include "ptx/access/launch.h"
#include "ptx/access/linear.h"

/* Addresses of devices and of this process have fewer than 58 bits. A distance fits by far, so that forms of an
 * address plus a number do not overflow. */
#define LAUNCH_MOST_ADDRESS (INT64_C(1) << 60)

/* A loop with one test that decides whether it goes on. */
typedef struct {
    bool is_known;
    uint32_t counter;  /* symbol */
    bool has_bound;    /* an iteration is reached exactly if this is at most 0: */
    linear_form bound; /* of all but the first one always */
} launch_loop;

typedef struct {
    const access_program *program;
    const mr_ptx_plan *plan;
    linear_system *system;
    linear_form *forms;              /* by node */
    linear_form *pieces;             /* by piece: its base, if it is a pointer in this launch */
    bool *is_pointer;                /* by piece */
    uint64_t pointers;               /* the same as a set: launch_bit */
    bool *is_dead;                   /* by block: this launch does not come here */
    bool *is_defined;                /* by node: not an undefined value */
    linear_form indices[2][3], lane; /* tid, ctaid */
    uint64_t holds[LINEAR_SYMBOLS];  /* by symbol: a set of pointers */
    bool is_base[LINEAR_SYMBOLS];    /* by symbol: the address of the start of one of them */
    bool is_counter[LINEAR_SYMBOLS]; /* by symbol: counts the iterations of a loop */
    /* By symbol: why it is not known; CERTAIN: in a launch it is every number of its interval, whatever the others of
     * that kind are. */
    uint8_t why[LINEAR_SYMBOLS];
    launch_loop *loops;  /* by block, of headers */
    uint64_t taint;      /* what a new symbol holds, */
    mr_ptx_reason cause; /* and why it is not known */
    bool is_exhausted;   /* no memory for more symbols: nothing is bounded */
} launch_run;

static inline const launch_node *launch_node_at(const launch_run *r, uint32_t n) {
    return &r->program->nodes[n];
}
static inline uint32_t launch_operand(const launch_run *r, const launch_node *node, uint32_t k) {
    return r->program->operands[node->operands + k];
}
static inline linear_scope launch_scope_of(const launch_run *r, uint32_t block) {
    const launch_block *b = &r->program->blocks[block];
    return (linear_scope){b->enter, b->leave};
}
static inline uint32_t launch_at(const launch_run *r, uint32_t block) {
    return r->program->blocks[block].enter;
}

/* ---- numbers.c */

linear_range launch_range_of(uint32_t bits);
int64_t launch_canonical(uint64_t x, uint32_t bits);
linear_form launch_symbol(launch_run *r, int64_t low, int64_t high);
linear_form launch_unknown(launch_run *r, uint32_t bits);
/* Does the exact number fit the register? With 64 bits: is it bounded? */
bool launch_fits(launch_run *r, const linear_form *f, uint32_t bits, uint32_t block);
linear_form launch_settle(launch_run *r, const linear_form *f, uint32_t bits, uint32_t block);
linear_range launch_bounds(launch_run *r, const linear_form *f, uint32_t block);
bool launch_is_negative(launch_run *r, const linear_form *f, uint32_t block);
/* A form of one possible number. */
bool launch_as_number(const launch_run *r, const linear_form *f, int64_t *out);
/* A symbol for a number of the node's width within these bounds. */
linear_form launch_within(launch_run *r, const launch_node *node, int64_t low, int64_t high);
/* Everything that the symbols of a form hold. */
uint64_t launch_held(const launch_run *r, const linear_form *f);
/* The base that the form is, plus numbers; NULL: it is a number, or (*out_is_mixed) unknown. */
const linear_term *launch_base(const launch_run *r, const linear_form *f, bool *out_is_mixed);

/* ---- forms.c */

linear_form launch_evaluate(launch_run *r, const launch_node *node);

/* ---- several.c */

/* left - right + add <= 0. False: that can never be. */
bool launch_assume_at_most(launch_run *r, const linear_form *left, const linear_form *right,
                           int64_t add, linear_scope scope);
/* False: the comparison can not be true. */
bool launch_assume_atom(launch_run *r, const launch_atom *a, uint32_t block, linear_scope scope);
linear_form launch_merge_phi(launch_run *r, const launch_node *node);
linear_form launch_merge_select(launch_run *r, const launch_node *node);

/* ---- loops.c */

void launch_enter_loop(launch_run *r, uint32_t header);

/* ---- shape.c */

/* Where the bytes of a site lie after its base if all threads access them for certain: MR_PTX_CERTAIN, and the place,
 * run and dims of *out are set. Otherwise why not. */
mr_ptx_reason launch_shape(launch_run *r, const launch_site *site, const linear_form *offset,
                           mr_ptx_extent *out);

#endif
