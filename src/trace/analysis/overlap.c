/* Overlap and idle time: which parts of the time streams carried out work in. */
#include <stdlib.h>

#include "trace/analysis.h"
#include "trace/order.h"

typedef struct {
    uint64_t begin, end;
    uint32_t span;
} busy;

typedef MR_VEC(busy) busy_list;

static int by_begin(const void *a, const void *b) {
    const busy *left = a, *right = b;
    if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
    return left->span < right->span ? -1 : left->span > right->span;
}

/* The stream's work in the order of its begin. */
static bool find_work(const mr_trace *trace, uint32_t stream, busy_list *out_list) {
    const mr_span *spans = mr_trace_spans(trace);
    *out_list = (busy_list){0};
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        if (spans[i].stream != stream || !spans[i].ran || !mr_span_is_work(&spans[i])) continue;
        busy piece = {spans[i].begin, spans[i].end, (uint32_t)i};
        if (mr_vec_push(out_list, piece)) continue;
        mr_vec_free(out_list);
        return false;
    }
    if (out_list->count) qsort(out_list->items, out_list->count, sizeof(busy), by_begin);
    return true;
}

/* Pieces that touch become one. */
static void merge(busy_list *list) {
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        busy piece = list->items[i];
        if (kept && piece.begin <= list->items[kept - 1].end) {
            if (piece.end > list->items[kept - 1].end) list->items[kept - 1].end = piece.end;
        } else {
            list->items[kept++] = piece;
        }
    }
    list->count = kept;
}

mr_status mr_trace_overlap(const mr_trace *trace, uint32_t stream, uint32_t other,
                           uint64_t *out_time) {
    busy_list a, b;
    *out_time = 0;
    if (!find_work(trace, stream, &a)) return mr_no_memory("to look at a trace");
    if (!find_work(trace, other, &b)) {
        mr_vec_free(&a);
        return mr_no_memory("to look at a trace");
    }
    merge(&a);
    merge(&b);
    for (size_t i = 0, j = 0; i < a.count && j < b.count;) {
        const busy *x = &a.items[i], *y = &b.items[j];
        uint64_t begin = x->begin > y->begin ? x->begin : y->begin;
        uint64_t end = x->end < y->end ? x->end : y->end;
        if (begin < end) *out_time += end - begin;
        if (x->end < y->end) i++;
        else j++;
    }
    mr_vec_free(&a);
    mr_vec_free(&b);
    return MR_OK;
}

mr_status mr_trace_idle(const mr_trace *trace, uint32_t stream, mr_trace_gaps *out_gaps) {
    const mr_span *spans = mr_trace_spans(trace);
    busy_list work;
    uint64_t end = 0;
    bool failed = false;
    *out_gaps = (mr_trace_gaps){0};
    if (!find_work(trace, stream, &work)) return mr_no_memory("to look at a trace");
    for (size_t i = 0; i < work.count && !failed; i++) {
        const busy *piece = &work.items[i];
        if (piece->begin > end) {
            const mr_span *next = &spans[piece->span];
            mr_trace_gap gap = {end, piece->begin, piece->span, next->held_by, next->holder};
            failed = !mr_vec_push(out_gaps, gap);
        }
        if (piece->end > end) end = piece->end;
    }
    mr_vec_free(&work);
    if (!failed) return MR_OK;
    mr_vec_free(out_gaps);
    return mr_no_memory("to look at a trace");
}
