/* Files that are embedded in the binary: the Lua modules, the device models, the headers for kernels. The table is
 * written at build time by scripts/embed.c; the last entry has a NULL name. */
#ifndef MR_BASE_EMBEDDED_H
#define MR_BASE_EMBEDDED_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name; /* "lua/millrace/testing.lua", "models/h200.model" */
    const unsigned char *data;
    size_t size;
    uint64_t hash; /* of the data: differs from that of another version of the file */
} mr_embedded;

extern const mr_embedded mr_embedded_files[];

const mr_embedded *mr_embedded_find(const char *name); /* NULL if there is none */

#endif
