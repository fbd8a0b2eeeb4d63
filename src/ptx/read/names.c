/* The table of names, by open addressing, and a map of numbers. Records are found by index, since the array moves as it grows. */
#include "ptx/read/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers */

static size_t first_slot(uint64_t key, size_t capacity) {
    key *= 0x9E3779B97F4A7C15u;
    return (size_t)(key ^ key >> 32) & (capacity - 1);
}

static size_t map_slot(const ptx_map *map, uint64_t key) {
    size_t i = first_slot(key, map->capacity);
    while (map->slots[i].used && map->slots[i].key != key) i = (i + 1) & (map->capacity - 1);
    return i;
}

bool ptx_map_find(const ptx_map *map, uint64_t key, uint32_t *out_value) {
    if (!map->count) return false;
    size_t i = map_slot(map, key);
    if (map->slots[i].used) *out_value = map->slots[i].value;
    return map->slots[i].used;
}

static bool map_grow(ptx_map *map) {
    ptx_map grown = {.capacity = map->capacity ? map->capacity * 2 : 64, .count = map->count};
    grown.slots = calloc(grown.capacity, sizeof *grown.slots);
    if (!grown.slots) return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].used) grown.slots[map_slot(&grown, map->slots[i].key)] = map->slots[i];
    free(map->slots);
    *map = grown;
    return true;
}

bool ptx_map_put(ptx_map *map, uint64_t key, uint32_t value) {
    if (map->count * 4 >= map->capacity * 3 && !map_grow(map)) return false;
    size_t i = map_slot(map, key);
    map->count += !map->slots[i].used;
    map->slots[i].key = key;
    map->slots[i].value = value;
    map->slots[i].used = true;
    return true;
}

void ptx_map_free(ptx_map *map) {
    free(map->slots);
    *map = (ptx_map){0};
}

/* ---- names */

static uint32_t hash_of(const char *text, size_t size) {
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return (uint32_t)(hash ^ hash >> 32);
}

static ptx_name *slot_of(const ptx_names *names, const char *text, size_t size, uint32_t hash) {
    size_t i = hash & (names->capacity - 1);
    for (; names->slots[i] != PTX_NO_NAME; i = (i + 1) & (names->capacity - 1)) {
        const ptx_name_record *record = &names->records.items[names->slots[i]];
        if (record->hash == hash && record->size == size && memcmp(record->text, text, size) == 0)
            break;
    }
    return &names->slots[i];
}

static bool grow(ptx_names *names) {
    size_t capacity = names->capacity ? names->capacity * 2 : 4096;
    ptx_name *slots = malloc(capacity * sizeof *slots);
    if (!slots) return false;
    memset(slots, 0xFF, capacity * sizeof *slots);
    free(names->slots);
    names->slots = slots;
    names->capacity = capacity;
    for (size_t i = 0; i < names->records.count; i++) {
        const ptx_name_record *record = &names->records.items[i];
        *slot_of(names, record->text, record->size, record->hash) = (ptx_name)i;
    }
    return true;
}

ptx_name ptx_names_find(const ptx_names *names, const char *text, size_t size) {
    return *slot_of(names, text, size, hash_of(text, size));
}

ptx_name ptx_names_intern(ptx_names *names, const char *text, size_t size) {
    uint32_t hash = hash_of(text, size);
    if (names->records.count * 2 >= names->capacity && !grow(names)) return PTX_NO_NAME;
    ptx_name *slot = slot_of(names, text, size, hash);
    if (*slot != PTX_NO_NAME) return *slot;
    char *copy = mr_region_alloc(names->arena, size + 1);
    if (!copy) return PTX_NO_NAME;
    memcpy(copy, text, size);
    ptx_name_record record = {
        .text = copy, .size = (uint32_t)size, .hash = hash, .special = -1, .binding = -1};
    if (!mr_vec_push(&names->records, record)) return PTX_NO_NAME;
    return *slot = (ptx_name)(names->records.count - 1);
}

static ptx_name_record *record_of_word(ptx_names *names, const char *text) {
    ptx_name name = ptx_names_intern(names, text, strlen(text));
    return name == PTX_NO_NAME ? NULL : &names->records.items[name];
}

static bool add_words(ptx_names *names) {
    ptx_name_record *r;
    for (int i = 1; i < PTX_OP_COUNT; i++) {
        if (!(r = record_of_word(names, ptx_opcode_names[i]))) return false;
        r->opcode = (uint8_t)i;
    }
    for (int i = 1; i < PTX_MOD_COUNT; i++) {
        if (!(r = record_of_word(names, ptx_modifier_names[i]))) return false;
        r->modifier = (uint8_t)i;
    }
    for (int i = 1; i < PTX_TYPE_COUNT; i++) {
        if (!(r = record_of_word(names, ptx_types[i].name))) return false;
        r->type = (uint8_t)i;
    }
    for (int i = 0; i < PTX_SREG_COUNT; i++) {
        char spelled[48];
        snprintf(spelled, sizeof spelled, "%%%s", ptx_special_names[i]);
        if (!(r = record_of_word(names, spelled))) return false;
        r->special = (int16_t)i;
    }
    return true;
}

bool ptx_names_init(ptx_names *names, mr_region *arena) {
    *names = (ptx_names){.arena = arena};
    return grow(names) && add_words(names);
}

void ptx_names_free(ptx_names *names) {
    mr_vec_free(&names->records);
    mr_vec_free(&names->bindings);
    mr_vec_free(&names->ranges);
    ptx_map_free(&names->range_registers);
    free(names->slots);
}
