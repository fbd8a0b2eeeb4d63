/* The index of a storage with many entries: rows, tiles, columns that are used in turn.
 *
 * Entries are kept by their position on a line that is cut into equal cells. For contiguous views the line is the used
 * part of the storage. All columns of a matrix span nearly the whole storage. So for views with a period P (it divides
 * all their strides) the line is the row, and a byte at position p is at p mod P. Each period has a layer of its own; a
 * search asks each layer at the position in that layer, and gets all entries that may overlap. */
#include "hazard/state.h"

#include <stdlib.h>
#include <string.h>

#define MOST_LAYERS 8
#define MOST_BEYOND 4
#define MOST_CELLS  4 /* that one entry is put in; a longer one is `wide` */

typedef MR_VEC(entry *) entry_list;

typedef struct {
    int64_t period;       /* 0: extents */
    uint64_t begin, line; /* where the line begins, and its length in bytes */
    unsigned shift;       /* a cell has 1 << shift bytes */
    uint32_t cell_count;
    entry_list *cells;
    entry_list wide;
    uint32_t count, built_for;
    uint32_t beyond; /* entries that were put off the line */
    uint64_t length; /* sum over the entries */
} layer;

struct view_index {
    history *history;
    int count;
    layer layers[MOST_LAYERS]; /* the first has period 0 */
};

static bool layer_open(layer *l, int64_t period, uint64_t line) {
    *l = (layer){.period = period, .line = line ? line : 1, .cell_count = 1};
    while (l->line >> l->shift > 1) l->shift++;
    l->cell_count = (uint32_t)(l->line >> l->shift) + 1;
    l->cells = calloc(l->cell_count, sizeof *l->cells);
    return l->cells != NULL;
}

static void layer_close(layer *l) {
    for (uint32_t i = 0; i < l->cell_count && l->cells; i++) mr_vec_free(&l->cells[i]);
    free(l->cells);
    mr_vec_free(&l->wide);
}

/* Where the view lies on the layer's line: [*from, *from + *length), which may run over the end of a
 * periodic line and begin again. */
static void place(const layer *l, const byte_view *v, uint64_t *from, uint64_t *length) {
    uint64_t period = (uint64_t)l->period;
    if (!period) {
        *from = v->first;
        *length = v->end - v->first;
        return;
    }
    bool fits = v->ndim == 0 || (v->period > 0 && v->period % l->period == 0);
    *from = v->first % period;
    *length = fits && v->run < period ? v->run : period;
}

static layer *layer_for(view_index *index, const byte_view *v) {
    if (v->period <= 0) return &index->layers[0];
    for (int i = 1; i < index->count; i++)
        if (index->layers[i].period == v->period) return &index->layers[i];
    if (index->count == MOST_LAYERS) return &index->layers[0];
    layer *l = &index->layers[index->count];
    if (!layer_open(l, v->period, (uint64_t)v->period)) return NULL;
    index->count++;
    return l;
}

static bool off_line(const layer *l, uint64_t from, uint64_t length) {
    return from < l->begin || from + length > l->begin + l->line;
}

/* The cells of an entry; false: too many, or off the line. */
static bool cells_of(const layer *l, const byte_view *v, uint32_t *first, uint32_t *last) {
    uint64_t from, length;
    place(l, v, &from, &length);
    if (off_line(l, from, length)) return false;
    *first = (uint32_t)((from - l->begin) >> l->shift);
    *last = (uint32_t)((from + length - 1 - l->begin) >> l->shift);
    return *last - *first < MOST_CELLS;
}

static bool put(layer *l, entry *e) {
    uint32_t first, last;
    place(l, &e->view, &e->from, &e->length);
    if (!cells_of(l, &e->view, &first, &last)) return mr_vec_push(&l->wide, e);
    for (uint32_t i = first; i <= last; i++)
        if (!mr_vec_push(&l->cells[i], e)) return false;
    return true;
}

static void take(entry_list *list, const entry *e) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] != e) continue;
        list->items[i] = list->items[--list->count];
        return;
    }
}

/* A line of extents goes from the first byte of the layer's entries to the last. A line that became too short is made
 * twice as long on the side where that happened. So a walk through the storage seldom leaves it. */
static void find_line(view_index *index, layer *l) {
    const history *h = index->history;
    uint64_t begin = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < h->count; i++) {
        const byte_view *v = &h->entries[i]->view;
        if (layer_for(index, v) != l) continue;
        if (v->first < begin) begin = v->first;
        if (v->end > end) end = v->end;
    }
    if (begin >= end) return;
    uint64_t reach = end - begin;
    if (l->beyond && begin < l->begin) begin = begin > reach ? begin - reach : 0;
    if (l->beyond && end > l->begin + l->line)
        end = h->storage->bytes - end > reach ? end + reach : h->storage->bytes;
    l->begin = begin;
    l->line = end - begin;
}

/* Cells as long as a usual entry, and no more of them than a few for each. */
static bool rebuild(view_index *index, layer *l) {
    if (!l->period) find_line(index, l);
    uint64_t usual = l->count ? l->length / l->count : 1;
    uint64_t least = l->line / (4 * (uint64_t)(l->count + 1)) + 1;
    if (usual < least) usual = least;
    layer fresh = {.period = l->period,
                   .begin = l->begin,
                   .line = l->line,
                   .count = l->count,
                   .length = l->length,
                   .built_for = l->count};
    while ((uint64_t)1 << fresh.shift < usual) fresh.shift++;
    fresh.cell_count = (uint32_t)(l->line >> fresh.shift) + 1;
    fresh.cells = calloc(fresh.cell_count, sizeof *fresh.cells);
    if (!fresh.cells) return false;
    layer_close(l);
    *l = fresh;
    history *h = index->history;
    for (uint32_t i = 0; i < h->count; i++)
        if (layer_for(index, &h->entries[i]->view) == l && !put(l, h->entries[i])) return false;
    return true;
}

bool mr_hazard_index_add(view_index *index, entry *e) {
    uint64_t from, length;
    layer *l = layer_for(index, &e->view);
    if (!l) return false;
    place(l, &e->view, &from, &length);
    l->count++;
    l->length += length;
    if (!l->period && off_line(l, from, length)) l->beyond++;
    if (l->count > 2 * l->built_for + 8 || l->beyond > MOST_BEYOND) return rebuild(index, l);
    return put(l, e);
}

void mr_hazard_index_remove(view_index *index, entry *e) {
    uint64_t from, length;
    uint32_t first, last;
    layer *l = layer_for(index, &e->view);
    if (!l) return;
    place(l, &e->view, &from, &length);
    l->count--;
    l->length -= length;
    if (!cells_of(l, &e->view, &first, &last)) {
        take(&l->wide, e);
        return;
    }
    for (uint32_t i = first; i <= last; i++) take(&l->cells[i], e);
}

view_index *mr_hazard_index_create(history *h) {
    view_index *index = calloc(1, sizeof *index);
    if (!index) return NULL;
    index->history = h;
    index->count = 1;
    bool done = layer_open(&index->layers[0], 0, h->storage->bytes);
    for (uint32_t i = 0; i < h->count && done; i++) {
        layer *l = layer_for(index, &h->entries[i]->view);
        uint64_t from, length;
        done = l != NULL;
        if (!done) break;
        place(l, &h->entries[i]->view, &from, &length);
        l->count++;
        l->length += length;
    }
    for (int i = 0; i < index->count && done; i++) done = rebuild(index, &index->layers[i]);
    if (done) return index;
    mr_hazard_index_destroy(index);
    return NULL;
}

void mr_hazard_index_destroy(view_index *index) {
    if (!index) return;
    for (int i = 0; i < index->count; i++) layer_close(&index->layers[i]);
    free(index);
}

/* ---- searching */

static void gather(checker *c, const entry_list *list, uint64_t from, uint64_t end,
                   const byte_view *v) {
    for (size_t i = 0; i < list->count; i++) {
        entry *e = list->items[i];
        if (e->from >= end || from >= e->from + e->length || e->stamp == c->histories.stamp)
            continue;
        e->stamp = c->histories.stamp;
        if (e->view.first >= v->end || v->first >= e->view.end) continue;
        if (!mr_vec_push(&c->histories.found, e)) c->out_of_memory = true;
    }
}

static void gather_range(checker *c, const layer *l, uint64_t from, uint64_t end,
                         const byte_view *v) {
    uint64_t low = from > l->begin ? from - l->begin : 0;
    uint64_t high = end < l->begin + l->line ? end : l->begin + l->line; /* of the line */
    if (high <= l->begin + low) return;
    uint64_t last = (high - 1 - l->begin) >> l->shift;
    if (MR_BROKEN(INDEX)) last = low >> l->shift;
    for (uint64_t i = low >> l->shift; i <= last; i++) gather(c, &l->cells[i], from, end, v);
}

void mr_hazard_index_search(checker *c, view_index *index, const byte_view *v) {
    c->histories.stamp++;
    for (int i = 0; i < index->count; i++) {
        const layer *l = &index->layers[i];
        if (!l->count) continue;
        uint64_t from, length;
        place(l, v, &from, &length);
        gather(c, &l->wide, 0, UINT64_MAX, v);
        uint64_t end = from + length;
        if (l->period && end > l->line) {
            gather_range(c, l, 0, length < l->line ? end - l->line : l->line, v);
            end = l->line;
        }
        gather_range(c, l, from, end, v);
    }
}
