/* Atomic functions: on a device (atomicAdd), in a block (atomicAdd_block), in the system (atomicAdd_system). */
#ifndef MILLRACE_ATOMICS_H
#define MILLRACE_ATOMICS_H
#pragma clang system_header

/* One function of one type in its three scopes. `argument` is the type that the builtin takes. */
#define MR_ATOMIC(name, type, argument, operation, suffix)                                         \
    MR_DEVICE type name(type *address, type value) {                                               \
        return (type)__nvvm_atom_##operation##_gen_##suffix((argument *)address, (argument)value); \
    }                                                                                              \
    MR_DEVICE type name##_block(type *address, type value) {                                       \
        return (type)__nvvm_atom_cta_##operation##_gen_##suffix((argument *)address,               \
                                                                (argument)value);                  \
    }                                                                                              \
    MR_DEVICE type name##_system(type *address, type value) {                                      \
        return (type)__nvvm_atom_sys_##operation##_gen_##suffix((argument *)address,               \
                                                                (argument)value);                  \
    }

MR_ATOMIC(atomicAdd, int, int, add, i)
MR_ATOMIC(atomicAdd, unsigned int, int, add, i)
MR_ATOMIC(atomicAdd, unsigned long long, long long, add, ll)
MR_ATOMIC(atomicAdd, float, float, add, f)
MR_ATOMIC(atomicAdd, double, double, add, d)
MR_ATOMIC(atomicExch, int, int, xchg, i)
MR_ATOMIC(atomicExch, unsigned int, int, xchg, i)
MR_ATOMIC(atomicExch, unsigned long long, long long, xchg, ll)
MR_ATOMIC(atomicMin, int, int, min, i)
MR_ATOMIC(atomicMin, unsigned int, unsigned int, min, ui)
MR_ATOMIC(atomicMin, long long, long long, min, ll)
MR_ATOMIC(atomicMin, unsigned long long, unsigned long long, min, ull)
MR_ATOMIC(atomicMax, int, int, max, i)
MR_ATOMIC(atomicMax, unsigned int, unsigned int, max, ui)
MR_ATOMIC(atomicMax, long long, long long, max, ll)
MR_ATOMIC(atomicMax, unsigned long long, unsigned long long, max, ull)
MR_ATOMIC(atomicAnd, int, int, and, i)
MR_ATOMIC(atomicAnd, unsigned int, int, and, i)
MR_ATOMIC(atomicAnd, unsigned long long, long long, and, ll)
MR_ATOMIC(atomicOr, int, int, or, i)
MR_ATOMIC(atomicOr, unsigned int, int, or, i)
MR_ATOMIC(atomicOr, unsigned long long, long long, or, ll)
MR_ATOMIC(atomicXor, int, int, xor, i)
MR_ATOMIC(atomicXor, unsigned int, int, xor, i)
MR_ATOMIC(atomicXor, unsigned long long, long long, xor, ll)
MR_ATOMIC(atomicInc, unsigned int, unsigned int, inc, ui)
MR_ATOMIC(atomicDec, unsigned int, unsigned int, dec, ui)
#undef MR_ATOMIC

#define MR_ATOMIC_SCOPES(X) X() X(_block) X(_system)
#define X(scope)                                                                                   \
    MR_DEVICE int atomicSub##scope(int *address, int value) {                                      \
        return atomicAdd##scope(address, -value);                                                  \
    }                                                                                              \
    MR_DEVICE unsigned int atomicSub##scope(unsigned int *address, unsigned int value) {           \
        return atomicAdd##scope(address, 0u - value);                                              \
    }                                                                                              \
    MR_DEVICE float atomicExch##scope(float *address, float value) {                               \
        return __nvvm_bitcast_i2f(atomicExch##scope((int *)address, __nvvm_bitcast_f2i(value)));   \
    }
MR_ATOMIC_SCOPES(X)
#undef X
#undef MR_ATOMIC_SCOPES

#define MR_ATOMIC_CAS(scope, infix)                                                                \
    MR_DEVICE int atomicCAS##scope(int *address, int expected, int value) {                        \
        return __nvvm_atom_##infix##cas_gen_i(address, expected, value);                           \
    }                                                                                              \
    MR_DEVICE unsigned int atomicCAS##scope(unsigned int *address, unsigned int expected,          \
                                            unsigned int value) {                                  \
        return (unsigned int)__nvvm_atom_##infix##cas_gen_i((int *)address, (int)expected,         \
                                                            (int)value);                           \
    }                                                                                              \
    MR_DEVICE unsigned long long atomicCAS##scope(                                                 \
        unsigned long long *address, unsigned long long expected, unsigned long long value) {      \
        return (unsigned long long)__nvvm_atom_##infix##cas_gen_ll(                                \
            (long long *)address, (long long)expected, (long long)value);                          \
    }
MR_ATOMIC_CAS(, )
MR_ATOMIC_CAS(_block, cta_)
MR_ATOMIC_CAS(_system, sys_)
#undef MR_ATOMIC_CAS

MR_DEVICE unsigned short atomicCAS(unsigned short *address, unsigned short expected,
                                   unsigned short value) {
    unsigned short old;
    asm volatile("atom.cas.b16 %0, [%1], %2, %3;"
                 : "=h"(old)
                 : "l"(address), "h"(expected), "h"(value)
                 : "memory");
    return old;
}

#endif
