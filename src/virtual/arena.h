/* The address space of one pool. It is a range [0, mapped) at a base that stays where it is and grows in place. So the
 * process uses no more of it than the pool has used. A page takes no memory until its first
 * access, and is then zero.
 *
 * Address space grows as needed. A memory pool is one address range with a fixed base that grows in place
 * (`arena.h`). A tensor's position is an offset, the same on every run. The memory that a pool has ever used is a
 * prefix of its range. The address of a tensor that a script sees is 8 times that offset, plus a constant. So a gap of
 * addresses lies after each tensor, and takes no memory (`mr_pool_address`). After a free, addresses do not tell
 * whether two storages share memory; `storage->host` does. */
#ifndef MR_VIRTUAL_ARENA_H
#define MR_VIRTUAL_ARENA_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    char *base; /* NULL until it is first extended */
    uint64_t limit, mapped;
    uint64_t touched; /* memory from here on was never handed out, so it reads as zero */
    /* all of `limit` was mapped at once, because no growing range was available */
    bool is_whole;
} arena;

/* Makes [0, end) usable. False: the system gives no more address space, and nothing has changed. */
bool mr_arena_extend(arena *a, uint64_t end);
/* [from, end) may be written from now on. */
void mr_arena_touch(arena *a, uint64_t from, uint64_t end);
/* Asks the system for large pages, since the first access to each page takes time. It may refuse. */
void mr_arena_wish_huge(void *at, uint64_t size);
/* [from, to) is no longer used: it reads as zero again, and more than a few pages are returned to the system.
 * `for_good`: no checkpoint can restore its bytes. */
void mr_arena_clear(arena *a, uint64_t from, uint64_t to, bool for_good);
/* Memory from `end` on is no longer used: returns that address space if it is worth a call. */
void mr_arena_shrink(arena *a, uint64_t end);
void mr_arena_close(arena *a);

#endif
