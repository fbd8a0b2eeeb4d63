/* The facts that many spans of a trace have in common: name, line, stream. A loop of a million steps has a few dozen of
 * these, so a page holds each once, and of a span only its number. */
#ifndef MR_TRACE_SORTS_H
#define MR_TRACE_SORTS_H

#include "base/map.h"
#include "base/vec.h"
#include "trace/draw/lanes.h"

typedef struct {
    const char *name, *object;
    mr_site where;
    mr_command_id kind;
    mr_look look; /* on the device, once it has run; NONE: a marker, or the host's */
    uint32_t stream;
    int rank; /* mr_trace_rank_of */
} mr_sort;

typedef struct {
    MR_VEC(mr_sort) list;
    uint32_t *of;             /* the sort of each span */
    MR_MAP(uint32_t) numbers; /* in the list, by hash */
} mr_sorts;

mr_status mr_sorts_create(const mr_trace *trace, mr_sorts *out_sorts);
void mr_sorts_destroy(mr_sorts *sorts);

#endif
