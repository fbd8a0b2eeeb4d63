/* Names that a script gives to its streams, events, tensors and operations: counted strings. A name lives as long as
 * the object it names and each record that may still show it: each of them holds a reference.
 *
 * A name belongs to one machine, so the count is not atomic. */
#ifndef MR_BASE_NAME_H
#define MR_BASE_NAME_H

#include <stdint.h>
#include <stdlib.h>

typedef struct {
    uint32_t refs;
    char text[];
} mr_name;

/* A copy of `text` with one reference; NULL: no memory. */
mr_name *mr_name_new(const char *text, size_t size);

/* All accept NULL, which means no name. */
static inline const char *mr_name_text(const mr_name *name) {
    return name ? name->text : NULL;
}
static inline mr_name *mr_name_retain(mr_name *name) {
    if (name) name->refs++;
    return name;
}
static inline void mr_name_release(mr_name *name) {
    if (name && --name->refs == 0) free(name);
}
/* Releases the name in *kept, and stores `name` there with a reference of its own. */
static inline void mr_name_keep(mr_name **kept, mr_name *name) {
    if (*kept == name) return;
    mr_name_release(*kept);
    *kept = mr_name_retain(name);
}

#endif
