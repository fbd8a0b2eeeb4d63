/* Address space of a pool: see arena.h.
 *
 * A range can only grow in place where nothing else is mapped after it. The kernel gives new mappings from the top
 * of the address space down, and the heap is near the program. So the places that arenas grow in are in between, each
 * with space to itself. The machine that has mapped the first step of a place owns the place: the kernel
 * refuses a second one, in whichever thread. Where there are no such places (fewer address bits,
 * ThreadSanitizer), all is mapped at once. */
#include "virtual/arena.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE                                                                        \
    0x100000 /* a kernel that does not know it takes the address as a hint */
#endif

#define STEP        ((uint64_t)2 << 20)
#define SPARE       ((uint64_t)64 << 20) /* that is kept mapped beyond what is used */
#define PAGE        ((uint64_t)4096)
#define FEW         ((uint64_t)32 << 10)
#define FIRST_PLACE ((uint64_t)0x200000000000)
#define PLACE_SIZE  ((uint64_t)1 << 38)
#define PLACE_COUNT 192
#ifdef __SANITIZE_THREAD__
enum {
    HAS_PLACES = 0
}; /* its memory is there, and it ends a program that asks for such an address */
#else
enum { HAS_PLACES = 1 };
#endif

static uint64_t round_up(uint64_t size, uint64_t to) {
    return (size + to - 1) / to * to;
}

static void *map(char *at, uint64_t size) {
    return mmap(at, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0), -1,
                0);
}

/* False: something is there, or the system gives no more; errno says which. */
static bool map_at(char *at, uint64_t size) {
    void *got = map(at, size);
    if (got == MAP_FAILED) return false;
    if (got == at) return true;
    munmap(got, size);
    errno = ENOTSUP;
    return false;
}

static bool find_place(arena *a) {
    if (!HAS_PLACES || a->limit > PLACE_SIZE) return false;
    for (uint64_t i = 0; i < PLACE_COUNT; i++) {
        char *at = (char *)(uintptr_t)(FIRST_PLACE + i * PLACE_SIZE);
        if (map_at(at, STEP)) {
            a->base = at;
            a->mapped = STEP;
            return true;
        }
        if (errno != EEXIST) return false;
    }
    return false;
}

static bool map_whole(arena *a) {
    uint64_t size = round_up(a->limit, STEP);
    void *base = map(NULL, size);
    if (base == MAP_FAILED) return false;
    a->base = base;
    a->mapped = size;
    a->is_whole = true;
    return true;
}

bool mr_arena_extend(arena *a, uint64_t end) {
    if (!a->base && !find_place(a) && !map_whole(a)) return false;
    if (end <= a->mapped) return true;
    end = round_up(end, STEP);
    if (!map_at(a->base + a->mapped, end - a->mapped)) return false;
    a->mapped = end;
    return true;
}

void mr_arena_wish_huge(void *at, uint64_t size) {
#ifdef MADV_HUGEPAGE
    madvise(at, size, MADV_HUGEPAGE);
#else
    (void)at, (void)size;
#endif
}

/* A huge page of a small tensor would be cleared for nothing. */
void mr_arena_touch(arena *a, uint64_t from, uint64_t end) {
    if (a->touched < end) a->touched = end;
    uint64_t first = round_up(from, STEP), last = end / STEP * STEP;
    if (first < last) mr_arena_wish_huge(a->base + first, last - first);
}

static void clear(arena *a, uint64_t from, uint64_t to) {
    uint64_t first = round_up(from, PAGE), end = to / PAGE * PAGE;
    if (to - from <= FEW) {
        memset(a->base + from, 0, to - from);
        return;
    }
    madvise(a->base + first, end - first, MADV_DONTNEED);
    memset(a->base + from, 0, first - from);
    memset(a->base + end, 0, to - end);
}

/* Whole pages go back to the system, unless there are so few that clearing takes less time than to get them again.
 * The rest is cleared, so that the contents of new memory do not depend on its earlier use in this process. */
void mr_arena_clear(arena *a, uint64_t from, uint64_t to, bool for_good) {
    uint64_t touched = a->touched;
    if (from >= touched) return;
    clear(a, from, to < touched ? to : touched);
    if (for_good && to >= touched) a->touched = from;
}

void mr_arena_shrink(arena *a, uint64_t end) {
    end = end ? round_up(end, STEP) : STEP; /* the first step holds the place */
    if (a->is_whole || a->mapped < end + SPARE) return;
    if (munmap(a->base + end, a->mapped - end) == 0) a->mapped = end;
}

void mr_arena_close(arena *a) {
    if (a->base) munmap(a->base, a->mapped);
    *a = (arena){0};
}
