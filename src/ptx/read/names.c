/* The table of names. Records are found by index, since the array moves as it grows. */
#include "ptx/read/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_NAMES = 1536 }; /* the words, and the names of most kernels */

static ptx_name find(const ptx_names *names, const char *text, size_t size, uint64_t hash) {
    const ptx_name *name = mr_map_find(&names->by_text, hash);
    for (; name; name = mr_map_again(&names->by_text, name)) {
        const ptx_name_record *record = &names->records.items[*name];
        if (record->size == size && memcmp(record->text, text, size) == 0) return *name;
    }
    return PTX_NO_NAME;
}

ptx_name ptx_names_find(const ptx_names *names, const char *text, size_t size) {
    return find(names, text, size, mr_map_hash(text, size));
}

ptx_name ptx_names_intern(ptx_names *names, const char *text, size_t size) {
    uint64_t hash = mr_map_hash(text, size);
    ptx_name name = find(names, text, size, hash);
    if (name != PTX_NO_NAME) return name;
    char *copy =
        mr_vec_reserve_one(&names->records) ? mr_region_alloc(names->arena, size + 1) : NULL;
    ptx_name *place = copy ? mr_map_insert(&names->by_text, hash) : NULL;
    if (!place) return PTX_NO_NAME;
    memcpy(copy, text, size);
    ptx_name_record record = {.text = copy, .size = (uint32_t)size, .special = -1, .binding = -1};
    mr_vec_push(&names->records, record);
    return *place = (ptx_name)(names->records.count - 1);
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
        if (!(r = record_of_word(names, mr_ptx_types[i].name))) return false;
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
    return mr_map_reserve(&names->by_text, FIRST_NAMES) && add_words(names);
}

void ptx_names_free(ptx_names *names) {
    mr_vec_free(&names->records);
    mr_vec_free(&names->bindings);
    mr_vec_free(&names->ranges);
    mr_map_free(&names->range_registers);
    mr_map_free(&names->by_text);
}
