/* A fiber is entered for the first time by setcontext, and from then on by siglongjmp. swapcontext would make a system
 * call at each switch, for a signal mask that all fibers share. Sanitizers know swapcontext, but no jump to another
 * stack.
 *
 * Easiest to break: with _FORTIFY_SOURCE the C library reports a jump to a stack at a lower address as a mistake. */
#undef _FORTIFY_SOURCE
#include "base/fiber.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define MR_SANITIZED 1
#elif defined(__SANITIZE_THREAD__)
#define MR_SWAPS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MR_SANITIZED 1
#elif __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define MR_SWAPS 1
#endif
#endif
#ifdef MR_SANITIZED
#define MR_SWAPS 1
#include <sanitizer/common_interface_defs.h>
#endif

/* Pages take memory only when they are touched. Lua allows 200 nested C calls, and its parser as many levels. */
#define STACK_BYTES ((size_t)8 << 20)

struct mr_fiber {
    void (*run)(void *context);
    void *context;
    ucontext_t inside; /* where it begins */
#ifdef MR_SWAPS
    ucontext_t outside;
#else
    sigjmp_buf left, entered; /* where it was left, and where from it was entered */
    bool has_begun;
#endif
    char *memory; /* an inaccessible page, then the stack */
    size_t page;
    bool has_ended;
    void *fake; /* of the sanitizer: the stack's frames while it is left */
    const void *outer_bottom;
    size_t outer_size;
};

/* Tells the sanitizer which stack the next instruction runs on, and that the last one was left. */
static void before_switch(void **out_fake, const void *bottom, size_t size) {
#ifdef MR_SANITIZED
    __sanitizer_start_switch_fiber(out_fake, bottom, size);
#else
    (void)out_fake, (void)bottom, (void)size;
#endif
}

static void after_switch(void *fake, const void **out_bottom, size_t *out_size) {
#ifdef MR_SANITIZED
    __sanitizer_finish_switch_fiber(fake, out_bottom, out_size);
#else
    (void)fake, (void)out_bottom, (void)out_size;
#endif
}

#ifdef MR_SWAPS

static void go_in(mr_fiber *fiber) {
    swapcontext(&fiber->outside, &fiber->inside);
}

static void go_out(mr_fiber *fiber) {
    swapcontext(&fiber->inside, &fiber->outside);
}

static void end(mr_fiber *fiber) {
    setcontext(&fiber->outside);
}

#else

static void go_in(mr_fiber *fiber) {
    if (sigsetjmp(fiber->entered, 0)) return;
    if (fiber->has_begun) siglongjmp(fiber->left, 1);
    fiber->has_begun = true;
    setcontext(&fiber->inside);
}

static void go_out(mr_fiber *fiber) {
    if (!sigsetjmp(fiber->left, 0)) siglongjmp(fiber->entered, 1);
}

static void end(mr_fiber *fiber) {
    siglongjmp(fiber->entered, 1);
}

#endif

/* makecontext passes ints. */
_Noreturn static void start(unsigned high, unsigned low) {
    mr_fiber *fiber = (mr_fiber *)((uintptr_t)high << 32 | (uintptr_t)low);
    after_switch(NULL, &fiber->outer_bottom, &fiber->outer_size);
    fiber->run(fiber->context);
    fiber->has_ended = true;
    before_switch(NULL, fiber->outer_bottom, fiber->outer_size);
    end(fiber);
    abort(); /* only a broken context is returned from */
}

/* A function of its own, because the compiler assumes that a caller of getcontext may be returned to twice. */
static bool prepare(mr_fiber *fiber) {
    if (getcontext(&fiber->inside)) return false;
    fiber->inside.uc_stack.ss_sp = fiber->memory + fiber->page;
    fiber->inside.uc_stack.ss_size = STACK_BYTES;
    fiber->inside.uc_link = NULL;
    uintptr_t self = (uintptr_t)fiber;
    makecontext(&fiber->inside, (void (*)(void))start, 2, (unsigned)(self >> 32), (unsigned)self);
    return true;
}

mr_fiber *mr_fiber_new(void (*run)(void *context), void *context) {
    mr_fiber *fiber = calloc(1, sizeof *fiber);
    if (!fiber) return NULL;
    fiber->run = run;
    fiber->context = context;
    fiber->page = (size_t)sysconf(_SC_PAGESIZE);
    fiber->memory = mmap(NULL, STACK_BYTES + fiber->page, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fiber->memory == MAP_FAILED) {
        free(fiber);
        return NULL;
    }
    if (!mprotect(fiber->memory, fiber->page, PROT_NONE) && prepare(fiber)) return fiber;
    mr_fiber_free(fiber);
    return NULL;
}

void mr_fiber_free(mr_fiber *fiber) {
    if (!fiber) return;
    munmap(fiber->memory, STACK_BYTES + fiber->page);
    free(fiber);
}

bool mr_fiber_enter(mr_fiber *fiber) {
    void *fake = NULL;
    before_switch(&fake, fiber->memory + fiber->page, STACK_BYTES);
    go_in(fiber);
    after_switch(fake, NULL, NULL);
    return fiber->has_ended;
}

void mr_fiber_leave(mr_fiber *fiber) {
    before_switch(&fiber->fake, fiber->outer_bottom, fiber->outer_size);
    go_out(fiber);
    after_switch(fiber->fake, &fiber->outer_bottom, &fiber->outer_size);
}
