/* Compares two sets of arguments, member by member. Each family lists its members. */
#include "ops/params.h"

#include <stddef.h>

#include "ops/ids.h"
#include "ops/op.h"

/* The types of members; OPAQUE: of no number that would mean something to a person. */
typedef enum { END, SCALAR, REAL, I64, I32, U64, U32, FLAG, OPAQUE } kind;

typedef struct {
    kind kind;
    size_t offset, size; /* in mr_params */
} member;

#define MEMBER(kind, path)                                                                         \
    { kind, offsetof(mr_params, path), sizeof(((mr_params *)NULL)->path) }
#define LAST                                                                                       \
    { END, 0, 0 }

static const member none[] = {LAST};
static const member elementwise[] = {
    MEMBER(SCALAR, elementwise.number[0]), MEMBER(SCALAR, elementwise.number[1]),
    MEMBER(U32, elementwise.inputs), MEMBER(U32, elementwise.dtype), LAST};
static const member value[] = {MEMBER(SCALAR, fill.value), LAST};
static const member arange[] = {MEMBER(SCALAR, fill.arange.start), MEMBER(SCALAR, fill.arange.step),
                                LAST};
static const member linspace[] = {MEMBER(REAL, fill.linspace.first),
                                  MEMBER(REAL, fill.linspace.last), LAST};
static const member uniform[] = {MEMBER(REAL, random.uniform.low),
                                 MEMBER(REAL, random.uniform.high), LAST};
static const member normal[] = {MEMBER(REAL, random.normal.mean),
                                MEMBER(REAL, random.normal.deviation), LAST};
static const member bernoulli[] = {MEMBER(REAL, random.bernoulli.probability), LAST};
static const member randint[] = {MEMBER(I64, random.randint.low), MEMBER(I64, random.randint.high),
                                 LAST};
static const member reduce[] = {MEMBER(REAL, reduce.correction), MEMBER(I32, reduce.dims), LAST};
static const member along[] = {MEMBER(I32, along.dim), LAST};
static const member pick[] = {MEMBER(SCALAR, index.number), MEMBER(I32, index.dim), LAST};
static const member sort[] = {MEMBER(I32, sort.dim), MEMBER(FLAG, sort.descending), LAST};
static const member move[] = {MEMBER(U32, move.flipped), MEMBER(I32, move.dim),
                              MEMBER(I64, move.shift), MEMBER(I64, move.diagonal), LAST};
static const member matmul[] = {MEMBER(OPAQUE, matmul.tf32), LAST};
static const member conv[] = {MEMBER(OPAQUE, conv.window), MEMBER(OPAQUE, conv.tf32), LAST};
static const member pool[] = {MEMBER(FLAG, pool.include_padding), MEMBER(I64, pool.divisor),
                              MEMBER(OPAQUE, pool.window), LAST};
static const member loss[] = {MEMBER(I64, loss.ignored), MEMBER(I32, loss.reduction),
                              MEMBER(FLAG, loss.weighted), LAST};
static const member bytes[] = {MEMBER(FLAG, memset.byte), LAST};
static const member abstract[] = {MEMBER(U64, abstract.duration_ns),
                                  MEMBER(OPAQUE, abstract.blocks), MEMBER(OPAQUE, abstract.mix),
                                  LAST};

static const member *members_of_fill(mr_op_id row) {
    if (row == MR_OP_arange) return arange;
    return row == MR_OP_linspace ? linspace : value;
}

static const member *members_of_random(mr_op_id row) {
    switch (row) {
    case MR_OP_uniform: return uniform;
    case MR_OP_normal: return normal;
    case MR_OP_bernoulli: return bernoulli;
    case MR_OP_randint: return randint;
    default: return none; /* randperm */
    }
}

static const member *members_of(const mr_op *row) {
    switch (row->family->id) {
    case MR_FAMILY_UNARY:
    case MR_FAMILY_BINARY:
    case MR_FAMILY_COMPARE:
    case MR_FAMILY_TERNARY:
    case MR_FAMILY_COPY: return elementwise;
    case MR_FAMILY_FILL: return members_of_fill(row->id);
    case MR_FAMILY_RANDOM: return members_of_random(row->id);
    case MR_FAMILY_REDUCE: return reduce;
    case MR_FAMILY_SOFTMAX:
    case MR_FAMILY_SCAN: return along;
    case MR_FAMILY_MATMUL: return matmul;
    case MR_FAMILY_BYTES: return bytes;
    case MR_FAMILY_ABSTRACT: return abstract;
    case MR_FAMILY_CONV: return conv;
    case MR_FAMILY_POOL: return pool;
    case MR_FAMILY_LOSS: return loss;
    case MR_FAMILY_INDEX: return pick;
    case MR_FAMILY_SORT: return sort;
    case MR_FAMILY_MOVE: return move;
    case MR_FAMILY_OPTIMISE:
    case MR_FAMILY_COMPACT:
    case MR_FAMILY_KERNEL:
    case MR_FAMILY_COLLECTIVE:
    case MR_FAMILY_COUNT: break;
    }
    return none;
}

/* The padding of a scalar does not count. */
static bool same_scalar(const mr_scalar *x, const mr_scalar *y) {
    return x->is_integer == y->is_integer && x->is_bool == y->is_bool && x->i == y->i &&
           memcmp(&x->f, &y->f, sizeof x->f) == 0;
}

/* As a number for a message. */
static double number_at(const mr_params *params, const member *m) {
    const unsigned char *at = params->bytes + m->offset;
    union {
        mr_scalar scalar;
        double real;
        int64_t i64;
        int32_t i32;
        uint64_t u64;
        uint32_t u32;
        uint8_t flag;
    } v;
    memcpy(&v, at, m->size);
    switch (m->kind) {
    case SCALAR: return v.scalar.f;
    case REAL: return v.real;
    case I64: return (double)v.i64;
    case I32: return v.i32;
    case U64: return (double)v.u64;
    case U32: return v.u32;
    case FLAG: return v.flag;
    case OPAQUE:
    case END: break;
    }
    return 0;
}

static bool same_member(const mr_params *x, const mr_params *y, const member *m) {
    const unsigned char *a = x->bytes + m->offset, *b = y->bytes + m->offset;
    if (m->kind != SCALAR) return memcmp(a, b, m->size) == 0;
    mr_scalar one, other;
    memcpy(&one, a, sizeof one);
    memcpy(&other, b, sizeof other);
    return same_scalar(&one, &other);
}

bool mr_params_differ(const mr_op *row, const mr_params *was, const mr_params *is,
                      mr_params_difference *out) {
    *out = (mr_params_difference){.is_number = false};
    for (const member *m = members_of(row); m->kind != END; m++) {
        if (same_member(was, is, m)) continue;
        if (m->kind != OPAQUE)
            *out = (mr_params_difference){true, number_at(was, m), number_at(is, m)};
        return true;
    }
    return false;
}

bool mr_params_draw_differently(const mr_op *row, const mr_params *was, const mr_params *is) {
    return row->family->draws &&
           (was->random.seed != is->random.seed || was->random.offset != is->random.offset);
}
