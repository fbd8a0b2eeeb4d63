/* Makes reports of findings inside launches of the user's kernels: src/ptx finds races and reads of unwritten bytes
 * while the virtual GPU runs them. Both sides are the same command; their places are lines of the kernel's source. */
#include "hazard/explain.h"

#include "base/text.h"
#include "base/buffer.h"
#include "model/backend.h"
#include "ops/kernel_memory.h"
#include "ops/op.h"

#include <stdio.h>
#include <string.h>

static void fill_side(const checker *c, const mr_command *command, const actor *a, uint8_t access,
                      mr_site where, mr_hazard_side *side) {
    mr_text_copy(side->op, sizeof side->op, command->name);
    side->access = access;
    side->where = where;
    side->seq = command->seq;
    side->rank = mr_hazard_log_rank(c, command->seq, 0);
    mr_hazard_stream_text(c, a, side->stream, sizeof side->stream);
}

static void tell_watcher(const checker *c, const mr_command *command,
                         const mr_kernel_finding *finding, mr_hazard_kind kind) {
    if (!c->watcher.found) return;
    mr_hazard_found found = {.kind = kind,
                             .first_seq = command->seq,
                             .second_seq = command->seq,
                             .first_where = finding->first.where,
                             .second_where = finding->second.where,
                             .bytes_first = finding->first_byte,
                             .bytes_last = finding->last_byte};
    c->watcher.found(c->watcher.context, &found);
}

/* The column of the write, which each race has. So the read and the write of `x += 1` make one report. */
static uint32_t column_of_write(const mr_kernel_finding *finding) {
    bool first = finding->first_access & MR_WRITE, second = finding->second_access & MR_WRITE;
    uint32_t a = finding->first.column, b = finding->second.column;
    return first && second ? (a < b ? a : b) : first ? a : b;
}

/* Distinguishes two findings at the same pair of lines, as in a kernel on one line. The instruction would not do: a
 * compiler may make several from one statement. For a tensor it is the number of the operand, the same in each
 * launch. */
static uint64_t within_lines(const mr_command *command, const mr_kernel_finding *finding) {
    const uint64_t prime = 1099511628211u;
    uint64_t h = column_of_write(finding);
    for (const char *at = finding->variable; at && *at; at++) h = (h ^ (unsigned char)*at) * prime;
    for (uint32_t i = 0; finding->storage && i < command->operand_count; i++)
        if (command->operands[i].tensor->storage == finding->storage) return h * prime + i + 1;
    return h;
}

static void fill_tensor(checker *c, const mr_kernel_finding *finding, mr_hazard_report *draft) {
    if (finding->storage)
        mr_hazard_storage_text(c, finding->storage, draft->tensor, sizeof draft->tensor);
    else
        mr_text_copy(draft->tensor, sizeof draft->tensor,
                     finding->kind == MR_FINDING_RACE || finding->variable
                         ? "shared memory"
                         : "memory of the kernel");
}

static void put_replaced(mr_buffer *out, const char *text, const char *old, const char *new) {
    const char *at;
    for (; *old && (at = strstr(text, old)) != NULL; text = at + strlen(old)) {
        mr_buffer_add(out, text, (size_t)(at - text));
        mr_buffer_puts(out, new);
    }
    mr_buffer_puts(out, text);
}

/* The sentence comes from src/ptx, which knows no variables of the script: the tensor is named as in the title, and
 * files as everywhere, without the script's folder. */
static void put_why(const checker *c, const mr_kernel_finding *finding, mr_hazard_report *draft) {
    char described[200] = "", quoted[sizeof draft->tensor + 2], folder[PLACE_SIZE] = "";
    mr_buffer named = {0}, shown = {0};
    if (finding->storage && !finding->storage->name)
        mr_kernel_describe_storage(finding->storage, described, sizeof described);
    mr_hazard_folder(c, folder, sizeof folder);
    bool has_name = strchr(draft->tensor, ' ') == NULL;
    snprintf(quoted, sizeof quoted, has_name ? "`%s`" : "%s", draft->tensor);
    put_replaced(&named, finding->why, described, quoted);
    put_replaced(&shown, named.data ? named.data : finding->why, folder, "");
    mr_text_copy(draft->why, sizeof draft->why, shown.data ? shown.data : finding->why);
    mr_buffer_free(&named);
    mr_buffer_free(&shown);
}

static void draft_race(checker *c, const mr_command *command, const actor *a,
                       const mr_kernel_finding *finding, mr_hazard_report *draft) {
    draft->kind = MR_HAZARD_RACE_IN_KERNEL;
    draft->reason = MR_HAZARD_BECAUSE_THREADS_NOT_ORDERED;
    fill_side(c, command, a, finding->first_access, finding->first.where, &draft->first);
}

/* The first side is where the memory comes from. Shared and local memory come from the launch itself. */
static void draft_unset_read(checker *c, const mr_command *command, const actor *a,
                             const mr_kernel_finding *finding, mr_hazard_report *draft) {
    const mr_storage *s = finding->storage;
    draft->kind = MR_HAZARD_UNINITIALISED_READ;
    draft->reason = MR_HAZARD_BECAUSE_NEVER_WRITTEN;
    fill_side(c, command, a, 0, s ? s->made : finding->first.where, &draft->first);
    draft->first.allocates = true;
    if (s) mr_text_copy(draft->first.op, sizeof draft->first.op, "alloc");
}

void mr_hazard_found_in_kernel(mr_observer *observer, const mr_command *command,
                               const mr_kernel_finding *finding) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    mr_hazard_report draft;
    bool is_new;
    if (c->mode == MR_HAZARD_OFF) return;
    mr_claims_found(&c->totals.claims, command, finding);
    if (finding->kind == MR_FINDING_NOT_LOOKED) {
        mr_hazard_before_drop(c, command->seq);
        mr_hazard_touched_unknown(c, command->seq);
        return;
    }
    const actor *a = mr_hazard_actor_of(c, command->stream);
    if (!a || finding->kind == MR_FINDING_STRAYED || finding->kind == MR_FINDING_ORDER) return;
    memset(&draft, 0, sizeof draft);
    if (finding->kind == MR_FINDING_RACE) draft_race(c, command, a, finding, &draft);
    else draft_unset_read(c, command, a, finding, &draft);
    tell_watcher(c, command, finding, draft.kind);
    fill_side(c, command, a, finding->second_access, finding->second.where, &draft.second);
    mr_hazard_add_rank(&draft, draft.second.rank);
    fill_tensor(c, finding, &draft);
    draft.within_lines = within_lines(command, finding);
    draft.bytes_first = finding->first_byte;
    draft.bytes_last = finding->last_byte;
    put_why(c, finding, &draft);
    mr_text_copy(draft.advice, sizeof draft.advice, finding->advice);
    const mr_hazard_report *report = mr_hazard_report_add(c, &draft, &is_new);
    if (!report || !is_new) return;
    /* The launch was accepted long ago and cannot be refused, so mode error writes the report as mode warn does. */
    bool writes = c->mode == MR_HAZARD_WARN || c->mode == MR_HAZARD_ERROR;
    if (writes && c->hooks.write) c->hooks.write(c->hooks.context, report, MR_HAZARD_NEWS_REPORT);
}
