/* The arguments of an operation by value: a member for each family. They are copied at the call (R26), and a command
 * carries them as MR_PARAMS_BYTES plain bytes (model/command.h), which programs and graphs copy and store. Only the
 * family of the command's row says which member holds. A family that is not named here takes nothing, or has a block
 * of arguments of its own (mr_command_set_arguments). */
#ifndef MR_OPS_PARAMS_H
#define MR_OPS_PARAMS_H

#include <string.h>

#include "model/command.h"

/* Where the inputs of a UNARY, BINARY, COMPARE, TERNARY or COPY command are. Operand 0 is the output; an input is the
 * next operand, the next number, or (in place) operand 0 itself, which then has MR_READ too. Shapes broadcast to the
 * output's. */
enum { MR_INPUT_OPERAND, MR_INPUT_NUMBER, MR_INPUT_OUTPUT };
enum { MR_INPUT_BITS = 2, MR_INPUT_MASK = 3 }; /* of mr_elementwise_params.inputs: an input */

typedef struct {
    mr_scalar number[2]; /* the inputs that are numbers */
    uint32_t inputs;     /* MR_INPUT_* of each input, the first in the lowest bits */
    uint32_t dtype;      /* the mr_dtype in which it is computed */
} mr_elementwise_params;

/* The generator of the row makes them of the script's numbers (mr_generator). */
typedef union {
    mr_scalar value; /* fill, zero */
    struct {
        mr_scalar start, step;
    } arange;
    struct {
        double first, last;
    } linspace;
} mr_fill_params;

typedef struct {
    uint64_t seed, offset; /* Philox */
    union {
        struct {
            double low, high; /* up to, but not including, `high`: numbers of the output's type */
        } uniform;
        struct {
            double mean, deviation;
        } normal;
        struct {
            double probability;
            int64_t ones; /* how many of 2^32 words give a 1 */
        } bernoulli;
        struct {
            int64_t low, high; /* up to, but not including, `high` */
        } randint;
    };
} mr_random_params;

typedef struct {
    double correction; /* var, std; 1: of a sample */
    int32_t dims;      /* so many of operand 1's last dims are reduced */
} mr_reduce_params;

/* SOFTMAX, SCAN: of operand 0, and of operand 1, which is missing in place. */
typedef struct {
    int32_t dim; /* from 0 */
} mr_along_params;

typedef struct {
    mr_scalar number; /* the number that scatter_ and similar functions write, if not a tensor */
    int32_t dim;      /* from 0 */
} mr_index_params;

typedef struct {
    int32_t dim;     /* from 0 */
    bool descending; /* the greatest first */
} mr_sort_params;

typedef struct {
    uint32_t flipped; /* flip: a bit for each dim */
    int32_t dim;      /* roll: from 0 */
    int64_t shift;    /* roll */
    int64_t diagonal; /* tril, triu */
} mr_move_params;

/* Sums of products of f32: whether they may be computed in TF32, as the script had said at the call. */
typedef struct {
    bool tf32;
} mr_matmul_params;

/* How a window moves over the last two dims of a tensor, rows first. */
typedef struct {
    int32_t size[2], stride[2], padding[2], dilation[2];
    int32_t groups; /* groups of channels, which are independent */
} mr_window;

typedef struct {
    mr_window window;
    bool tf32; /* as in a product */
} mr_conv_params;

typedef struct {
    mr_window window;
    bool include_padding; /* avg_pool2d: whether the padding counts */
    int64_t divisor;      /* avg_pool2d; 0: the number of elements */
} mr_pool_params;

enum { MR_LOSS_NONE, MR_LOSS_MEAN, MR_LOSS_SUM }; /* how the losses of all targets become one */

typedef struct {
    int64_t ignored;   /* the target that does not count; others count from 1 */
    int32_t reduction; /* MR_LOSS_* */
    bool weighted;     /* operand 3 is the weight of each class */
} mr_loss_params;

typedef struct {
    uint8_t byte;
} mr_bytes_params;

typedef struct {
    uint64_t duration_ns; /* on the device, whatever the cost model says; 0: that decides */
    uint64_t mix;         /* mr.op: hash of the operation's name, for the values that it writes */
    uint32_t blocks;      /* with duration_ns: thread blocks; each occupies a whole SM */
} mr_abstract_params;

typedef union {
    unsigned char bytes[MR_PARAMS_BYTES]; /* first, so that `{0}` makes all of them zero */
    mr_elementwise_params elementwise;    /* UNARY, BINARY, COMPARE, TERNARY, COPY */
    mr_fill_params fill;
    mr_random_params random;
    mr_reduce_params reduce;
    mr_along_params along; /* SOFTMAX, SCAN */
    mr_index_params index;
    mr_sort_params sort;
    mr_move_params move;
    mr_matmul_params matmul;
    mr_conv_params conv;
    mr_pool_params pool;
    mr_loss_params loss;
    mr_bytes_params memset; /* BYTES */
    mr_abstract_params abstract;
} mr_params;

_Static_assert(sizeof(mr_params) == MR_PARAMS_BYTES, "the space that the model has for them");

/* The arguments of an OP, or of a HOST_ACCESS with a row. By value: the compiler loads only the members that the caller
 * reads. */
static inline mr_params mr_params_of(const mr_command *command) {
    mr_params params;
    memcpy(&params, command->u.op.params, sizeof params);
    return params;
}

/* Before the command is submitted. */
static inline void mr_params_set(mr_command *command, const mr_params *params) {
    memcpy(command->u.op.params, params, sizeof *params);
}

/* Sets the numbers that a command of a family that draws (RANDOM) takes from the generator. */
static inline void mr_params_set_draw(mr_command *command, uint64_t seed, uint64_t offset) {
    mr_params params = mr_params_of(command);
    params.random.seed = seed;
    params.random.offset = offset;
    mr_params_set(command, &params);
}

typedef struct {
    bool is_number; /* false: only that they differ can be said */
    double was, is;
} mr_params_difference;

/* Whether two commands of one row have other arguments; which random numbers they take does not count. Bit by bit: a
 * NaN equals itself, and 0 is not -0. Bytes that no member of the family holds do not count either. */
bool mr_params_differ(const mr_op *row, const mr_params *was, const mr_params *is,
                      mr_params_difference *out_difference);
/* Whether they take other random numbers. */
bool mr_params_draw_differently(const mr_op *row, const mr_params *was, const mr_params *is);

#endif
