/* The table of interned strings: open addressing, grown at three quarters full, never shrunk. */
#include "base/intern.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_bytes(const char *text, size_t size) {
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

static char **find_slot(char **slots, size_t capacity, const char *text, size_t size) {
    size_t i = hash_bytes(text, size) & (capacity - 1);
    while (slots[i] && (strncmp(slots[i], text, size) != 0 || slots[i][size] != '\0'))
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

static int grow(mr_interned *table) {
    size_t capacity = table->capacity ? table->capacity * 2 : 64;
    char **slots = calloc(capacity, sizeof *slots);
    if (!slots) return 0;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->slots[i])
            *find_slot(slots, capacity, table->slots[i], strlen(table->slots[i])) = table->slots[i];
    free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return 1;
}

const char *mr_intern(mr_interned *table, const char *text, size_t size, const char *otherwise) {
    if (table->count * 4 >= table->capacity * 3 && !grow(table)) return otherwise;
    char **slot = find_slot(table->slots, table->capacity, text, size);
    if (!*slot) {
        size_t most = table->most ? table->most : MR_MOST_INTERNED;
        char *copy = table->count < most ? malloc(size + 1) : NULL;
        if (!copy) return otherwise;
        memcpy(copy, text, size);
        copy[size] = '\0';
        *slot = copy;
        table->count++;
    }
    return *slot;
}

bool mr_is_interned(const mr_interned *table, const char *text) {
    return table->count && *find_slot(table->slots, table->capacity, text, strlen(text));
}

void mr_interned_free(mr_interned *table) {
    for (size_t i = 0; i < table->capacity; i++) free(table->slots[i]);
    free(table->slots);
    *table = (mr_interned){0};
}
