/* The user's files that a text includes: their contents are part of the compiled source. */
#ifndef MR_COMPILE_INCLUDE_H
#define MR_COMPILE_INCLUDE_H

#include "compile/internal.h"

typedef struct {
    /* of each file that may be included, with its name, in the order of finding them */
    mr_buffer contents;
    bool is_unknown; /* there may be others: the result must not be cached */
    bool uses_place; /* the PTX may contain a line number of the user's file */
} mr_dependencies;

/* Follows each #include, also those that an #if turns off. */
void mr_include_collect(const mr_compile_job *job, mr_dependencies *out);

#endif
