/* Hash maps as macros over {slots, count, capacity}: open addressing, grown at three quarters full, never shrunk.
 *
 *     MR_MAP(uint32_t) slot_of = {0};
 *     if (!mr_map_put(&slot_of, stream->id, slot)) return out_of_memory;
 *     uint32_t *found = mr_map_find(&slot_of, stream->id);
 *
 * A key is a number of 64 bits other than UINT64_MAX, or a pointer as one. An entry with a longer key is stored under a
 * hash of it, and several entries may have the same hash. mr_map_insert adds, mr_map_again goes through them.
 *
 * Easiest to break: pointers to values are good until the next addition. The order of mr_map_each depends on the keys.
 * If keys are pointers, no output for users may depend on that order. */
#ifndef MR_BASE_MAP_H
#define MR_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* `entry` is the key plus one; 0: the slot is free, and its value is zeroed. */
#define MR_MAP(type)                                                                               \
    struct {                                                                                       \
        struct {                                                                                   \
            uint64_t entry;                                                                        \
            type value;                                                                            \
            _Static_assert(_Alignof(type) <= sizeof(uint64_t), "a value follows its key");         \
        } * slots;                                                                                 \
        size_t count, capacity;                                                                    \
    }

/* The value of a key; NULL: there is none. */
#define mr_map_find(map, key) MR_MAP_VALUE_(map, mr_map_find_(MR_MAP_PARTS_(map), (uint64_t)(key)))
/* The same, zeroed and added if there is none; NULL: no memory, and the map is as it was. */
#define mr_map_add(map, key)                                                                       \
    MR_MAP_VALUE_(map, mr_map_add_(MR_MAP_WHOLE_(map), (uint64_t)(key), false))
/* One more value of the key, zeroed; NULL as above. */
#define mr_map_insert(map, key)                                                                    \
    MR_MAP_VALUE_(map, mr_map_add_(MR_MAP_WHOLE_(map), (uint64_t)(key), true))
/* Another value of the same key, after one that mr_map_find or this returned; NULL: that was the last. */
#define mr_map_again(map, found) MR_MAP_VALUE_(map, mr_map_again_(MR_MAP_PARTS_(map), (found)))

/* Room for so many entries in an empty map. False: no memory. */
#define mr_map_reserve(map, entries)                                                               \
    mr_map_grow_(&(map)->slots, &(map)->capacity, sizeof *(map)->slots, (entries))
/* False: no memory. */
#define mr_map_put(map, key, item)                                                                 \
    (mr_map_add(map, key) ? (*mr_map_find(map, key) = (item), true) : false)

/* A loop over the entries; `at` names a slot, whose value is map->slots[at].value. */
#define mr_map_each(map, at)                                                                       \
    for (size_t at = 0; at < (map)->capacity; at++)                                                \
        if ((map)->slots[at].entry)

/* Forgets all entries, and keeps the memory. */
#define mr_map_clear(map)                                                                          \
    mr_map_clear_((map)->slots, (map)->capacity, sizeof *(map)->slots, &(map)->count)
#define mr_map_free(map)                                                                           \
    (free((map)->slots), (map)->slots = NULL, (map)->count = (map)->capacity = 0)

/* FNV-1a, as a key: never UINT64_MAX. */
static inline uint64_t mr_map_hash(const char *bytes, size_t size) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
    return hash >> 1;
}

/* ---- what the macros stand for */

#define MR_MAP_PARTS_(map)        (map)->slots, (map)->capacity, sizeof *(map)->slots
#define MR_MAP_VALUE_(map, found) ((__typeof__(&(map)->slots->value))(found))

#define MR_MAP_WHOLE_(map) &(map)->slots, &(map)->capacity, &(map)->count, sizeof *(map)->slots

/* False: no memory. */
bool mr_map_grow_(void *slots_address, size_t *capacity, size_t slot_size, size_t entries);
void mr_map_clear_(void *slots, size_t capacity, size_t slot_size, size_t *count);

static inline uint64_t *mr_map_slot_(void *slots, size_t at, size_t slot_size) {
    return (uint64_t *)((char *)slots + at * slot_size);
}

/* Where the search for an entry begins. The upper bits of the product depend on all bits of the key. */
static inline size_t mr_map_first_(uint64_t entry, size_t capacity) {
    return (size_t)(entry * 0x9e3779b97f4a7c15u >> (__builtin_clzll(capacity) + 1));
}

/* The first slot from `at` on that has this entry or is free. */
static inline uint64_t *mr_map_probe_(void *slots, size_t capacity, size_t slot_size, size_t at,
                                      uint64_t entry) {
    for (;; at = (at + 1) & (capacity - 1)) {
        uint64_t *slot = mr_map_slot_(slots, at, slot_size);
        if (*slot == entry || !*slot) return slot;
    }
}

static inline void *mr_map_find_(void *slots, size_t capacity, size_t slot_size, uint64_t key) {
    if (!capacity) return NULL;
    size_t at = mr_map_first_(key + 1, capacity);
    uint64_t *slot = mr_map_probe_(slots, capacity, slot_size, at, key + 1);
    return *slot ? slot + 1 : NULL;
}

static inline void *mr_map_again_(void *slots, size_t capacity, size_t slot_size,
                                  const void *found) {
    const uint64_t *before = (const uint64_t *)found - 1;
    size_t at = (size_t)((const char *)before - (const char *)slots) / slot_size;
    uint64_t *slot = mr_map_probe_(slots, capacity, slot_size, (at + 1) & (capacity - 1), *before);
    return *slot ? slot + 1 : NULL;
}

static inline void *mr_map_add_(void *slots_address, size_t *capacity, size_t *count,
                                size_t slot_size, uint64_t key, bool is_another) {
    bool is_full = *count * 4 >= *capacity * 3;
    if (is_full && !mr_map_grow_(slots_address, capacity, slot_size, *count + 1)) return NULL;
    size_t at = mr_map_first_(key + 1, *capacity);
    uint64_t wanted = is_another ? 0 : key + 1;
    uint64_t *slot = mr_map_probe_(*(void **)slots_address, *capacity, slot_size, at, wanted);
    if (!*slot) ++*count;
    *slot = key + 1;
    return slot + 1;
}

#endif
