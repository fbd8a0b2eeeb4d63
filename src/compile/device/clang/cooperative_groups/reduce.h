/* Reductions over tiles and coalesced groups, for clang. Each thread gets the result. */
#ifndef MILLRACE_COOPERATIVE_GROUPS_REDUCE_H
#define MILLRACE_COOPERATIVE_GROUPS_REDUCE_H
#pragma clang system_header

#include <cooperative_groups.h>

namespace cooperative_groups {

/* name, value of x and y */
#define X(name, value)                                                                             \
    template <typename T = void> struct name {                                                     \
        __inline__ __attribute__((device, always_inline, nodebug)) T operator()(T x, T y) const {  \
            return value;                                                                          \
        }                                                                                          \
    };
X(plus, x + y)
X(less, y < x ? y : x)
X(greater, x < y ? y : x)
X(bit_and, x &y)
X(bit_or, x | y)
X(bit_xor, x ^ y)
#undef X

template <unsigned int Size, typename Parent, typename T, typename Operator>
MR_DEVICE T reduce(const thread_block_tile<Size, Parent> &group, T value, Operator &&combine) {
    for (unsigned int by = Size / 2; by > 0; by /= 2)
        value = combine(value, group.shfl_xor(value, by));
    return value;
}

template <typename T, typename Operator>
MR_DEVICE T reduce(const coalesced_group &group, T value, Operator &&combine) {
    T result = group.shfl(value, 0);
    for (unsigned int rank = 1; rank < group.size(); rank++)
        result = combine(result, group.shfl(value, (int)rank));
    return result;
}

} // namespace cooperative_groups

#endif
