/* Look-up in the table of embedded files: see embedded.h. */
#include "base/embedded.h"

#include <string.h>

const mr_embedded *mr_embedded_find(const char *name) {
    for (const mr_embedded *file = mr_embedded_files; file->name; file++)
        if (strcmp(file->name, name) == 0) return file;
    return NULL;
}
