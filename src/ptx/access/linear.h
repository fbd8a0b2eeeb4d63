/* Linear forms over symbols, and facts about them: the arithmetic of launch.c. A symbol stands for a number that
 * differs between threads or iterations (a thread's index, a loop's counter, a value that is not linear), with an
 * interval. A fact says that a form is at most 0, in the blocks that a block dominates. */
#ifndef MR_PTX_ACCESS_LINEAR_H
#define MR_PTX_ACCESS_LINEAR_H

#include <stdbool.h>
#include <stdint.h>

enum { LINEAR_TERMS = 8, LINEAR_SYMBOLS = 512, LINEAR_FACTS = 320 };

/* Both ends stand for infinity. */
#define LINEAR_LEAST INT64_MIN
#define LINEAR_MOST  INT64_MAX

typedef struct {
    int64_t factor; /* not 0 */
    uint32_t symbol;
} linear_term;

typedef struct {
    int64_t constant;
    uint32_t count;
    linear_term terms[LINEAR_TERMS]; /* by symbol, descending */
} linear_form;

typedef struct {
    int64_t low, high;
} linear_range;

/* Where facts hold: numbers in a walk of the tree of dominators. */
typedef struct {
    uint32_t enter, leave;
} linear_scope;

typedef struct {
    linear_form form; /* is at most 0 */
    linear_scope scope;
} linear_fact;

typedef struct {
    linear_form dividend;
    int64_t divisor;
    uint32_t symbol;
} linear_quotient;

/* A form whose bound was found in the search at hand. */
typedef struct {
    linear_form form;
    int64_t upper;
    uint32_t search;
} linear_memory;

enum { LINEAR_MEMORIES = 64 };

typedef struct {
    linear_range symbols[LINEAR_SYMBOLS];
    linear_fact facts[LINEAR_FACTS];
    linear_quotient quotients[48];
    uint32_t symbol_count, fact_count, quotient_count;
    linear_memory memories[LINEAR_MEMORIES];
    uint32_t searches;
    int steps_left; /* of searches; without any, intervals alone decide */
} linear_system;

/* Sums of numbers that do not fit become infinite. */
int64_t linear_plus(int64_t a, int64_t b);
int64_t linear_times(int64_t a, int64_t b);

linear_form linear_constant(int64_t x);
/* False: memory for symbols is used up. */
bool linear_new_symbol(linear_system *s, int64_t low, int64_t high, linear_form *out);
/* a + factor * b. False: it has too many terms, or numbers that do not fit. */
bool linear_add(const linear_form *a, const linear_form *b, int64_t factor, linear_form *out);

/* Notes that `form` is at most 0. False: this can never be, so that the code is not reached. */
bool linear_assume(linear_system *s, const linear_form *form, linear_scope scope);
/* Like linear_assume, and also adds facts that follow from this and another fact, if they have fewer symbols. */
bool linear_assume_closely(linear_system *s, const linear_form *form, linear_scope scope);
/* Removes a symbol from a form with an equation that holds in a block. False: there is none. */
bool linear_eliminate(linear_system *s, linear_form *in_out, uint32_t symbol, uint32_t at);
void linear_reset(linear_system *s, int steps);
/* Bounds of a form in a block, by the intervals alone and by the facts that hold there. */
int64_t linear_plain_upper(const linear_system *s, const linear_form *form);
int64_t linear_upper(linear_system *s, const linear_form *form, uint32_t at);
int64_t linear_lower(linear_system *s, const linear_form *form, uint32_t at);
linear_range linear_bounds(linear_system *s, const linear_form *form, uint32_t at);
/* The floor of form / divisor, divisor > 0. */
bool linear_quotient_of(linear_system *s, const linear_form *form, int64_t divisor, uint32_t at,
                        linear_form *out);

#endif
