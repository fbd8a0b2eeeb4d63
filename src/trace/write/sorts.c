/* A hash table of what spans have in common: see sorts.h. Texts are compared by address, since a trace holds each once:
 * two equal ones at different addresses only cost an entry. */
#include "trace/write/sorts.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const mr_sort *sort) {
    const uint64_t parts[] = {(uint64_t)(uintptr_t)sort->name,
                              (uint64_t)(uintptr_t)sort->object,
                              (uint64_t)(uintptr_t)sort->where.file,
                              (uint64_t)sort->where.line << 32 | sort->stream,
                              (uint64_t)sort->kind << 32 | (uint64_t)sort->look,
                              (uint64_t)(sort->rank + 1)};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash = (hash ^ parts[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash >> 1;
}

static bool equal(const mr_sort *a, const mr_sort *b) {
    return a->name == b->name && a->object == b->object && a->where.file == b->where.file &&
           a->where.line == b->where.line && a->kind == b->kind && a->look == b->look &&
           a->stream == b->stream && a->rank == b->rank;
}

static bool find(mr_sorts *sorts, const mr_sort *sort, uint32_t *out_number) {
    uint64_t hash = hash_of(sort);
    for (uint32_t *n = mr_map_find(&sorts->numbers, hash); n;
         n = mr_map_again(&sorts->numbers, n)) {
        *out_number = *n;
        if (equal(&sorts->list.items[*n], sort)) return true;
    }
    uint32_t *added =
        mr_vec_push(&sorts->list, *sort) ? mr_map_insert(&sorts->numbers, hash) : NULL;
    if (added) *added = *out_number = (uint32_t)sorts->list.count - 1;
    return added != NULL;
}

mr_status mr_sorts_create(const mr_trace *trace, mr_sorts *out_sorts) {
    size_t count = mr_trace_count(trace);
    *out_sorts = (mr_sorts){.of = malloc((count + 1) * sizeof *out_sorts->of)};
    bool ok = out_sorts->of != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        const mr_span *span = &mr_trace_spans(trace)[i];
        const mr_sort sort = {span->name,
                              span->object,
                              span->where,
                              span->kind,
                              mr_look_of(span),
                              span->stream,
                              mr_trace_rank_of(trace, span)};
        ok = find(out_sorts, &sort, &out_sorts->of[i]);
    }
    if (ok) return MR_OK;
    mr_sorts_destroy(out_sorts);
    return mr_no_memory("to write a trace of %zu operations", count);
}

void mr_sorts_destroy(mr_sorts *sorts) {
    mr_vec_free(&sorts->list);
    free(sorts->of);
    mr_map_free(&sorts->numbers);
    *sorts = (mr_sorts){0};
}
