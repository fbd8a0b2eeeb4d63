/* Two traces of the same script, place by place: see analysis.h. Places are told apart by file, line and name, since
 * the numbers of commands differ between runs. */
#include <stdlib.h>
#include <string.h>

#include "trace/analysis.h"
#include "trace/order.h"

typedef struct {
    const mr_span *span;
    int side; /* 0: before, 1: after */
} item;

typedef MR_VEC(item) items;

static int order_of(const mr_span *a, const mr_span *b) {
    const char *left = a->where.file ? a->where.file : "",
               *right = b->where.file ? b->where.file : "";
    int files = strcmp(left, right);
    if (files) return files;
    if (a->where.line != b->where.line) return a->where.line < b->where.line ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int by_place(const void *a, const void *b) {
    const item *left = a, *right = b;
    int order = order_of(left->span, right->span);
    if (order) return order;
    if (left->side != right->side) return left->side - right->side;
    return left->span->seq < right->span->seq ? -1 : left->span->seq > right->span->seq;
}

static bool collect(const mr_trace *trace, int side, items *out) {
    const mr_span *spans = mr_trace_spans(trace);
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        item it = {&spans[i], side};
        if (!spans[i].ran || !mr_span_is_work(&spans[i])) continue;
        if (!mr_vec_push(out, it)) return false;
    }
    return true;
}

static bool make_rows(const items *list, mr_trace_rows *out_rows) {
    for (size_t i = 0; i < list->count;) {
        const mr_span *first = list->items[i].span;
        mr_trace_row row = {.name = first->name, .where = {first->where, first->where}};
        for (; i < list->count && order_of(first, list->items[i].span) == 0; i++) {
            const mr_span *span = list->items[i].span;
            int side = list->items[i].side;
            if (!row.count[side]++ || span->begin < row.begin[side]) row.begin[side] = span->begin;
            row.time[side] += span->end - span->begin;
        }
        if (!mr_vec_push(out_rows, row)) return false;
    }
    return true;
}

/* Rows of one line are in the order of their begins. */
static int by_line(const void *a, const void *b) {
    const mr_trace_row *left = a, *right = b;
    const mr_site *here = &left->where[0], *there = &right->where[0];
    int files = strcmp(here->file ? here->file : "", there->file ? there->file : "");
    if (files) return files;
    if (here->line != there->line) return here->line < there->line ? -1 : 1;
    int p = left->count[0] ? 0 : 1, q = right->count[0] ? 0 : 1;
    if (p != q) return p - q;
    if (left->begin[p] != right->begin[q]) return left->begin[p] < right->begin[q] ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* A lost and a new span of one name are one span. `rows` in the order of lines. */
static void find_moved(mr_trace_rows *rows) {
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        mr_trace_row *gone = &rows->items[i];
        for (size_t k = 0; k < rows->count && gone->count[0] && !gone->count[1]; k++) {
            mr_trace_row *new = &rows->items[k];
            if (!new->count[1] || new->count[0] || strcmp(new->name, gone->name) != 0) continue;
            gone->where[1] = new->where[1];
            gone->count[1] = new->count[1];
            gone->time[1] = new->time[1];
            gone->begin[1] = new->begin[1];
            new->count[1] = 0;
        }
    }
    for (size_t i = 0; i < rows->count; i++)
        if (rows->items[i].count[0] || rows->items[i].count[1])
            rows->items[kept++] = rows->items[i];
    rows->count = kept;
}

mr_status mr_trace_compare(const mr_trace *before, const mr_trace *after, mr_trace_rows *out_rows) {
    items list = {0};
    *out_rows = (mr_trace_rows){0};
    bool made = collect(before, 0, &list) && collect(after, 1, &list);
    if (made && list.count) {
        qsort(list.items, list.count, sizeof *list.items, by_place);
        made = make_rows(&list, out_rows);
    }
    mr_vec_free(&list);
    if (made && out_rows->count) {
        qsort(out_rows->items, out_rows->count, sizeof *out_rows->items, by_line);
        find_moved(out_rows);
    }
    if (made) return MR_OK;
    mr_vec_free(out_rows);
    return mr_no_memory("to compare traces");
}
