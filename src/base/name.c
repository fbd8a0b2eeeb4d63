/* Making a name: see name.h. */
#include "base/name.h"

#include <string.h>

mr_name *mr_name_new(const char *text, size_t size) {
    mr_name *name = malloc(sizeof *name + size + 1);
    if (!name) return NULL;
    name->refs = 1;
    memcpy(name->text, text, size);
    name->text[size] = '\0';
    return name;
}
