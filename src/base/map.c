/* How maps grow: see map.h. */
#include "base/map.h"

#include <string.h>

enum { FIRST_CAPACITY = 16 };

bool mr_map_grow_(void *slots_address, size_t *capacity, size_t slot_size, size_t entries) {
    void **slots = slots_address;
    size_t wanted = FIRST_CAPACITY;
    while (entries * 4 > wanted * 3) wanted *= 2;
    char *larger = calloc(wanted, slot_size);
    if (!larger) return false;
    for (size_t i = 0; i < *capacity; i++) {
        const uint64_t *slot = mr_map_slot_(*slots, i, slot_size);
        if (!*slot) continue;
        size_t at = mr_map_first_(*slot, wanted);
        memcpy(mr_map_probe_(larger, wanted, slot_size, at, 0), slot, slot_size);
    }
    free(*slots);
    *slots = larger;
    *capacity = wanted;
    return true;
}

void mr_map_clear_(void *slots, size_t capacity, size_t slot_size, size_t *count) {
    if (*count) memset(slots, 0, capacity * slot_size);
    *count = 0;
}
