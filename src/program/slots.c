/* A map from what objects are known by elsewhere (their ids, the hash of a view) to slots. */
#include <stdlib.h>

#include "program/state.h"

static size_t place_of(const slot_map *map, uint64_t key) {
    size_t mask = map->capacity - 1;
    size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & mask;
    while (map->keys[at] && map->keys[at] != key) at = (at + 1) & mask;
    return at;
}

uint32_t mr_slot_find(const slot_map *map, uint64_t key) {
    if (!map->capacity) return NO_SLOT;
    size_t at = place_of(map, key);
    return map->keys[at] ? map->slots[at] : NO_SLOT;
}

static bool grow(slot_map *map) {
    slot_map larger = {.capacity = map->capacity ? map->capacity * 2 : 64, .count = map->count};
    larger.keys = calloc(larger.capacity, sizeof *larger.keys);
    larger.slots = malloc(larger.capacity * sizeof *larger.slots);
    if (!larger.keys || !larger.slots) {
        mr_slot_map_free(&larger);
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (!map->keys[i]) continue;
        size_t at = place_of(&larger, map->keys[i]);
        larger.keys[at] = map->keys[i];
        larger.slots[at] = map->slots[i];
    }
    mr_slot_map_free(map);
    *map = larger;
    return true;
}

bool mr_slot_put(slot_map *map, uint64_t key, uint32_t slot) {
    if (map->count * 4 >= map->capacity * 3 && !grow(map)) return false;
    size_t at = place_of(map, key);
    if (!map->keys[at]) map->count++;
    map->keys[at] = key;
    map->slots[at] = slot;
    return true;
}

void mr_slot_map_free(slot_map *map) {
    free(map->keys);
    free(map->slots);
    *map = (slot_map){0};
}
