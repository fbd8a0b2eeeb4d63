/* Functions of a warp: shuffles, votes, matches, reductions, __syncwarp. */
#ifndef MILLRACE_WARP_H
#define MILLRACE_WARP_H
#pragma clang system_header

MR_DEVICE void __syncwarp(unsigned int mask = 0xffffffffu) {
    MR_BETWEEN_MEMORY(__nvvm_bar_warp_sync(mask));
}
MR_DEVICE unsigned int __activemask() {
    unsigned int mask;
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    return mask;
}

MR_DEVICE int __all_sync(unsigned int mask, int predicate) {
    return __nvvm_vote_all_sync(mask, predicate != 0);
}
MR_DEVICE int __any_sync(unsigned int mask, int predicate) {
    return __nvvm_vote_any_sync(mask, predicate != 0);
}
MR_DEVICE int __uni_sync(unsigned int mask, int predicate) {
    return __nvvm_vote_uni_sync(mask, predicate != 0);
}
MR_DEVICE unsigned int __ballot_sync(unsigned int mask, int predicate) {
    return __nvvm_vote_ballot_sync(mask, predicate != 0);
}

/* The last operand of shfl: segments of `width` lanes, and the last lane of a segment that may be read. */
#define MR_SHUFFLE(name, mode, argument, last)                                                     \
    MR_DEVICE int name(unsigned int mask, int value, argument other, int width = warpSize) {       \
        return __nvvm_shfl_sync_##mode##_i32(mask, value, (int)other,                              \
                                             ((warpSize - width) << 8) | last);                    \
    }                                                                                              \
    MR_DEVICE unsigned int name(unsigned int mask, unsigned int value, argument other,             \
                                int width = warpSize) {                                            \
        return (unsigned int)name(mask, (int)value, other, width);                                 \
    }                                                                                              \
    MR_DEVICE float name(unsigned int mask, float value, argument other, int width = warpSize) {   \
        return __nvvm_bitcast_i2f(name(mask, __nvvm_bitcast_f2i(value), other, width));            \
    }                                                                                              \
    MR_DEVICE unsigned long long name(unsigned int mask, unsigned long long value, argument other, \
                                      int width = warpSize) {                                      \
        unsigned int low = name(mask, (unsigned int)value, other, width);                          \
        unsigned int high = name(mask, (unsigned int)(value >> 32), other, width);                 \
        return (unsigned long long)high << 32 | low;                                               \
    }                                                                                              \
    MR_DEVICE long long name(unsigned int mask, long long value, argument other,                   \
                             int width = warpSize) {                                               \
        return (long long)name(mask, (unsigned long long)value, other, width);                     \
    }                                                                                              \
    MR_DEVICE unsigned long name(unsigned int mask, unsigned long value, argument other,           \
                                 int width = warpSize) {                                           \
        return name(mask, (unsigned long long)value, other, width);                                \
    }                                                                                              \
    MR_DEVICE long name(unsigned int mask, long value, argument other, int width = warpSize) {     \
        return (long)name(mask, (unsigned long long)value, other, width);                          \
    }                                                                                              \
    MR_DEVICE double name(unsigned int mask, double value, argument other, int width = warpSize) { \
        return __nvvm_bitcast_ll2d(name(mask, __nvvm_bitcast_d2ll(value), other, width));          \
    }
MR_SHUFFLE(__shfl_sync, idx, int, 0x1f)
MR_SHUFFLE(__shfl_up_sync, up, unsigned int, 0)
MR_SHUFFLE(__shfl_down_sync, down, unsigned int, 0x1f)
MR_SHUFFLE(__shfl_xor_sync, bfly, int, 0x1f)
#undef MR_SHUFFLE

#define MR_MATCH(type, argument, bits)                                                             \
    MR_DEVICE unsigned int __match_any_sync(unsigned int mask, type value) {                       \
        return __nvvm_match_any_sync_i##bits(mask, (argument)value);                               \
    }                                                                                              \
    MR_DEVICE unsigned int __match_all_sync(unsigned int mask, type value, int *is_equal) {        \
        return __nvvm_match_all_sync_i##bits##p(mask, (argument)value, is_equal);                  \
    }
MR_MATCH(int, int, 32)
MR_MATCH(unsigned int, int, 32)
MR_MATCH(long, long long, 64)
MR_MATCH(unsigned long, long long, 64)
MR_MATCH(long long, long long, 64)
MR_MATCH(unsigned long long, long long, 64)
#undef MR_MATCH
MR_DEVICE unsigned int __match_any_sync(unsigned int mask, float value) {
    return __match_any_sync(mask, __nvvm_bitcast_f2i(value));
}
MR_DEVICE unsigned int __match_any_sync(unsigned int mask, double value) {
    return __match_any_sync(mask, __nvvm_bitcast_d2ll(value));
}

#if __CUDA_ARCH__ >= 800
#define MR_REDUCE(name, type, operation)                                                           \
    MR_DEVICE type name(unsigned int mask, type value) {                                           \
        type result;                                                                               \
        asm volatile("redux.sync." operation " %0, %1, %2;"                                        \
                     : "=r"(result)                                                                \
                     : "r"(value), "r"(mask));                                                     \
        return result;                                                                             \
    }
MR_REDUCE(__reduce_add_sync, int, "add.s32")
MR_REDUCE(__reduce_add_sync, unsigned int, "add.u32")
MR_REDUCE(__reduce_min_sync, int, "min.s32")
MR_REDUCE(__reduce_min_sync, unsigned int, "min.u32")
MR_REDUCE(__reduce_max_sync, int, "max.s32")
MR_REDUCE(__reduce_max_sync, unsigned int, "max.u32")
MR_REDUCE(__reduce_and_sync, unsigned int, "and.b32")
MR_REDUCE(__reduce_or_sync, unsigned int, "or.b32")
MR_REDUCE(__reduce_xor_sync, unsigned int, "xor.b32")
#undef MR_REDUCE
#endif

#endif
