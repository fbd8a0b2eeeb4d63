/* See undo.h. Entries are a stack. Restoring them from the newest to the oldest gives the bytes at the mark, even if a
 * page was also kept for a later checkpoint. */
#include "virtual/undo.h"

#include <stdlib.h>
#include <string.h>

#define PAGE ((uintptr_t)4096)

/* True: it has been kept for the newest checkpoint already. */
static bool note(undo *u, uintptr_t at) {
    uint64_t *generation = mr_map_add(&u->kept, at);
    if (!generation) u->failed = true;
    if (!generation || *generation >= u->generation) return true;
    *generation = u->generation;
    return false;
}

static bool is_zero(const char *at, size_t size) {
    return !*at && memcmp(at, at + 1, size - 1) == 0;
}

static bool reserve(undo *u, size_t size) {
    if (u->limit && u->bytes.count + size > u->limit) return false;
    return mr_vec_reserve(&u->bytes, size);
}

static void keep(undo *u, char *at, size_t size) {
    undo_entry page = {.at = at,
                       .size = (uint32_t)size,
                       .what = is_zero(at, size) ? UNDO_ZEROS : UNDO_BYTES,
                       .bytes = u->bytes.count};
    if (!mr_vec_reserve_one(&u->entries) || (page.what == UNDO_BYTES && !reserve(u, size))) {
        u->failed = true;
        return;
    }
    if (page.what == UNDO_BYTES) {
        memcpy(u->bytes.items + u->bytes.count, at, size);
        u->bytes.count += size;
    }
    mr_vec_push(&u->entries, page);
}

void mr_undo_save_on(undo *u, char *low, char *high, char *first, char *end) {
    for (uintptr_t page = (uintptr_t)first / PAGE * PAGE; page < (uintptr_t)end; page += PAGE) {
        char *at = page < (uintptr_t)low ? low : (char *)page;
        char *last = (uintptr_t)high - page < PAGE ? high : at + (page + PAGE - (uintptr_t)at);
        if (!note(u, (uintptr_t)at)) keep(u, at, (size_t)(last - at));
    }
}

bool mr_undo_allocated(undo *u, void *at) {
    if (!mr_undo_is_on(u) || u->host_stays) return true;
    undo_entry entry = {.at = at, .what = UNDO_ALLOCATED};
    return mr_vec_push(&u->entries, entry);
}

void mr_undo_free_later(undo *u, void *at) {
    undo_entry entry = {.at = at, .what = UNDO_FREED};
    if (mr_undo_is_on(u) && mr_vec_push(&u->entries, entry)) return;
    u->failed = mr_undo_is_on(u);
    free(at);
}

size_t mr_undo_mark(undo *u) {
    u->generation = ++u->generations;
    return u->entries.count;
}

static void take_back(undo *u, const undo_entry *entry) {
    switch (entry->what) {
    case UNDO_BYTES:
        memcpy(entry->at, u->bytes.items + entry->bytes, entry->size);
        u->bytes.count = entry->bytes;
        break;
    case UNDO_ZEROS: memset(entry->at, 0, entry->size); break;
    case UNDO_ALLOCATED: free(entry->at); return;
    case UNDO_FREED: return;
    }
    *mr_map_find(&u->kept, (uintptr_t)entry->at) = 0; /* to be kept again, also for those below */
}

/* If host memory is not restored, memory that the host has freed stays freed, without an owner. It is kept until no
 * entry may write there, since older entries may be about it. */
static size_t keep_freed(undo *u, size_t mark) {
    size_t kept = mark;
    for (size_t i = mark; i < u->entries.count && u->host_stays; i++)
        if (u->entries.items[i].what == UNDO_FREED) u->entries.items[kept++] = u->entries.items[i];
    return kept;
}

void mr_undo_roll_back(undo *u, size_t mark) {
    for (size_t i = u->entries.count; i-- > mark;) take_back(u, &u->entries.items[i]);
    u->entries.count = keep_freed(u, mark);
}

static void free_freed(const undo *u, size_t end) {
    for (size_t i = 0; i < end; i++)
        if (u->entries.items[i].what == UNDO_FREED) free(u->entries.items[i].at);
}

size_t mr_undo_forget(undo *u, size_t mark) {
    size_t used = u->bytes.count, left = u->entries.count - mark;
    free_freed(u, mark);
    if (left) memmove(u->entries.items, u->entries.items + mark, left * sizeof *u->entries.items);
    u->entries.count = left;
    for (size_t i = left; i-- > 0;)
        if (u->entries.items[i].what == UNDO_BYTES) used = u->entries.items[i].bytes;
    if (used && u->bytes.count > used)
        memmove(u->bytes.items, u->bytes.items + used, u->bytes.count - used);
    u->bytes.count -= used;
    for (size_t i = 0; i < left; i++)
        if (u->entries.items[i].what == UNDO_BYTES) u->entries.items[i].bytes -= used;
    return mark;
}

size_t mr_undo_bytes(const undo *u) {
    return u->bytes.count + u->entries.count * sizeof *u->entries.items;
}

void mr_undo_pop(undo *u, uint64_t generation) {
    u->generation = generation;
    if (generation) return;
    free_freed(u, u->entries.count);
    u->entries.count = u->bytes.count = 0;
    u->host_stays = false;
    u->limit = 0;
    u->failed = false;
    mr_map_clear(&u->kept);
}

void mr_undo_free(undo *u) {
    mr_undo_pop(u, 0);
    mr_vec_free(&u->entries);
    mr_vec_free(&u->bytes);
    mr_map_free(&u->kept);
    *u = (undo){0};
}
