/* Sequences of submissions: see sequence.h. */
#include "graph/sequence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "ops/params.h"
#include "tensor/tensor.h"

/* ---- entries */

static void hold(const submitted *entry) {
    if (entry->storage) mr_storage_add_handle(entry->storage);
    for (uint32_t i = 0; entry->command && i < entry->command->operand_count; i++)
        mr_storage_add_handle(entry->command->operands[i].tensor->storage);
}

void mr_sequence_let_go(submitted *entry) {
    if (!entry->held) return;
    entry->held = false;
    if (entry->storage) mr_storage_drop_handle(entry->storage);
    for (uint32_t i = 0; entry->command && i < entry->command->operand_count; i++)
        mr_storage_drop_handle(entry->command->operands[i].tensor->storage);
}

static bool add(sequence *s, submitted entry) {
    if (!mr_vec_push(&s->list, entry)) return false;
    if (entry.command) mr_command_retain(entry.command);
    if (entry.event) mr_event_retain(entry.event);
    if (entry.storage) mr_storage_retain(entry.storage);
    mr_stream_retain(entry.stream);
    if (entry.held) hold(&entry);
    return true;
}

bool mr_sequence_add_work(sequence *s, mr_command *command, bool held) {
    return add(s, (submitted){.kind = SUBMITTED_WORK,
                              .held = held,
                              .command = command,
                              .stream = command->stream,
                              .where = command->where});
}

bool mr_sequence_add_record(sequence *s, mr_event *event, mr_stream *stream, mr_site where,
                            bool held) {
    return add(s, (submitted){.kind = SUBMITTED_RECORD,
                              .event = held ? event : NULL,
                              .record_seq = held ? 0 : event->record_seq,
                              .stream = stream,
                              .where = where});
}

bool mr_sequence_add_wait(sequence *s, uint32_t record, mr_stream *stream, mr_site where) {
    return add(s,
               (submitted){.kind = SUBMITTED_WAIT, .of = record, .stream = stream, .where = where});
}

bool mr_sequence_add_alloc(sequence *s, mr_storage *storage, mr_stream *stream, mr_site where,
                           bool held) {
    if (!mr_vec_push(&s->allocated, storage->id)) return false;
    submitted entry = {.kind = SUBMITTED_ALLOC,
                       .held = held,
                       .of = (uint32_t)s->allocated.count - 1,
                       .storage = storage,
                       .stream = stream,
                       .where = where};
    if (add(s, entry)) return true;
    s->allocated.count--;
    return false;
}

void mr_sequence_drop_last(sequence *s) {
    submitted entry = mr_vec_pop(&s->list);
    mr_sequence_let_go(&entry);
    mr_command_release(entry.command);
    mr_event_release(entry.event);
    mr_event_release(entry.stand_in);
    mr_storage_release(entry.storage);
    mr_stream_release(entry.stream);
}

void mr_sequence_clear(sequence *s) {
    while (s->list.count) mr_sequence_drop_last(s);
    mr_vec_free(&s->list);
    mr_vec_free(&s->allocated);
    *s = (sequence){0};
}

/* ---- texts */

static const char *name_of(const submitted *entry) {
    static const char *const names[] = {
        [SUBMITTED_RECORD] = "record", [SUBMITTED_WAIT] = "wait", [SUBMITTED_ALLOC] = "alloc"};
    return entry->kind == SUBMITTED_WORK ? entry->command->name : names[entry->kind];
}

typedef struct {
    char text[140];
} place;

static place place_of(const submitted *entry) {
    place p;
    char name[44];
    mr_text_format(name, sizeof name, "%s", name_of(entry));
    snprintf(p.text, sizeof p.text, "`%s` at %.80s:%d", name,
             entry->where.file ? entry->where.file : "?", entry->where.line);
    return p;
}

/* The property `what` differs: it was `was` and is `is`. */
typedef struct {
    char what[40], was[170], is[170];
} difference;

static bool differs(difference *d, const char *what) {
    snprintf(d->what, sizeof d->what, "%s", what);
    return false;
}

static bool same_stream(const mr_stream *x, const mr_stream *y, difference *d) {
    if (x == y) return true;
    mr_stream_describe(x, d->was, sizeof d->was);
    mr_stream_describe(y, d->is, sizeof d->is);
    return differs(d, "the stream");
}

/* ---- operands */

/* The number of the allocation in the call; UINT32_MAX: it was there before. */
static uint32_t allocation_of(const sequence *s, const mr_storage *storage) {
    size_t low = 0, high = s->allocated.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->allocated.items[middle] < storage->id) low = middle + 1;
        else high = middle;
    }
    bool found = low < s->allocated.count && s->allocated.items[low] == storage->id;
    return found ? (uint32_t)low : UINT32_MAX;
}

static bool same_view(const mr_tensor *x, const mr_tensor *y) {
    if (x->dtype != y->dtype || x->ndim != y->ndim || x->offset != y->offset) return false;
    size_t size = (size_t)x->ndim * sizeof *x->shape;
    return memcmp(x->shape, y->shape, size) == 0 && memcmp(x->stride, y->stride, size) == 0;
}

static bool same_operand(const sequence *before, const sequence *now, const mr_operand *x,
                         const mr_operand *y) {
    uint32_t was = allocation_of(before, x->tensor->storage);
    uint32_t is = allocation_of(now, y->tensor->storage);
    if (was != is || x->access != y->access) return false;
    if (was == UINT32_MAX && x->tensor->storage->id != y->tensor->storage->id) return false;
    return same_view(x->tensor, y->tensor);
}

static void describe(const mr_tensor *t, char *out, size_t size) {
    mr_tensor_describe(t, out, size);
}

static bool same_operands(const sequence *before, const sequence *now, const mr_command *x,
                          const mr_command *y, difference *d) {
    for (uint32_t k = 0; k < x->operand_count; k++) {
        char what[40];
        if (same_operand(before, now, &x->operands[k], &y->operands[k])) continue;
        describe(x->operands[k].tensor, d->was, sizeof d->was);
        describe(y->operands[k].tensor, d->is, sizeof d->is);
        snprintf(what, sizeof what, "operand %u", k + 1);
        return differs(d, what);
    }
    return true;
}

/* ---- numbers */

static bool number(difference *d, double was, double is) {
    mr_number_format(d->was, sizeof d->was, "%.14g", was);
    mr_number_format(d->is, sizeof d->is, "%.14g", is);
    return differs(d, "a number");
}

static bool same_params(const mr_command *x, const mr_command *y, difference *d) {
    mr_params was = mr_params_of(x), is = mr_params_of(y);
    mr_params_difference found;
    if (!mr_params_differ(x->u.op.row, &was, &is, &found)) return true;
    return found.is_number ? number(d, found.was, found.is) : differs(d, "an argument");
}

/* Random operations are numbered from the beginning of each call; the code that adds them checks that. */
static bool same_op(const mr_command *x, const mr_command *y, difference *d) {
    if (!same_params(x, y, d)) return false;
    size_t size = x->u.op.argument_bytes;
    if (size != y->u.op.argument_bytes ||
        (size && memcmp(x->u.op.arguments, y->u.op.arguments, size) != 0))
        return differs(d, "an argument");
    return true;
}

static bool same_work(const sequence *before, const sequence *now, const mr_command *x,
                      const mr_command *y, difference *d) {
    if (x->kind != y->kind || x->operand_count != y->operand_count || strcmp(x->name, y->name) != 0)
        return differs(d, "");
    if (x->kind == MR_COMMAND_OP && x->u.op.row != y->u.op.row) return differs(d, "the operation");
    if (!same_stream(x->stream, y->stream, d) || !same_operands(before, now, x, y, d)) return false;
    switch (x->kind) {
    case MR_COMMAND_OP: return same_op(x, y, d);
    case MR_COMMAND_COPY:
        return x->u.copy.direction == y->u.copy.direction || differs(d, "the direction");
    case MR_COMMAND_HOST_FUNCTION: /* no graph does them: auto_record.c has objected */
    case MR_COMMAND_FAULT:
    case MR_COMMAND_RECORD: /* no work, so no command is kept */
    case MR_COMMAND_WAIT:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return true;
}

/* ---- entries */

static void explain(const submitted *x, const submitted *y, size_t i, const difference *d,
                    char *text, size_t size) {
    if (!d->what[0])
        snprintf(text, size, "submission %zu was %s, and is %s", i + 1, place_of(x).text,
                 place_of(y).text);
    else if (!d->was[0])
        snprintf(text, size, "submission %zu, %s, differs in %s (%s the time before)", i + 1,
                 place_of(y).text, d->what, place_of(x).text);
    else
        snprintf(text, size, "submission %zu, %s, differs in %s: it was %s (%s), and is %s", i + 1,
                 place_of(y).text, d->what, d->was, place_of(x).text, d->is);
}

static bool same_bytes(uint64_t was, uint64_t is, difference *d) {
    if (was == is) return true;
    snprintf(d->was, sizeof d->was, "%" PRIu64, was);
    snprintf(d->is, sizeof d->is, "%" PRIu64, is);
    return differs(d, "its bytes");
}

static bool compare(const sequence *before, const sequence *now, const submitted *x,
                    const submitted *y, difference *d) {
    if (x->kind != y->kind) return differs(d, "");
    if (x->kind == SUBMITTED_WORK) return same_work(before, now, x->command, y->command, d);
    if (!same_stream(x->stream, y->stream, d)) return false;
    if (x->kind == SUBMITTED_ALLOC) return same_bytes(x->storage->bytes, y->storage->bytes, d);
    return x->kind == SUBMITTED_RECORD || x->of == y->of || differs(d, "its record");
}

bool mr_sequence_same(const sequence *before, const sequence *now, size_t i, char *text,
                      size_t size) {
    const submitted *x = &before->list.items[i], *y = &now->list.items[i];
    difference d = {0};
    if (compare(before, now, x, y, &d)) return true;
    explain(x, y, i, &d, text, size);
    return false;
}

bool mr_sequence_same_alloc(const sequence *before, const sequence *now, uint64_t bytes,
                            const mr_stream *stream, mr_site where, char *text, size_t size) {
    size_t i = now->list.count;
    submitted y = {.kind = SUBMITTED_ALLOC, .stream = (mr_stream *)stream, .where = where};
    difference d = {0};
    if (i >= before->list.count) {
        snprintf(text, size, "it submits more than the %zu things of the time before: %s", i,
                 place_of(&y).text);
        return false;
    }
    const submitted *x = &before->list.items[i];
    if (x->kind != SUBMITTED_ALLOC) differs(&d, "");
    else if (same_stream(x->stream, stream, &d) && same_bytes(x->storage->bytes, bytes, &d))
        return true;
    explain(x, &y, i, &d, text, size);
    return false;
}

bool mr_sequence_same_end(const sequence *before, const sequence *now, char *text, size_t size) {
    size_t was = before->list.count, is = now->list.count;
    if (was == is) return true;
    if (is < was)
        snprintf(text, size,
                 "it submits %zu things, and the time before it submitted %zu: next came "
                 "%s",
                 is, was, place_of(&before->list.items[is]).text);
    else
        snprintf(text, size, "it submits more than the %zu things of the time before: %s", was,
                 place_of(&now->list.items[was]).text);
    return false;
}
