/* The pointers that each access of a kernel computes its address from (sources.c): the part of the graph's origins that
 * checks need while the kernel runs. Private to access*.c; ptx_access_sources (access.h) asks for it. */
#ifndef MR_PTX_ACCESS_SOURCES_H
#define MR_PTX_ACCESS_SOURCES_H

#include "ptx/access/access.h"
#include "ptx/access/graph.h"

typedef struct access_sources access_sources;

/* In `region`, which has to outlive it. NULL: memory is out. */
const access_sources *access_find_sources(access_graph *graph, const access_origins *origins,
                                          mr_region *region);
uint32_t access_sources_of(const access_sources *sources, const ptx_instruction *instruction,
                           const ptx_pointer_place **out_list);

#endif
