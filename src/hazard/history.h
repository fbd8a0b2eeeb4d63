/* Histories: for each storage, the accesses that a later access may still race with. */
#ifndef MR_HAZARD_HISTORY_H
#define MR_HAZARD_HISTORY_H

#include "base/slab.h"
#include "hazard/order.h"
#include "hazard/view.h"

/* An access of the entry's stream that the entry replaced while a host function was pending: a wait in front of it
 * orders both behind that function. */
typedef struct {
    uint64_t seq; /* 0: none */
    uint8_t access;
    const char *op;
    mr_name *op_name; /* as in an entry */
    mr_site where;
} earlier_access;

struct entry {
    actor *actor; /* one reference */
    uint64_t seq;
    uint8_t access;
    /* the kinds of atomic updates that commute: mr_ptx_kernel_updates; otherwise 0 */
    uint8_t updates;
    bool advisory : 1; /* pageable memory by an asynchronous copy: unspecified, no hazard (R23) */
    /* an assumed access that also stands for the same access of another launch */
    bool merged : 1;
    bool large : 1;        /* which slab */
    uint32_t at;           /* in history.entries */
    uint64_t stamp;        /* of the search that met it last */
    uint64_t from, length; /* where the index has it (index.c) */
    const char *op;
    mr_name *op_name; /* owner of the text `op`; one reference; NULL: the text is static */
    mr_site where;
    mr_name *tensor_name; /* one reference, or NULL */
    earlier_access earlier;
    vclock *clock;  /* what the actor knew, while host functions are pending; else NULL */
    byte_view view; /* only the first ndim dims are there in a small entry */
};
#define SMALL_ENTRY_DIMS 1

typedef struct view_index view_index;

typedef struct history history;
struct history {
    mr_storage *storage;
    history *previous, *next;
    entry **entries; /* `few`, or an array of its own */
    entry *few[2];
    uint32_t count, capacity;
    view_index *index;  /* NULL while there are few */
    actor *alloc_actor; /* NULL: made before the checker was on, or host memory */
    uint64_t alloc_seq;
    struct unset *unset; /* bytes that nothing has written; NULL: there are none */
    struct unset *kept;  /* the same as it was when an exploration began; `is_kept` */
    bool is_kept;
    struct rank_uses *by_ranks; /* of memory from before the ranks; NULL: none has used it */
    uint32_t unset_events;      /* that wait for host functions */
    bool watched;               /* one of the two is there */
    uint64_t reused;            /* from this seq on the memory has another owner (observer.h) */
    bool freed; /* the free has been submitted; later uses are errors before they get here */
    bool alloc_unordered; /* a use before the allocation has been reported */
    /* the variable that a report named, for later reports, in case it is gone by then; owned, or NULL */
    char *last_name;
};

typedef struct {
    history *all; /* linked */
    mr_slab slab, small_entries, large_entries;
    size_t entry_count;
    MR_VEC(entry *) found;
    MR_VEC(entry *) replaced; /* of those found, by the access at hand */
    uint64_t stamp;           /* of the last search in an index */
    uint64_t first_storage;   /* made since it was switched on: those with a greater id */
} histories_part;

/* Many views of one storage, found by where they lie (index.c). */
view_index *mr_hazard_index_create(history *h); /* of all its entries; NULL: out of memory */
void mr_hazard_index_destroy(view_index *index);
bool mr_hazard_index_add(view_index *index, entry *e);
void mr_hazard_index_remove(view_index *index, entry *e);
void mr_hazard_index_search(checker *c, view_index *index, const byte_view *view);

void mr_hazard_histories_create(checker *c);
void mr_hazard_histories_destroy(checker *c);
void mr_hazard_histories_begin(checker *c); /* storages that are there may have been written */
history *mr_hazard_history_of(checker *c,
                              mr_storage *storage); /* creates it if needed; NULL: out of memory */
void mr_hazard_history_drop(checker *c, history *h);
void mr_hazard_history_drop_all(checker *c);
/* Puts the entries whose extent meets `view`'s into c->histories.found. */
void mr_hazard_history_search(checker *c, history *h, const byte_view *view);
entry *mr_hazard_history_add(checker *c, history *h, actor *a, const byte_view *view);
void mr_hazard_history_remove(checker *c, history *h, entry *e);

/* rank_uses.c: the rank that runs accesses memory from before the ranks. */
void mr_hazard_rank_touches(checker *c, history *h, const actor *a, uint8_t access,
                            const byte_view *view);
void mr_hazard_rank_uses_free(struct rank_uses *uses); /* accepts NULL */

#endif
