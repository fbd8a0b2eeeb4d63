/* Barriers of a block, fences, loads with a cache hint, clocks, printf, assert and the C functions for memory. */
#ifndef MILLRACE_MEMORY_H
#define MILLRACE_MEMORY_H
#pragma clang system_header

/* clang 14 assumes that its own functions for barriers and fences do not change the module's
 * variables. After a barrier a thread then uses the value that it wrote to shared memory,
 * although another thread has changed it. An `asm` that may write all memory, on both sides,
 * forbids that. */
#define MR_BETWEEN_MEMORY(call)                                                                    \
    do {                                                                                           \
        asm volatile("" ::: "memory");                                                             \
        call;                                                                                      \
        asm volatile("" ::: "memory");                                                             \
    } while (0)

MR_DEVICE void millrace_syncthreads() {
    MR_BETWEEN_MEMORY(__syncthreads());
}
#define __syncthreads() millrace_syncthreads() /* which clang knows by itself */
MR_DEVICE int __syncthreads_count(int predicate) {
    MR_BETWEEN_MEMORY(predicate = __nvvm_bar0_popc(predicate));
    return predicate;
}
MR_DEVICE int __syncthreads_and(int predicate) {
    MR_BETWEEN_MEMORY(predicate = __nvvm_bar0_and(predicate));
    return predicate;
}
MR_DEVICE int __syncthreads_or(int predicate) {
    MR_BETWEEN_MEMORY(predicate = __nvvm_bar0_or(predicate));
    return predicate;
}

MR_DEVICE void __threadfence_block() {
    MR_BETWEEN_MEMORY(__nvvm_membar_cta());
}
MR_DEVICE void __threadfence() {
    MR_BETWEEN_MEMORY(__nvvm_membar_gl());
}
MR_DEVICE void __threadfence_system() {
    MR_BETWEEN_MEMORY(__nvvm_membar_sys());
}

MR_DEVICE long long clock64() {
    return __nvvm_read_ptx_sreg_clock64();
}
MR_DEVICE int clock() {
    return __nvvm_read_ptx_sreg_clock();
}
MR_DEVICE unsigned long long __globaltimer() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}
MR_DEVICE void __nanosleep(unsigned int time) {
    asm volatile("nanosleep.u32 %0;" ::"r"(time));
}
MR_DEVICE void __trap() {
    __builtin_trap();
}
MR_DEVICE void __brkpt() {
    asm volatile("brkpt;");
}

/* A hint changes where a value is cached and nothing else, so these are loads and stores. */
template <typename T> MR_DEVICE T __ldg(const T *address) {
    return *address;
}
template <typename T> MR_DEVICE T __ldca(const T *address) {
    return *address;
}
template <typename T> MR_DEVICE T __ldcg(const T *address) {
    return *(const volatile T *)address;
}
template <typename T> MR_DEVICE T __ldcs(const T *address) {
    return *address;
}
template <typename T> MR_DEVICE T __ldcv(const T *address) {
    return *(const volatile T *)address;
}
template <typename T> MR_DEVICE T __ldlu(const T *address) {
    return *address;
}
template <typename T> MR_DEVICE void __stwb(T *address, T value) {
    *address = value;
}
template <typename T> MR_DEVICE void __stcg(T *address, T value) {
    *address = value;
}
template <typename T> MR_DEVICE void __stcs(T *address, T value) {
    *address = value;
}
template <typename T> MR_DEVICE void __stwt(T *address, T value) {
    *address = value;
}

MR_DEVICE bool __isGlobal(const void *p) {
    return __nvvm_isspacep_global(p);
}
MR_DEVICE bool __isShared(const void *p) {
    return __nvvm_isspacep_shared(p);
}
MR_DEVICE bool __isConstant(const void *p) {
    return __nvvm_isspacep_const(p);
}
MR_DEVICE bool __isLocal(const void *p) {
    return __nvvm_isspacep_local(p);
}
MR_DEVICE size_t __cvta_generic_to_shared(const void *p) {
    return (size_t)(const __attribute__((address_space(3))) void *)p;
}
MR_DEVICE size_t __cvta_generic_to_global(const void *p) {
    return (size_t)(const __attribute__((address_space(1))) void *)p;
}

extern "C" {
__device__ int printf(const char *format, ...); /* clang makes a call of vprintf of it */
__device__ void *malloc(size_t size);
__device__ void free(void *address);
__device__ void *memcpy(void *to, const void *from, size_t size);
__device__ void *memmove(void *to, const void *from, size_t size);
__device__ void *memset(void *to, int byte, size_t size);
__device__ void __assertfail(const char *condition, const char *file, unsigned int line,
                             const char *function,
                             size_t char_size); /* not noreturn: PTX must not end after it */
}

#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition)                                                                          \
    ((condition) ? (void)0 : __assertfail(#condition, __FILE__, __LINE__, __PRETTY_FUNCTION__, 1))
#endif

__device__ __attribute__((always_inline, nodebug)) inline void *operator new(size_t size) {
    return malloc(size);
}
__device__ __attribute__((always_inline, nodebug)) inline void *operator new[](size_t size) {
    return malloc(size);
}
__device__ __attribute__((always_inline, nodebug)) inline void operator delete(void *p) noexcept {
    free(p);
}
__device__ __attribute__((always_inline, nodebug)) inline void operator delete[](void *p) noexcept {
    free(p);
}
__device__ __attribute__((always_inline, nodebug)) inline void operator delete(void *p,
                                                                               size_t) noexcept {
    free(p);
}
__device__ __attribute__((always_inline, nodebug)) inline void operator delete[](void *p,
                                                                                 size_t) noexcept {
    free(p);
}

#endif
