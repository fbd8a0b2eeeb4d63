/* Rows of the binary operations but for comparisons: see table.h. */
#ifndef MR_OPS_TABLE_BINARY_H
#define MR_OPS_TABLE_BINARY_H

// clang-format off
#define MR_BINARY_TABLE(X) \
    X(add,         ALL,     SAME,  1, mr_add(a, b)) \
    X(sub,         NUMBERS, SAME,  1, mr_sub(a, b)) \
    X(mul,         ALL,     SAME,  1, mr_mul(a, b)) \
    X(div,         FLOATS,  FLOAT, 4, a / b) \
    X(maximum,     ALL,     SAME,  1, mr_maximum(a, b)) \
    X(minimum,     ALL,     SAME,  1, mr_minimum(a, b)) \
    X(relu_backward,    FLOATS, FLOAT, 1, b <= 0 ? 0 : a) \
    X(tanh_backward,    FLOATS, FLOAT, 4, a * (1 - mr_abs(b)) * (1 + mr_abs(b))) \
    X(sigmoid_backward, FLOATS, FLOAT, 3, a * (b < (T)0.5 ? b : 1 - b) * (b < (T)0.5 ? 1 - b : b)) \
    X(atan2,       FLOATS,  FLOAT, 16, mr_atan2(a, b)) \
    X(bitwise_and, WHOLE,   SAME,  1, a & b) \
    X(bitwise_or,  WHOLE,   SAME,  1, a | b) \
    X(bitwise_xor, WHOLE,   SAME,  1, a ^ b) \
    X(bitwise_left_shift, INTEGERS, SAME, 1, mr_shift_left(a, b)) \
    X(bitwise_right_shift, INTEGERS, SAME, 1, mr_shift_right(a, b))

/* As binary. The second input is a parameter: a number or a tensor, which may be left out. Its name and its default
 * come last. */
#define MR_ACTIVATION_TABLE(X) \
    X(leaky_relu,  FLOATS,  FLOAT, 2, a > 0 ? a : a * b,      "slope", 0.01) \
    X(elu,         FLOATS,  FLOAT, 10, a > 0 ? a : b * mr_expm1(a), "alpha", 1)

/* Like binary; floats have loops of their own in binary.c. */
#define MR_POWER_TABLE(X) \
    X(pow,         NUMBERS, SAME,  16, mr_pow(a, b))

/* Like binary. For floats there is a second expression that the compiler can vectorize; it gives the same value where
 * mr_quotient_is_near(a, b). */
#define MR_DIVISION_TABLE(X) \
    X(remainder,   NUMBERS, SAME,  8, mr_remainder(a, b), mr_remainder_near(a, b)) \
    X(fmod,        NUMBERS, SAME,  8, mr_fmod(a, b), mr_fmod_near(a, b)) \
    X(floor_divide, NUMBERS, SAME, 8, mr_floor_divide(a, b), mr_floor_divide_near(a, b))
// clang-format on

#endif
