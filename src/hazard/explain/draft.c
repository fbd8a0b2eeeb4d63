/* From an unordered pair to the draft of its report: both sides, the bytes that they share, why they are unordered, and
 * the fix. */
#include "hazard/explain.h"

#include "base/text.h"
#include "ops/ids.h"
#include "ops/kernel.h"

#include <stdio.h>
#include <string.h>

static void fill_side(const checker *c, mr_hazard_side *side, const actor *a, uint8_t access,
                      const char *op, mr_site where, uint64_t seq) {
    mr_text_copy(side->op, sizeof side->op, op);
    side->access = access & MR_ACCESSES;
    side->allocates = !access && strcmp(op, "alloc") == 0;
    side->assumed = (uint8_t)mr_access_assumed(access);
    side->atomic = access & MR_ATOMIC;
    side->host = a == &c->order.host_actor;
    const log_line *line = mr_hazard_log_find(c, seq);
    side->where = where;
    if (line) side->launched = line->launched;
    side->seq = seq;
    mr_hazard_stream_text(c, a, side->stream, sizeof side->stream);
}

typedef struct {
    uint64_t first, last;
} byte_range;

static bool is_kernel(const mr_command *command) {
    return command->kind == MR_COMMAND_OP && command->u.op.row &&
           command->u.op.row->id == MR_OP_kernel;
}

/* The second's view covers only a part of the memory, and its form is not that of a kernel's argument. */
static bool is_part(const found_pair *pair, const char *signature) {
    char own[80];
    const mr_tensor *t = pair->tensor;
    if (!t || strcmp(mr_tensor_signature(t, own, sizeof own), signature) != 0) return false;
    if (pair->command && is_kernel(pair->command)) return false;
    return (uint64_t)t->numel * mr_dtype_size(t->dtype) < t->storage->bytes;
}

/* A range that contains all bytes that both touch. */
static byte_range shared_range(const found_pair *pair) {
    const byte_view *a = pair->first_view, *b = pair->second_view ? pair->second_view : a;
    uint64_t bytes = pair->history->storage->bytes;
    if (!a) return (byte_range){0, bytes ? bytes - 1 : 0};
    return (byte_range){a->first > b->first ? a->first : b->first,
                        (a->end < b->end ? a->end : b->end) - 1};
}

static void fill_bytes(const found_pair *pair, mr_hazard_report *report) {
    const byte_view *a = pair->first_view, *b = pair->second_view ? pair->second_view : a;
    byte_range range = shared_range(pair);
    report->bytes_first = range.first;
    report->bytes_last = range.last;
    if (a)
        report->bytes_shared = pair->unset_bytes ? pair->unset_bytes : mr_hazard_view_shared(a, b);
}

typedef void tell(void *context, const mr_hazard_found *found);

static void tell_pair(const checker *c, const found_pair *pair, tell *to) {
    if (!to) return;
    byte_range range = shared_range(pair);
    mr_hazard_found found = {.kind = pair->kind,
                             .ahead = pair->only_look,
                             .assumed = (pair->first_access | pair->second_access) & MR_ASSUMED,
                             .first_seq = pair->first_seq,
                             .second_seq = pair->second_seq,
                             .first_where = pair->first_where,
                             .second_where = pair->second_where,
                             .storage = pair->history->storage->id,
                             .bytes_first = range.first,
                             .bytes_last = range.last};
    to(c->watcher.context, &found);
}

void mr_hazard_tell_found(const checker *c, const found_pair *pair) {
    tell_pair(c, pair, c->watcher.found);
}

void mr_hazard_tell_unspecified(const checker *c, const found_pair *pair) {
    tell_pair(c, pair, c->watcher.unspecified);
}

static void say_reused(const found_pair *pair, mr_hazard_report *report) {
    uint64_t reused = pair->history->reused;
    size_t length = strlen(report->why);
    if (pair->first_seq >= reused || pair->second_seq < reused) return;
    mr_text_format(
        report->why + length, sizeof report->why - length,
        " The first uses a result of an earlier call, whose memory mr.graph.auto gives to "
        "this call: let the call wait for the first, or clone() what it uses.");
}

/* The second launch has atomic operations which count as plain accesses here. */
static void say_block_scope(const found_pair *pair, mr_hazard_report *report) {
    uint8_t access = pair->second_access;
    bool updates = access & MR_READ && access & MR_WRITE && !(access & MR_ATOMIC);
    if (!pair->command || !mr_kernel_escapes_of(pair->command) || !updates ||
        !mr_kernel_has_block_atomics(pair->command))
        return;
    size_t used = strlen(report->why);
    mr_text_format(
        report->why + used, sizeof report->why - used,
        " `%s` has atomic operations of block scope (such as atomicAdd_block), which are "
        "atomic only inside one block: for other blocks and launches they are plain "
        "accesses.",
        pair->command->name);
}

void mr_hazard_draft(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    memset(report, 0, sizeof *report);
    report->kind = pair->advisory ? MR_HAZARD_UNSPECIFIED_SYNCHRONY : pair->kind;
    fill_side(c, &report->first, pair->first, pair->first_access, pair->first_op, pair->first_where,
              pair->first_seq);
    fill_side(c, &report->second, pair->second, pair->second_access, pair->second_op,
              pair->second_where, pair->second_seq);
    mr_hazard_outer_places(c, pair, &report->outer_first, &report->outer_second);
    /* A tensor is used by the rank that made it, or by all. */
    report->first.rank = mr_hazard_log_rank(c, pair->first_seq, pair->history->storage->rank);
    report->second.rank = mr_hazard_log_rank(c, pair->second_seq, c->hosts.number);
    mr_hazard_add_rank(report, report->second.rank);
    mr_hazard_add_streams(report, pair->first->id, pair->second->id);
    mr_hazard_tensor_text(c, pair, report->tensor, sizeof report->tensor);
    mr_hazard_signature(pair, report->signature, sizeof report->signature);
    report->is_view = is_part(pair, report->signature);
    fill_bytes(pair, report);
    if (pair->advisory) {
        report->reason = MR_HAZARD_BECAUSE_ADVICE;
        snprintf(report->why, sizeof report->why,
                 "an asynchronous copy of pageable memory may return before it is done: CUDA does "
                 "not specify whether it waits (R23). Pin the memory, or synchronize.");
        return;
    }
    if (mr_hazard_is_of_one_launch(c, pair)) {
        mr_hazard_explain_one_launch(c, pair, report);
    } else {
        found_pair outside;
        mr_hazard_seen_outside(c, pair, &outside);
        mr_hazard_explain(c, &outside, report);
        mr_hazard_see_call(c, &outside);
        mr_hazard_find_fix(c, &outside, report);
        say_reused(pair, report);
    }
    say_block_scope(pair, report);
    for (int i = 0; i < report->fix_count; i++) {
        mr_hazard_fix *fix = &report->fix[i];
        fix->typed = fix->where.file && mr_hazard_is_entry(c, fix->where.file);
        fix->file = mr_hazard_shown(c, fix->where).file;
        snprintf(fix->op, sizeof fix->op, "%s", report->second.op);
        snprintf(fix->stream, sizeof fix->stream, "%s", report->second.stream);
    }
}
