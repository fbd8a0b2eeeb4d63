/* The names that CUDA C++ has without any #include, for clang: included in front of each kernel.
 *
 * The functions carry no lines (nodebug), so that the PTX names the user's lines only. */
#ifndef MILLRACE_PRELUDE_H
#define MILLRACE_PRELUDE_H
#pragma clang system_header

#define __global__               __attribute__((global))
#define __device__               __attribute__((device))
#define __host__                 __attribute__((host))
#define __shared__               __attribute__((shared))
#define __constant__             __attribute__((constant))
#define __launch_bounds__(...)   __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__          __inline__ __attribute__((always_inline))
#define __noinline__             __attribute__((noinline))
#define __inline_hint__          __inline__
#define __align__(bytes)         __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __align__(bytes)
#define __grid_constant__
#define __maxnreg__(count)
#define __CUDACC__     1
#define CUDART_VERSION 12000

#define MR_DEVICE static __inline__ __attribute__((device, always_inline, nodebug))
#define MR_FUNCTION                                                                                \
    static __inline__ __attribute__((device, nodebug)) /* too long to be inlined always */

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
#ifndef NULL
#define NULL __null
#endif

#include <millrace/types.h>
#include <millrace/index.h>
#include <millrace/memory.h>
#include <millrace/atomics.h>
#include <millrace/warp.h>
#include <millrace/integer.h>
#include <millrace/rounding.h>
#include <millrace/math.h>

#endif
