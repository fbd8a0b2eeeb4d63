/* Programs and players for other folders: the request and the objects of an item, and whether two programs make the
 * same requests. For the search over schedules, which derives the order of the items itself. */
#include <stdio.h>
#include <string.h>

#include "program/player.h"

/* ---- items */

static mr_program_item look_at(const mr_player *p, const item *it) {
    mr_program_item out = mr_program_item_of(p->program, it);
    out.command = command_at(p, it);
    if (it->stream != NO_SLOT) out.stream_object = p->stream_at[it->stream];
    out.operands = &p->operands[it->first_operand];
    return out;
}

mr_program_item mr_player_item_at(const mr_player *p, size_t i) {
    return look_at(p, &p->program->items.items[i]);
}

mr_program_item mr_player_inner_at(const mr_player *p, uint32_t i) {
    return look_at(p, &p->program->inner.items[i]);
}

size_t mr_player_item_count(const mr_player *p) {
    return p->program->items.count;
}

size_t mr_player_stream_count(const mr_player *p) {
    return p->program->streams.count;
}

size_t mr_player_event_count(const mr_player *p) {
    return p->program->events.count;
}

size_t mr_player_storage_count(const mr_player *p) {
    return p->program->storages.count;
}

const mr_stream *mr_player_stream(const mr_player *p, uint32_t slot) {
    return p->stream_at[slot];
}

/* ---- bytes */

uint32_t mr_program_storage_slot(const mr_program *program, uint64_t id) {
    for (size_t i = program->storages.count; i-- > 0;)
        if (program->storages.items[i].id == id) return (uint32_t)i;
    return NO_SLOT;
}

void mr_program_read(const mr_tensor *view, mr_buffer *out) {
    size_t size = mr_value_view_bytes(view), before = out->size;
    mr_buffer_reserve(out, size);
    if (out->failed) return;
    mr_value_gather(view, out->data + before);
    out->size = before + size;
}

bool mr_player_read(const mr_player *p, uint32_t slot, const mr_tensor *view, mr_buffer *out) {
    const mr_storage *storage = mr_player_storage(p, slot);
    if (!storage) return false;
    mr_tensor here = *view;
    here.storage = (mr_storage *)storage; /* which is only read */
    mr_program_read(&here, out);
    return true;
}

/* ---- two programs */

static bool same_text(const mr_program *a, uint32_t at, const mr_program *b, uint32_t bt) {
    if (at == NO_SLOT || bt == NO_SLOT) return at == bt;
    return strcmp(a->texts.items[at], b->texts.items[bt]) == 0;
}

static bool same_site(mr_site a, mr_site b) {
    return a.line == b.line && (a.file == b.file || (a.file && b.file && !strcmp(a.file, b.file)));
}

static bool same_view(const mr_program *a, uint32_t at, const mr_program *b, uint32_t bt) {
    const mr_tensor *x = &a->views.items[at].view, *y = &b->views.items[bt].view;
    size_t dims = x->ndim * sizeof *x->shape;
    return a->views.items[at].storage == b->views.items[bt].storage && x->dtype == y->dtype &&
           x->ndim == y->ndim && x->offset == y->offset && !memcmp(x->shape, y->shape, dims) &&
           !memcmp(x->stride, y->stride, dims);
}

static bool same_operands(const mr_program *a, const item *x, const mr_program *b, const item *y) {
    if (x->operand_count != y->operand_count) return false;
    for (uint32_t i = 0; i < x->operand_count; i++) {
        const item_operand *o = &a->operands.items[x->first_operand + i];
        const item_operand *q = &b->operands.items[y->first_operand + i];
        if (o->access != q->access || !same_view(a, o->view, b, q->view)) return false;
    }
    return true;
}

static bool same_params(const mr_program *a, const item *x, const mr_program *b, const item *y) {
    if (!x->row) return true;
    const mr_params *p = &a->params.items[x->params], *q = &b->params.items[y->params];
    mr_params_difference found;
    return !mr_params_differ(x->row, p, q, &found) && !mr_params_draw_differently(x->row, p, q);
}

static bool same_blob(const mr_program *a, blob x, const mr_program *b, blob y) {
    if (x.size != y.size || x.zero != y.zero) return false;
    return x.zero || !x.size || !memcmp(a->bytes.items + x.at, b->bytes.items + y.at, x.size);
}

/* Whether both wrote the same host bytes: a function may also write a value of the clock. */
static bool writes_same(const mr_program *a, const item *x, const mr_program *b, const item *y) {
    if (x->kind != MR_COMMAND_HOST_ACCESS || x->row) return true;
    for (uint32_t i = 0; i < x->operand_count; i++)
        if (a->operands.items[x->first_operand + i].access & MR_WRITE)
            return same_blob(a, x->bytes, b, y->bytes);
    return true;
}

/* The event to which a time is asked for, the peer; in other items `other` is not an object of the caller's. */
static bool same_second_object(const item *x, const item *y) {
    return !mr_kind_is(x->kind, MR_TRAIT_TWO) || x->other == y->other;
}

static const char *what_differs(const mr_program *a, const item *x, const mr_program *b,
                                const item *y) {
    if (x->kind != y->kind || !same_site(x->where, y->where)) return "another call";
    if (!same_text(a, x->own_name, b, y->own_name) || x->row != y->row) return "another operation";
    if (x->stream != y->stream) return "another stream";
    if (!same_operands(a, x, b, y)) return "other tensors";
    if (x->object != y->object || !same_second_object(x, y)) return "another object";
    if (!same_params(a, x, b, y)) return "other numbers";
    if (x->row && x->arguments.size != y->arguments.size) return "other arguments";
    if (!writes_same(a, x, b, y)) return "other values written by the host";
    return NULL;
}

static const char *place_of(const item *it, char *out, size_t size) {
    if (!it) return "nothing";
    const char *name = mr_command_kinds[it->kind].name;
    if (it->where.file) snprintf(out, size, "%s at %.80s:%d", name, it->where.file, it->where.line);
    else
        snprintf(out, size, "%s that millrace made itself",
                 name); /* such as a graph's first launch makes */
    return out;
}

static void describe_difference(const item *x, const item *y, const char *what, char *text,
                                size_t size) {
    char first[120], second[120];
    place_of(x, first, sizeof first);
    snprintf(text, size, "%s: %s, where it was %s", what, place_of(y, second, sizeof second),
             x ? first : "nothing");
}

bool mr_program_same(const mr_program *a, const mr_program *b, size_t until, char *text,
                     size_t size) {
    for (size_t i = 0; i < until; i++) {
        const item *x = i < a->items.count ? &a->items.items[i] : NULL;
        const item *y = i < b->items.count ? &b->items.items[i] : NULL;
        if (!x && !y) return true;
        const char *what = x && y ? what_differs(a, x, b, y) : "a call more or less";
        if (!what) continue;
        describe_difference(x, y, what, text, size);
        return false;
    }
    return true;
}
