/* Files that are embedded in the binary: the Lua modules and the device models. The table is written at
 * build time by scripts/embed.c; the last entry has a NULL name. */
#ifndef MR_BASE_EMBEDDED_H
#define MR_BASE_EMBEDDED_H

#include <stddef.h>

typedef struct {
    const char *name; /* "lua/millrace/testing.lua", "models/h200.model" */
    const unsigned char *data;
    size_t size;
} mr_embedded;

extern const mr_embedded mr_embedded_files[];

const mr_embedded *mr_embedded_find(const char *name); /* NULL if there is none */

#endif
