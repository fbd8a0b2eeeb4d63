/* The table of interned strings. */
#include "base/intern.h"

#include <stdlib.h>
#include <string.h>

static char *find(const mr_interned *table, const char *text, size_t size, uint64_t hash) {
    for (char **slot = mr_map_find(&table->texts, hash); slot;
         slot = mr_map_again(&table->texts, slot))
        if (strncmp(*slot, text, size) == 0 && (*slot)[size] == '\0') return *slot;
    return NULL;
}

const char *mr_intern(mr_interned *table, const char *text, size_t size, const char *otherwise) {
    uint64_t hash = mr_map_hash(text, size);
    char *known = find(table, text, size, hash);
    if (known) return known;
    size_t most = table->most ? table->most : MR_MOST_INTERNED;
    char *copy = table->texts.count < most ? malloc(size + 1) : NULL;
    char **slot = copy ? mr_map_insert(&table->texts, hash) : NULL;
    if (!slot) {
        free(copy);
        return otherwise;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    return *slot = copy;
}

bool mr_is_interned(const mr_interned *table, const char *text) {
    size_t size = strlen(text);
    return find(table, text, size, mr_map_hash(text, size)) != NULL;
}

void mr_interned_free(mr_interned *table) {
    mr_map_each(&table->texts, at) free(table->texts.slots[at].value);
    mr_map_free(&table->texts);
    *table = (mr_interned){0};
}
