/* Integer functions: bits, high products, min and max. */
#ifndef MILLRACE_INTEGER_H
#define MILLRACE_INTEGER_H
#pragma clang system_header

MR_DEVICE int __popc(unsigned int x) {
    return __builtin_popcount(x);
}
MR_DEVICE int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
MR_DEVICE int __clz(int x) {
    return x == 0 ? 32 : __builtin_clz((unsigned int)x);
}
MR_DEVICE int __clzll(long long x) {
    return x == 0 ? 64 : __builtin_clzll((unsigned long long)x);
}
MR_DEVICE int __ffs(int x) {
    return __builtin_ffs(x);
}
MR_DEVICE int __ffsll(long long x) {
    return __builtin_ffsll(x);
}
MR_DEVICE unsigned int __brev(unsigned int x) {
    return __builtin_bitreverse32(x);
}
MR_DEVICE unsigned long long __brevll(unsigned long long x) {
    return __builtin_bitreverse64(x);
}
MR_DEVICE unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
    return __nvvm_prmt(x, y, selector);
}
/* The n-th set bit from `base` upwards (n > 0) or downwards; ~0 where there is none. */
MR_DEVICE unsigned int __fns(unsigned int mask, unsigned int base, int n) {
    unsigned int position;
    asm("fns.b32 %0, %1, %2, %3;" : "=r"(position) : "r"(mask), "r"(base), "r"(n));
    return position;
}

MR_DEVICE int __mulhi(int x, int y) {
    return (int)((long long)x * y >> 32);
}
MR_DEVICE unsigned int __umulhi(unsigned int x, unsigned int y) {
    return (unsigned int)((unsigned long long)x * y >> 32);
}
MR_DEVICE long long __mul64hi(long long x, long long y) {
    return (long long)((__int128)x * y >> 64);
}
MR_DEVICE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
MR_DEVICE int __mul24(int x, int y) {
    return (x << 8 >> 8) * (y << 8 >> 8);
}
MR_DEVICE unsigned int __umul24(unsigned int x, unsigned int y) {
    return (x & 0xffffffu) * (y & 0xffffffu);
}
MR_DEVICE int __hadd(int x, int y) {
    return (int)(((long long)x + y) >> 1);
}
MR_DEVICE int __rhadd(int x, int y) {
    return (int)(((long long)x + y + 1) >> 1);
}
MR_DEVICE unsigned int __uhadd(unsigned int x, unsigned int y) {
    return (unsigned int)(((unsigned long long)x + y) >> 1);
}
MR_DEVICE unsigned int __urhadd(unsigned int x, unsigned int y) {
    return (unsigned int)(((unsigned long long)x + y + 1) >> 1);
}
MR_DEVICE unsigned int __sad(int x, int y, unsigned int z) {
    return z + (x > y ? (unsigned int)x - (unsigned int)y : (unsigned int)y - (unsigned int)x);
}
MR_DEVICE unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) {
    return z + (x > y ? x - y : y - x);
}

/* The upper (lower) word of high:low, shifted left (right); `c` modulo 32, or at most 32. */
MR_DEVICE unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
    unsigned long long both = (unsigned long long)high << 32 | low;
    return (unsigned int)(both << (shift & 31) >> 32);
}
MR_DEVICE unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
    unsigned long long both = (unsigned long long)high << 32 | low;
    return (unsigned int)(both >> (shift & 31));
}
MR_DEVICE unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int shift) {
    unsigned long long both = (unsigned long long)high << 32 | low;
    return (unsigned int)(both << (shift < 32 ? shift : 32) >> 32);
}
MR_DEVICE unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int shift) {
    unsigned long long both = (unsigned long long)high << 32 | low;
    return (unsigned int)(both >> (shift < 32 ? shift : 32));
}

#define MR_DOT(name, type, argument, instruction)                                                  \
    MR_DEVICE type name(argument x, argument y, type z) {                                          \
        type result;                                                                               \
        asm(instruction " %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(z));               \
        return result;                                                                             \
    }
MR_DOT(__dp4a, int, int, "dp4a.s32.s32")
MR_DOT(__dp4a, unsigned int, unsigned int, "dp4a.u32.u32")
MR_DOT(__dp2a_lo, int, int, "dp2a.lo.s32.s32")
MR_DOT(__dp2a_hi, int, int, "dp2a.hi.s32.s32")
#undef MR_DOT

/* As in C++ the operands are first converted to a common type. */
#define MR_MIN_MAX(result, a, b)                                                                   \
    MR_DEVICE result min(a x, b y) {                                                               \
        return (result)x < (result)y ? (result)x : (result)y;                                      \
    }                                                                                              \
    MR_DEVICE result max(a x, b y) {                                                               \
        return (result)x > (result)y ? (result)x : (result)y;                                      \
    }
MR_MIN_MAX(int, int, int)
MR_MIN_MAX(unsigned int, unsigned int, unsigned int)
MR_MIN_MAX(unsigned int, int, unsigned int)
MR_MIN_MAX(unsigned int, unsigned int, int)
MR_MIN_MAX(long, long, long)
MR_MIN_MAX(unsigned long, unsigned long, unsigned long)
MR_MIN_MAX(unsigned long, long, unsigned long)
MR_MIN_MAX(unsigned long, unsigned long, long)
MR_MIN_MAX(long long, long long, long long)
MR_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
MR_MIN_MAX(unsigned long long, long long, unsigned long long)
MR_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef MR_MIN_MAX
MR_DEVICE unsigned int umin(unsigned int x, unsigned int y) {
    return min(x, y);
}
MR_DEVICE unsigned int umax(unsigned int x, unsigned int y) {
    return max(x, y);
}
MR_DEVICE long long llmin(long long x, long long y) {
    return min(x, y);
}
MR_DEVICE long long llmax(long long x, long long y) {
    return max(x, y);
}
MR_DEVICE unsigned long long ullmin(unsigned long long x, unsigned long long y) {
    return min(x, y);
}
MR_DEVICE unsigned long long ullmax(unsigned long long x, unsigned long long y) {
    return max(x, y);
}

MR_DEVICE int abs(int x) {
    return x < 0 ? -x : x;
}
MR_DEVICE long abs(long x) {
    return x < 0 ? -x : x;
}
MR_DEVICE long long abs(long long x) {
    return x < 0 ? -x : x;
}
MR_DEVICE long labs(long x) {
    return abs(x);
}
MR_DEVICE long long llabs(long long x) {
    return abs(x);
}

#endif
