/* The calls of record_stream that are needed. They are not waits. They delay no work, but freed memory is not reused
 * before the named streams have finished with it (R33). So they are counted separately: the waits are judged with all
 * of them in place, and then they are judged with all waits, and with only those that are kept.
 *
 * Rounds of one line are one call. Easiest to break: leaving some out goes on top of an edit that leaves out waits. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "waits/parts.h"

#define MOST_TABLED 8 /* calls whose combinations are all looked at */
#define MOST_LOOKED_AT                                                                             \
    ((uint64_t)10 * 1000 * 1000) /* commands for reasons and replacements: a second or two */

typedef struct {
    wait_judge *judge;
    const bool *kept;   /* by wait */
    const mr_waits *of; /* the waits, for their lines */
    mr_waits_records *calls;
    MR_VEC(size_t) items; /* RECORD_STREAM, in their order */
    uint32_t *call_of;    /* by item of that list */
    uint64_t until;       /* limit for judge->told: then the search for replacements stops */
    bool *gone;           /* by call: left out of the question at hand */
    bool *needed;         /* by call: alone, with all waits */
    bool *matters;        /* by call: it cannot be dropped together with some others */
} finder;

static mr_program_item item_at(const finder *f, size_t i) {
    return mr_program_item_at(f->judge->rounds->program, i);
}

/* ---- the calls */

static bool is_asked_for(const mr_program_item *it) {
    return it->kind == MR_COMMAND_RECORD_STREAM && it->came_true && it->where.file;
}

static size_t call_at(const finder *f, mr_site where) {
    size_t i = 0;
    while (i < f->calls->count && (f->calls->items[i].where.file != where.file ||
                                   f->calls->items[i].where.line != where.line))
        i++;
    return i;
}

static void describe(finder *f, const mr_program_item *it, mr_wait_record *out) {
    mr_buffer text = {0};
    *out = (mr_wait_record){.where = it->where};
    mr_waits_say_storage(f->judge, it->storage, &text);
    mr_text_copy(out->tensor, sizeof out->tensor, text.data ? text.data : "?");
    text.size = 0;
    mr_waits_say_stream(f->judge, it->stream, &text);
    mr_text_copy(out->stream, sizeof out->stream, text.data ? text.data : "?");
    mr_buffer_free(&text);
}

static mr_status find_calls(finder *f) {
    for (size_t i = 0; i < f->judge->rounds->items; i++) {
        mr_program_item it = item_at(f, i);
        bool is_judged = is_asked_for(&it) && mr_waits_is_judged(f->judge->options, i);
        if (is_judged && !mr_vec_push(&f->items, i))
            return mr_no_memory("for the verdicts on record_stream");
    }
    f->calls->items = calloc(f->items.count + 1, sizeof *f->calls->items);
    f->call_of = calloc(f->items.count + 1, sizeof *f->call_of);
    f->gone = calloc(3 * f->items.count + 1, sizeof *f->gone);
    if (!f->calls->items || !f->call_of || !f->gone)
        return mr_no_memory("for the verdicts on record_stream");
    f->needed = f->gone + f->items.count;
    f->matters = f->needed + f->items.count;
    for (size_t k = 0; k < f->items.count; k++) {
        mr_program_item it = item_at(f, f->items.items[k]);
        size_t call = call_at(f, it.where);
        if (call == f->calls->count) describe(f, &it, &f->calls->items[f->calls->count++]);
        f->call_of[k] = (uint32_t)call;
        f->calls->items[call].rounds++;
    }
    return MR_OK;
}

/* ---- questions */

/* Whether the program has a new hazard without the removed calls and without the waits that the judge drops. */
static bool breaks(finder *f) {
    wait_judge *j = f->judge;
    if (!j->status) j->status = mr_waits_edit_drop(j->rounds, j->dropped, &j->edit);
    for (size_t k = 0; k < f->items.count && !j->status; k++)
        j->edit.left_out[f->items.items[k]] = f->gone[f->call_of[k]];
    return mr_waits_judge_edit(j, true);
}

static void all_stay(finder *f) {
    memset(f->gone, 0, f->calls->count * sizeof *f->gone);
}

static void with_all_waits(finder *f) {
    memset(f->judge->dropped, 0, f->judge->rounds->rounds.count * sizeof *f->judge->dropped);
}

/* ---- reasons */

static size_t first_round_of(const finder *f, size_t call) {
    size_t k = 0;
    while (f->call_of[k] != call) k++;
    return f->items.items[k];
}

static size_t find_free(const finder *f, size_t from, uint32_t storage) {
    for (size_t i = from; i < f->judge->rounds->items; i++) {
        mr_program_item it = item_at(f, i);
        if (it.kind == MR_COMMAND_FREE && it.came_true && it.storage == storage) return i;
    }
    return NO_ITEM;
}

static bool uses(const finder *f, size_t item, uint32_t storage) {
    uint32_t count = item_at(f, item).operand_count;
    for (uint32_t k = 0; k < count; k++)
        if (mr_program_operand_at(f->judge->rounds->program, item, k).storage == storage)
            return true;
    return false;
}

/* The last use of the memory by the stream, before the free. */
static size_t find_use(const finder *f, size_t freeing, uint32_t storage, uint32_t stream) {
    for (size_t i = freeing; i-- > 0;) {
        mr_program_item it = item_at(f, i);
        if (it.stream == stream && it.came_true && uses(f, i, storage)) return i;
    }
    return NO_ITEM;
}

/* The allocation that reuses the memory at once if it is not kept: the next fitting one of the freeing stream (R29). */
static size_t find_next_owner(const finder *f, size_t freeing) {
    const mr_program *program = f->judge->rounds->program;
    mr_program_item free_ = item_at(f, freeing);
    uint64_t bytes = mr_program_storage_at(program, free_.storage).bytes;
    for (size_t i = freeing + 1; i < f->judge->rounds->items; i++) {
        mr_program_item it = item_at(f, i);
        if (it.kind == MR_COMMAND_ALLOC && it.came_true && it.stream == free_.stream &&
            mr_program_storage_at(program, it.storage).bytes <= bytes)
            return i;
    }
    return NO_ITEM;
}

static void say_hazard(const finder *f, size_t call, mr_buffer *out) {
    const new_hazard *h = &f->judge->found.items[0];
    mr_site where = f->calls->items[call].where;
    char place[MR_LONGEST_NAME + 16];
    mr_waits_say_hazard(f->judge, h, where, out);
    if (h->second == NO_ITEM || item_at(f, h->second).kind != MR_COMMAND_FREE) return;
    size_t owner = find_next_owner(f, h->second);
    if (owner == NO_ITEM) return;
    mr_buffer_puts(out, "; the memory would then be reused by ");
    mr_waits_say_storage(f->judge, item_at(f, owner).storage, out);
    mr_buffer_printf(out, ", which is made at %s",
                     mr_wait_place(f->judge->options->names, item_at(f, owner).where, where, place,
                                   sizeof place));
}

static void say_redundant(const finder *f, size_t call, mr_buffer *out) {
    size_t at = first_round_of(f, call);
    mr_program_item it = item_at(f, at);
    mr_site where = f->calls->items[call].where;
    const mr_wait_record *c = &f->calls->items[call];
    char place[MR_LONGEST_NAME + 16];
    size_t freeing = find_free(f, at, it.storage);
    size_t use = freeing == NO_ITEM ? NO_ITEM : find_use(f, freeing, it.storage, it.stream);
    if (freeing == NO_ITEM || !item_at(f, freeing).where.file) {
        mr_buffer_printf(out,
                         "%s is not freed by this code: only a free that comes later, as the "
                         "collector's, may need it",
                         c->tensor);
    } else if (use == NO_ITEM) {
        mr_buffer_printf(out, "%s does nothing with %s before the free at %s", c->stream, c->tensor,
                         mr_wait_place(f->judge->options->names, item_at(f, freeing).where, where,
                                       place, sizeof place));
    } else {
        mr_buffer_printf(out, "without it, too, the free at %s",
                         mr_wait_place(f->judge->options->names, item_at(f, freeing).where, where,
                                       place, sizeof place));
        mr_program_item last = item_at(f, use);
        mr_buffer_printf(
            out, " comes after `%s` at %s, the last use of %s by %s", last.name ? last.name : "?",
            mr_wait_place(f->judge->options->names, last.where, where, place, sizeof place),
            c->tensor, c->stream);
    }
}

static bool may_look(const finder *f, mr_site found) {
    return !found.file && f->judge->told < f->until;
}

/* Names a wait or another call without which this one would be needed. False: there is no single one. */
static bool say_partner(finder *f, size_t call, mr_buffer *out) {
    char place[MR_LONGEST_NAME + 16];
    mr_site here = f->calls->items[call].where, there = {0};
    all_stay(f);
    f->gone[call] = true;
    for (size_t w = 0; w < f->judge->rounds->waits && may_look(f, there); w++) {
        mr_waits_judge_drop_wait(f->judge, w);
        if (!f->kept[w] && breaks(f)) there = f->of->waits[w].where;
    }
    with_all_waits(f);
    for (size_t other = 0; other < f->calls->count && may_look(f, there); other++) {
        if (other == call || f->needed[other]) continue;
        f->gone[other] = true;
        if (breaks(f)) there = f->calls->items[other].where;
        f->gone[other] = false;
    }
    if (!there.file || f->judge->status) return false;
    mr_buffer_printf(out, "it can go alone, but not together with %s: ",
                     mr_wait_place(f->judge->options->names, there, here, place, sizeof place));
    say_hazard(f, call, out);
    return true;
}

static void say_together(finder *f, size_t call, mr_buffer *out) {
    if (!say_partner(f, call, out))
        mr_buffer_puts(out, "others order the same work: not all of them can go");
}

static mr_status explain(finder *f, size_t call) {
    mr_wait_record *c = &f->calls->items[call];
    mr_buffer text = {0};
    if (c->because) return MR_OK;
    if (c->verdict == MR_WAIT_IS_TOGETHER) say_together(f, call, &text);
    else say_redundant(f, call, &text);
    c->because = text.failed ? NULL : text.data;
    if (text.failed) mr_buffer_free(&text);
    return c->because ? MR_OK : mr_no_memory("for the verdicts on record_stream");
}

/* ---- alone */

static mr_status ask_alone(finder *f, size_t call) {
    mr_wait_record *c = &f->calls->items[call];
    mr_buffer text = {0};
    with_all_waits(f);
    all_stay(f);
    f->gone[call] = true;
    f->needed[call] = breaks(f);
    if (!f->needed[call] || f->judge->status) return MR_OK;
    mr_buffer_puts(&text, "without it, ");
    say_hazard(f, call, &text);
    if (text.failed) mr_buffer_free(&text);
    c->because = text.data;
    return c->because ? MR_OK : mr_no_memory("for the verdicts on record_stream");
}

/* ---- calls that matter together, with the waits that the judge does not drop */

typedef MR_VEC(uint32_t) call_list;

static void leave_out(finder *f, const call_list *open, size_t set) {
    all_stay(f);
    for (size_t i = 0; i < open->count; i++) f->gone[open->items[i]] = set >> i & 1;
}

/* All combinations. Sets are asked about in ascending order, so the subsets of one have been before. */
static mr_status look_at_all(finder *f, const call_list *open) {
    size_t sets = (size_t)1 << open->count;
    bool *can_go = calloc(sets, sizeof *can_go);
    if (!can_go) return mr_no_memory("for the verdicts on record_stream");
    for (size_t set = 0; set < sets && !f->judge->status; set++) {
        bool subsets_can = true;
        for (size_t i = 0; i < open->count && subsets_can; i++)
            subsets_can = !(set >> i & 1) || can_go[set & ~((size_t)1 << i)];
        leave_out(f, open, set);
        can_go[set] = subsets_can && !breaks(f);
        for (size_t i = 0; i < open->count && !can_go[set]; i++)
            if ((set >> i & 1) && can_go[set & ~((size_t)1 << i)])
                f->matters[open->items[i]] = true;
    }
    free(can_go);
    return MR_OK;
}

/* Whether a dropped call could replace a kept one. */
static bool could_replace(finder *f, const call_list *open, uint32_t call) {
    bool found = false;
    f->gone[call] = false;
    for (size_t i = 0; i < open->count && !found; i++) {
        uint32_t other = open->items[i];
        if (f->gone[other] || other == call) continue;
        f->gone[other] = true;
        found = !breaks(f);
        f->gone[other] = false;
    }
    f->gone[call] = true;
    return found;
}

/* For too many combinations: finds one minimal set, and calls that could replace one of its members. */
static void look_at_some(finder *f, const call_list *open) {
    for (size_t i = 0; i < open->count; i++)
        if (!f->gone[open->items[i]]) f->matters[open->items[i]] = true;
    for (size_t i = 0; i < open->count; i++)
        if (f->gone[open->items[i]] && f->judge->told < f->until &&
            could_replace(f, open, open->items[i]))
            f->matters[open->items[i]] = true;
}

/* Drops one call after the other if that is possible. The rest is needed then. */
static void leave_out_many(finder *f, const call_list *open) {
    all_stay(f);
    for (size_t i = 0; i < open->count; i++) {
        bool *gone = &f->gone[open->items[i]];
        *gone = true;
        *gone = !breaks(f);
    }
}

static mr_status see_which_matter(finder *f, const call_list *open) {
    leave_out_many(f, open);
    for (size_t i = 0; i < f->calls->count; i++) f->calls->items[i].kept = !f->gone[i];
    if (open->count <= MOST_TABLED) return look_at_all(f, open);
    look_at_some(f, open);
    return MR_OK;
}

static mr_status look_together(finder *f) {
    call_list open = {0};
    mr_status status = MR_OK;
    for (uint32_t i = 0; i < f->calls->count && !status; i++)
        if (!f->needed[i] && !mr_vec_push(&open, i))
            status = mr_no_memory("for the verdicts on record_stream");
    with_all_waits(f);
    if (!status) status = see_which_matter(f, &open);
    mr_waits_judge_keep(f->judge, f->kept);
    if (!status) status = see_which_matter(f, &open); /* this also sets which calls are kept */
    mr_vec_free(&open);
    return status;
}

/* ---- all of it */

static mr_status ask(finder *f) {
    for (size_t i = 0; i < f->calls->count; i++) MR_TRY(ask_alone(f, i));
    MR_TRY(look_together(f));
    if (f->judge->status) return MR_OK;
    for (size_t i = 0; i < f->calls->count; i++) {
        mr_wait_record *c = &f->calls->items[i];
        c->verdict = f->needed[i]               ? MR_WAIT_IS_NEEDED
                     : c->kept || f->matters[i] ? MR_WAIT_IS_TOGETHER
                                                : MR_WAIT_IS_REDUNDANT;
        f->calls->sufficient += c->kept;
    }
    for (size_t i = 0; i < f->calls->count; i++) MR_TRY(explain(f, i));
    return MR_OK;
}

mr_status mr_waits_judge_records(wait_judge *judge, const bool *kept, const mr_waits *of,
                                 mr_waits_records *out_calls) {
    finder f = {.judge = judge,
                .kept = kept,
                .of = of,
                .calls = out_calls,
                .until = judge->told + MOST_LOOKED_AT};
    mr_status status = find_calls(&f);
    if (!status) status = ask(&f);
    mr_vec_free(&f.items);
    free(f.call_of);
    free(f.gone);
    if (!status) status = judge->status;
    else mr_error_destroy(judge->status);
    judge->status = MR_OK;
    if (status) mr_waits_records_free(out_calls); /* no verdicts on some of them only */
    return status;
}

void mr_waits_records_free(mr_waits_records *calls) {
    for (size_t i = 0; i < calls->count; i++) free(calls->items[i].because);
    free(calls->items);
    *calls = (mr_waits_records){0};
}
