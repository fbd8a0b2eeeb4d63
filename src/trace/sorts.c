/* A hash table of what spans have in common: see sorts.h. Texts are compared by address, since a trace holds each once: two
 * equal ones at different addresses only cost an entry. */
#include "trace/sorts.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 256

static uint64_t hash_of(const mr_sort *sort) {
    const uint64_t parts[] = {(uint64_t)(uintptr_t)sort->name, (uint64_t)(uintptr_t)sort->object,
                              (uint64_t)(uintptr_t)sort->where.file,
                              (uint64_t)sort->where.line << 32 | sort->stream,
                              (uint64_t)sort->kind << 32 | (uint64_t)sort->look};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash = (hash ^ parts[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static bool equal(const mr_sort *a, const mr_sort *b) {
    return a->name == b->name && a->object == b->object && a->where.file == b->where.file &&
           a->where.line == b->where.line && a->kind == b->kind && a->look == b->look &&
           a->stream == b->stream;
}

/* The slot of `sort`, or the free one where it belongs. A slot holds a number plus one. */
static uint32_t *slot_of(const mr_sorts *sorts, const mr_sort *sort) {
    size_t i = hash_of(sort) & (sorts->capacity - 1);
    while (sorts->slots[i] && !equal(&sorts->list.items[sorts->slots[i] - 1], sort))
        i = (i + 1) & (sorts->capacity - 1);
    return &sorts->slots[i];
}

static bool grow(mr_sorts *sorts) {
    size_t capacity = sorts->capacity ? 2 * sorts->capacity : FIRST_SLOTS;
    uint32_t *slots = calloc(capacity, sizeof *slots);
    if (!slots) return false;
    free(sorts->slots);
    sorts->slots = slots;
    sorts->capacity = capacity;
    for (size_t i = 0; i < sorts->list.count; i++)
        *slot_of(sorts, &sorts->list.items[i]) = (uint32_t)i + 1;
    return true;
}

static bool find(mr_sorts *sorts, const mr_sort *sort, uint32_t *out_number) {
    if (2 * sorts->list.count >= sorts->capacity && !grow(sorts)) return false;
    uint32_t *slot = slot_of(sorts, sort);
    if (!*slot) {
        if (!mr_vec_push(&sorts->list, *sort)) return false;
        *slot = (uint32_t)sorts->list.count;
    }
    *out_number = *slot - 1;
    return true;
}

mr_status mr_sorts_create(const mr_trace *trace, mr_sorts *out_sorts) {
    size_t count = mr_trace_count(trace);
    *out_sorts = (mr_sorts){.of = malloc((count + 1) * sizeof *out_sorts->of)};
    bool ok = out_sorts->of != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        const mr_span *span = &mr_trace_spans(trace)[i];
        const mr_sort sort = {span->name, span->object,     span->where,
                              span->kind, mr_look_of(span), span->stream};
        ok = find(out_sorts, &sort, &out_sorts->of[i]);
    }
    if (ok) return MR_OK;
    mr_sorts_destroy(out_sorts);
    return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to write a trace of %zu operations", count);
}

void mr_sorts_destroy(mr_sorts *sorts) {
    mr_vec_free(&sorts->list);
    free(sorts->of);
    free(sorts->slots);
    *sorts = (mr_sorts){0};
}
