/* Marks of a launch (kernel_touched.h): a byte for each byte of a storage, made into ranges when the launch is done. */
#include "ops/kernel/touched.h"

#include <stdlib.h>
#include <string.h>

#include "model/observer.h"

#define MOST_BYTES  ((uint64_t)64 << 20) /* of the storages of one launch */
#define MOST_RANGES ((size_t)1 << 16)    /* of one storage */

_Static_assert((int)PTX_MARK_READ == (int)MR_READ && (int)PTX_MARK_WRITE == (int)MR_WRITE &&
                   (int)PTX_MARK_UPDATE == (int)MR_ATOMIC,
               "a mark is an access");

typedef struct {
    const mr_storage *storage;
    _Atomic uint8_t *bytes; /* NULL: not known */
} marked_storage;

struct mr_touched_marks {
    MR_VEC(marked_storage) storages;
};

/* ---- before the launch */

static bool is_marked(const mr_touched_marks *m, const mr_storage *storage) {
    for (size_t i = 0; i < m->storages.count; i++)
        if (m->storages.items[i].storage == storage) return true;
    return false;
}

/* The watch is not told of accesses to constant memory. */
static bool is_constant(const mr_command *command, const mr_storage *storage) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    const ptx_tree *tree = mr_ptx_module_tree(a->code->ptx);
    const mr_kernel_address *variables = a->addresses + a->pointer_count;
    for (uint32_t i = 0; i < a->variable_count; i++)
        if (command->operands[variables[i].operand].tensor->storage == storage &&
            tree->variables[variables[i].at].space == PTX_CONST)
            return true;
    return false;
}

static bool mark_storage(mr_touched_marks *m, mr_ptx_watch *watch, const mr_storage *storage,
                         const mr_device *device, bool is_wanted) {
    marked_storage s = {storage, is_wanted ? calloc(storage->bytes, 1) : NULL};
    if (s.bytes && !mr_ptx_watch_mark(watch, storage->address, storage->bytes,
                                      mr_storage_is_shared(storage, device), s.bytes)) {
        free((void *)s.bytes);
        s.bytes = NULL;
    }
    if (mr_vec_push(&m->storages, s)) return true;
    if (s.bytes) mr_ptx_watch_unmark(watch);
    free((void *)s.bytes);
    return false;
}

mr_touched_marks *mr_touched_marks_create(const mr_command *command, mr_ptx_watch *watch) {
    mr_touched_marks *m = NULL;
    uint64_t left = MOST_BYTES;
    if (!mr_observers_want_touched(command->machine)) return NULL;
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_storage *storage = command->operands[i].tensor->storage;
        if (!(command->operands[i].access & MR_ASSUMED) || !storage->bytes) continue;
        if (!m && !(m = calloc(1, sizeof *m))) return NULL;
        if (is_marked(m, storage)) continue;
        bool is_wanted = storage->bytes <= left && !is_constant(command, storage);
        if (is_wanted) left -= storage->bytes;
        if (!mark_storage(m, watch, storage, command->stream->device, is_wanted)) break;
    }
    return m;
}

void mr_touched_marks_destroy(mr_touched_marks *m) {
    if (!m) return;
    for (size_t i = 0; i < m->storages.count; i++) free((void *)m->storages.items[i].bytes);
    mr_vec_free(&m->storages);
    free(m);
}

/* ---- after it */

/* The first byte from `at` on that has a mark, or `end`. */
static uint64_t next_marked(const uint8_t *marks, uint64_t at, uint64_t end) {
    static const uint8_t none[64];
    while (at + sizeof none <= end && memcmp(marks + at, none, sizeof none) == 0) at += sizeof none;
    while (at < end && !marks[at]) at++;
    return at;
}

static void tell_storage(const marked_storage *s, const mr_command *command, bool is_done) {
    const uint8_t *marks = (const uint8_t *)s->bytes; /* the launch is over */
    uint64_t end = s->storage->bytes;
    MR_VEC(mr_touched_range) ranges = {0};
    bool is_known = marks && is_done;
    for (uint64_t at = 0; is_known && (at = next_marked(marks, at, end)) < end;) {
        mr_touched_range range = {at, at + 1, marks[at]};
        while (range.end < end && marks[range.end] == range.access) range.end++;
        at = range.end;
        is_known = ranges.count < MOST_RANGES && mr_vec_push(&ranges, range);
    }
    mr_kernel_touched touched = {s->storage, is_known, ranges.items, is_known ? ranges.count : 0};
    mr_observers_tell_touched(command->machine, command, &touched);
    mr_vec_free(&ranges);
}

void mr_touched_marks_tell(const mr_touched_marks *m, const mr_command *command, bool is_done) {
    for (size_t i = 0; m && i < m->storages.count; i++)
        tell_storage(&m->storages.items[i], command, is_done);
}
