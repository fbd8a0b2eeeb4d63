/* Shadow memory of the watch: a record of the accesses to each cell of memory.
 *
 * An epoch is one moment of one thread in 64 bits: block + 1 | time | warp | lane, from the highest bit. `time_shift`
 * is 10, and `block_shift` depends on the number of blocks. In shared memory the block is left out (0). 0: never. So
 * "the same block, and before its last barrier" is one subtraction and one compare.
 *
 * Memory is looked at in rows of 128 bytes. As long as each access to a row covers all of it with consecutive lanes of
 * one warp, one entry says everything. Otherwise the row is divided into cells. A cell is 4 bytes at first. Where an
 * access has a smaller size or alignment, all cells of the area become 2 bytes or 1 byte. Each part then has the facts
 * of its cell.
 *
 * A page of global memory has a lock, which is held while it is looked at or changed; pages live as long as the
 * watch. Shared memory is used by one thread at a time and needs none. */
#ifndef MR_PTX_WATCH_SHADOW_H
#define MR_PTX_WATCH_SHADOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "ptx/read/tree.h"
#include "ptx/watch/clock.h"

#define PTX_LANE_BITS  5
#define PTX_TIME_SHIFT 10
#define PTX_IN_HISTORY                                                                             \
    ((uint64_t)1 << 63) /* in `read`: the other bits are a ptx_history's address */
#define PTX_VALUE_KNOWN          (1u << 31)
#define PTX_SAMPLE(lane, number) ((lane) << 26 | (number)) /* of read_at and read_also */
#define PTX_SAMPLE_LANE(s)       ((s) >> 26)
#define PTX_SAMPLE_NUMBER(s)     ((s) & ((1u << 26) - 1))
#define PTX_PAGE_BITS            12
#define PTX_PAGE_BYTES           (1u << PTX_PAGE_BITS)

/* Lanes of a warp that have read a cell at one time. */
typedef struct {
    uint64_t epoch; /* lane 0 */
    uint32_t lanes;
    uint32_t at; /* number of the instruction */
} ptx_cell_reader;

/* A strong access: atomic, volatile, relaxed and above. */
typedef struct {
    uint64_t epoch;    /* lane 0 */
    uint64_t chain;    /* of writes; 0: a load that found none */
    uint64_t position; /* of the first lane in the chain; a load: what it has seen */
    uint64_t address;  /* of the whole operation */
    /* Masks of lanes: all lanes of the access; lanes that still count for races; lanes that count only for the order
     * of threads; lanes whose reading still counts. */
    uint32_t all, lanes, ordered, observers;
    uint32_t at;
    uint8_t bytes;
    bool reads, writes, wide; /* wide: a scope beyond the block */
    bool is_exchange;         /* ptx_is_exchange: it may race with others of its warp */
    bool is_spread;           /* lanes of one instruction had several addresses */
    bool is_update;           /* atom, red: it reads and writes in one step */
} ptx_strong;

/* One block's releases, for acquires whose scope is that block. */
typedef struct {
    uint64_t block;
    ptx_clock *clock;
} ptx_block_clock;

/* A strong write to a location, and the atomic operations after it: each reads the value of the one before. A thread
 * that reads the last value has synchronised with all of them. Counted by the cells that it covers. */
typedef struct ptx_chain ptx_chain;
struct ptx_chain {
    uint32_t references;
    uint32_t bytes;
    uint64_t address;
    uint64_t number; /* no two chains have the same */
    /* The barrier of a grid: how often it was complete before, and the chain of the last time. */
    uint64_t round;
    ptx_chain *previous;
    uint64_t length;
    uint64_t last_block;
    bool last_wide;
    ptx_clock *wide; /* the knowledge that its releases with a scope beyond the block publish */
    MR_VEC(ptx_block_clock) narrow;
};

/* Facts that do not fit into a cell: several warps as readers, strong accesses. The fields that each access reads come
 * first. */
typedef struct {
    uint64_t owner;           /* in shared memory: the block that it belongs to */
    uint64_t latest_read;     /* the greatest epoch, if all are of one block */
    ptx_cell_reader *readers; /* `few`, or more */
    uint32_t reader_count, reader_capacity;
    bool read_by_several; /* blocks */
    /* `lost` replaces all readers of blocks that ended without publishing */
    bool has_lost;
    uint8_t newest_of_warp[32]; /* index + 1 of a warp's newest reader; 0: none, or beyond 255 */
    uint32_t strong_count;
    ptx_cell_reader few[4];
    ptx_cell_reader lost;

    ptx_strong *strong;
    uint32_t strong_capacity;
    uint32_t compact_at,
        compact_count; /* when it is compacted next; its count after the last time */
    uint64_t latest_strong;
    bool strong_of_several, strong_mixed, strong_narrow; /* blocks; locations; a block's scope */
    bool strong_exchanged;                               /* there was one that is_exchange */
    bool strong_written, strong_plain; /* one that writes; one that is not an update */
    ptx_chain *chain;                  /* that its last write belongs to */
} ptx_history;

typedef struct {
    uint32_t bytes, shift; /* of a cell: 1 << shift */
    uint32_t count;
    uint64_t *written; /* the epoch of the last weak write */
    uint64_t *read;    /* of the last weak reads, lane 0; or PTX_IN_HISTORY */
    uint32_t *readers; /* its lanes */
    uint32_t *written_at;
    /* Lane and number of the first reading, and of the first other one by another lane and instruction: so a writer
     * finds one that is not its own. Further instructions are not told apart here. */
    uint32_t *read_at, *read_also;
    uint32_t *value; /* that was written, for reports: if PTX_VALUE_KNOWN is set in written_at */
    void *memory;
} ptx_cells;

#define PTX_ROW_BITS  7
#define PTX_ROW_BYTES (1u << PTX_ROW_BITS)
/* An access to 32 words by lanes of one warp: the epoch's lane accessed the first `words` (1, 2 or 4), and so on. */
typedef struct {
    uint64_t epoch; /* 0: there was none */
    uint32_t at;
    uint8_t words;
} ptx_row_entry;

/* Fields that most rows do not have. */
typedef struct {
    ptx_row_entry lost; /* replaces readers of blocks that ended without publishing */
    uint64_t owner;     /* as of a history */
    uint32_t other_count, other_capacity;
    ptx_row_entry others[]; /* further readers, of other warps */
} ptx_row_more;

typedef struct {
    ptx_row_entry written, read; /* the last ones */
    ptx_row_more *more;          /* NULL: nothing; */
} ptx_row;
#define PTX_ROW_DIVIDED ((ptx_row_more *)1) /* or only the cells count */
static inline bool ptx_row_is_divided(const ptx_row *row) {
    return row->more == PTX_ROW_DIVIDED;
}

/* cp.async: a copy of one lane that is under way. */
typedef struct {
    uint64_t epoch; /* of its lane */
    uint64_t group; /* number of its thread's group */
    uint32_t address, bytes, lane;
    uint32_t at; /* of a free one, which has no bytes: the next free one + 1 */
    const ptx_instruction *instruction;
} ptx_copy_item;

#define PTX_COPY_WORD 4 /* bytes, which a copy's address is a multiple of */
/* Those of a block. */
typedef struct {
    MR_VEC(ptx_copy_item) items;
    uint32_t under_way;
    uint32_t free_item; /* the first + 1; 0: none */
    uint32_t *of_word;  /* index + 1 of the copy that a word of shared memory belongs to */
    uint32_t word_count;
    uint64_t committed[1024]; /* groups of each thread */
} ptx_copies;

/* A page of global memory, or the shared memory of a block. */
typedef struct {
    ptx_row *rows;
    uint32_t row_count;
    uint32_t *row_values; /* that were written by rows; NULL: none is known */
    ptx_cells cells;      /* not there before a row is divided */
} ptx_area;

typedef struct ptx_page ptx_page;
struct ptx_page {
    uint64_t number; /* address >> PTX_PAGE_BITS */
    ptx_page *next;
    atomic_flag lock;
    ptx_area area;
};

#define PTX_PAGE_CHAINS 16384
typedef struct {
    _Atomic(ptx_page *) chains[PTX_PAGE_CHAINS];
} ptx_pages;

/* False, with nothing changed: memory is out. */
bool ptx_area_init(ptx_area *area, uint32_t bytes);
void ptx_area_free(ptx_area *area);
/* Cells of at most this size. */
bool ptx_area_cells(ptx_area *area, uint32_t cell_bytes);
bool ptx_row_divide(ptx_area *area, uint32_t row);

ptx_page *ptx_page_get(ptx_pages *pages, uint64_t number); /* NULL: memory is out */
void ptx_pages_free(ptx_pages *pages);

static inline void ptx_page_lock(ptx_page *page) {
    while (atomic_flag_test_and_set_explicit(&page->lock, memory_order_acquire)) {}
}
static inline void ptx_page_unlock(ptx_page *page) {
    atomic_flag_clear_explicit(&page->lock, memory_order_release);
}

static inline ptx_history *ptx_history_at(const ptx_cells *cells, uint32_t cell) {
    uint64_t read = cells->read[cell];
    return read & PTX_IN_HISTORY ? (ptx_history *)(uintptr_t)(read & ~PTX_IN_HISTORY) : NULL;
}
/* The history of a cell, or a new one with this owner: the cell's record of its readers moves there. NULL: memory is
 * out. */
ptx_history *ptx_history_of(ptx_cells *cells, uint32_t cell, uint64_t owner);
bool ptx_history_add_reader(ptx_history *h, const ptx_cell_reader *reader);
bool ptx_history_add_strong(ptx_history *h, const ptx_strong *strong);
void ptx_history_forget_readers(ptx_history *h);
void ptx_history_forget(ptx_history *h); /* all of it */

void ptx_chain_release(ptx_chain *chain);
void ptx_copies_free(ptx_copies *copies); /* accepts NULL */

#endif
