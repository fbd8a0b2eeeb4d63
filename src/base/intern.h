/* Interned strings: there is one copy of each, so two strings are equal exactly if their pointers are
 * equal. They are the names of script files, to which every recorded line points. A table belongs to a
 * machine and is freed with it.
 *
 * References to them are not counted, so the table has a limit: if a script loads chunks under more names
 * than that, the further ones have no name. */
#ifndef MR_BASE_INTERN_H
#define MR_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"

/* The largest length in bytes of a name that a script gives, and of a file name that is stored. */
#define MR_LONGEST_NAME 200

#define MR_MOST_INTERNED 8192

/* Zeroed at first. */
typedef struct {
    MR_MAP(char *) texts; /* by their hash */
    size_t most;          /* 0: MR_MOST_INTERNED */
} mr_interned;

/* Returns the one copy of `text`, or `otherwise` (a static text) if the table is full or there is no
 * memory. `text` may hold no NUL before `size`. */
const char *mr_intern(mr_interned *table, const char *text, size_t size, const char *otherwise);
bool mr_is_interned(const mr_interned *table, const char *text);
void mr_interned_free(mr_interned *table);

#endif
