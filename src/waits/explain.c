/* Sentences about waits: which hazard appears without one, and what orders the work without it. No verdict is made
 * here. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "waits/parts.h"
#include "tensor/tensor.h"

#define MOST_ROUNDS 16 /* rounds of a wait that are searched for a reason */

const char *mr_wait_place(const mr_hazard *names, mr_site where, mr_site beside, char *out,
                          size_t size) {
    bool is_same = where.file == beside.file;
    if (names) where = mr_hazard_shown(names, where);
    if (!where.file) snprintf(out, size, "an unknown line");
    else if (is_same) snprintf(out, size, "line %d", where.line);
    else snprintf(out, size, "%s:%d", where.file, where.line);
    return out;
}

const char *mr_wait_ms_text(double ms, char *out, size_t size) {
    bool is_short = ms >= 0.0005 && ms < 0.1;
    mr_number_format(out, size, is_short ? "%.3f" : "%.2f", ms < 0.0005 ? 0.0 : ms);
    return out;
}

/* ---- names */

void mr_waits_say_stream(const wait_judge *j, uint32_t stream, mr_buffer *out) {
    const mr_waits_options *o = j->options;
    if (stream == MR_PROGRAM_NONE) {
        mr_buffer_puts(out, "the host");
        return;
    }
    mr_program_stream s = mr_program_stream_at(j->rounds->program, stream);
    const char *name = s.name;
    if (!name && o->stream_name) name = o->stream_name(o->context, s.id);
    if (s.kind != MR_STREAM_USER) {
        mr_buffer_printf(out, "the %s stream",
                         s.kind == MR_STREAM_LEGACY ? "default" : "per-thread");
        if (mr_teller_machine(j->teller)->device_count > 1)
            mr_buffer_printf(out, " of device %d", s.device);
    } else if (name) {
        mr_buffer_puts(out, "`");
        mr_text_put(out, name);
        mr_buffer_puts(out, "`");
    } else {
        mr_buffer_printf(out, "stream #%u", s.id);
    }
}

static bool put_tensor_of(const wait_judge *j, size_t item, uint64_t storage, mr_buffer *out) {
    const mr_program *program = j->rounds->program;
    if (item == NO_ITEM) return false;
    uint32_t count = mr_program_item_at(program, item).operand_count;
    for (uint32_t k = 0; k < count; k++) {
        mr_program_operand o = mr_program_operand_at(program, item, k);
        if (o.storage_id != storage || !o.name) continue;
        mr_buffer_puts(out, "`");
        mr_text_put(out, o.name);
        mr_buffer_puts(out, "`");
        return true;
    }
    return false;
}

static void put_storage(const wait_judge *j, uint64_t id, const char *name, mr_buffer *out) {
    const mr_waits_options *o = j->options;
    if (!name && o->storage_name) name = o->storage_name(o->context, id);
    if (!name) {
        mr_buffer_printf(out, "tensor #%llu", (unsigned long long)id);
        return;
    }
    mr_buffer_puts(out, "`");
    mr_text_put(out, name);
    mr_buffer_puts(out, "`");
}

static void put_tensor(const wait_judge *j, const new_hazard *h, mr_buffer *out) {
    if (put_tensor_of(j, h->second, h->storage, out)) return;
    if (put_tensor_of(j, h->first, h->storage, out)) return;
    put_storage(j, h->storage, NULL, out);
}

void mr_waits_say_storage(const wait_judge *j, uint32_t storage, mr_buffer *out) {
    mr_program_storage s = mr_program_storage_at(j->rounds->program, storage);
    for (size_t i = 0; i < j->rounds->items && !s.name; i++)
        if (put_tensor_of(j, i, s.id, out)) return;
    put_storage(j, s.id, s.name, out);
}

/* "`sum` at line 14", "the host's `item` at line 3", "`add_` at line 5 (launched at line 12)",
 * "the allocation of `x` at line 2" */
static void put_item(const wait_judge *j, size_t item, mr_site beside, mr_buffer *out) {
    char place[MR_LONGEST_NAME + 16];
    if (item == NO_ITEM) {
        mr_buffer_puts(out, "an earlier operation");
        return;
    }
    mr_program_item it = mr_program_item_at(j->rounds->program, item);
    if (it.kind == MR_COMMAND_HOST_ACCESS) mr_buffer_puts(out, "the host's ");
    if (it.kind == MR_COMMAND_ALLOC) {
        mr_buffer_puts(out, "the allocation of ");
        mr_waits_say_storage(j, it.storage, out);
    } else {
        mr_buffer_puts(out, "`");
        mr_text_put(out, it.name ? it.name : mr_command_kinds[it.kind].name);
        mr_buffer_puts(out, "`");
    }
    mr_buffer_printf(out, " at %s",
                     mr_wait_place(j->options->names, it.where, beside, place, sizeof place));
    if (it.launched.file && it.launch != MR_LAUNCH_NONE)
        mr_buffer_printf(
            out, " (launched at %s)",
            mr_wait_place(j->options->names, it.launched, beside, place, sizeof place));
}

/* ---- hazards */

static void put_both(const wait_judge *j, const new_hazard *h, mr_site beside, mr_buffer *out) {
    put_item(j, h->first, beside, out);
    mr_buffer_puts(out, " and ");
    put_item(j, h->second, beside, out);
}

/* "nothing orders `fill_` at line 4 and `zeros` at line 3, which both write `x`" */
static void say_two_writes(const wait_judge *j, const new_hazard *h, mr_site beside,
                           mr_buffer *out) {
    mr_buffer_puts(out, "nothing orders ");
    put_both(j, h, beside, out);
    mr_buffer_puts(out, ", which both write ");
    put_tensor(j, h, out);
}

/* The free of a tensor that Lua's collector took has no line. */
static bool is_collected(const wait_judge *j, size_t item) {
    return item != NO_ITEM && !mr_program_item_at(j->rounds->program, item).where.file;
}

/* Names the thing that two functions may share: variables, or the output if one is a launch that prints. */
static const char *what_both_do(const wait_judge *j, size_t first, size_t second) {
    const mr_program *program = j->rounds->program;
    bool prints = mr_program_item_at(program, first).kind == MR_COMMAND_OP ||
                  (second != NO_ITEM && mr_program_item_at(program, second).kind == MR_COMMAND_OP);
    return prints ? "; both may print" : "; both may use the same variable";
}

/* File names are compared with `beside`, which must come from the program. */
static void say_look(const wait_judge *j, const new_hazard *h, mr_site beside, mr_buffer *out) {
    char place[MR_LONGEST_NAME + 16];
    const mr_waits_look *look = &j->options->looks[h->look];
    mr_site where = look->where;
    if (where.file && beside.file && !strcmp(where.file, beside.file)) where.file = beside.file;
    mr_buffer_printf(out, "`%s` at %s may then come before ", look->what,
                     mr_wait_place(j->options->names, where, beside, place, sizeof place));
    put_item(j, h->first, beside, out);
    mr_buffer_puts(out, " is over; what it finds then is not followed");
}

/* Describes a lost order whose effects the checker does not follow. */
static void say_lost(const wait_judge *j, const new_hazard *h, mr_site beside, mr_buffer *out) {
    switch (h->lost) {
    case MR_LOST_FUNCTION:
        mr_buffer_puts(out, "the host may go on before ");
        put_item(j, h->first, beside, out);
        mr_buffer_puts(out, " has run");
        mr_buffer_puts(out, what_both_do(j, h->first, NO_ITEM));
        break;
    case MR_LOST_FUNCTIONS:
        mr_buffer_puts(out, "nothing then orders ");
        put_both(j, h, beside, out);
        mr_buffer_puts(out, what_both_do(j, h->first, h->second));
        break;
    case MR_LOST_ANSWER:
        put_item(j, h->second, beside, out);
        mr_buffer_puts(out, " may then answer no; the script may do something else");
        break;
    case MR_LOST_UPDATES:
        mr_buffer_puts(out, "nothing then orders the atomic updates of ");
        put_tensor(j, h, out);
        mr_buffer_puts(out, " by ");
        put_both(j, h, beside, out);
        mr_buffer_puts(out, "; values may depend on their order");
        break;
    case MR_LOST_COPY:
        put_item(j, h->second, beside, out);
        mr_buffer_puts(out, " then comes after the copy of ");
        put_tensor(j, h, out);
        mr_buffer_puts(out, ", ");
        put_item(j, h->first, beside, out);
        mr_buffer_puts(out, ", only if that waits, which CUDA does not specify");
        break;
    case MR_LOST_LOOK: say_look(j, h, beside, out); break;
    case MR_LOST_NOTHING: break;
    }
}

static void say_hazard(const wait_judge *j, const new_hazard *h, mr_site beside, mr_buffer *out) {
    if (h->lost) {
        say_lost(j, h, beside, out);
        return;
    }
    if (h->is_time) {
        mr_buffer_puts(out, "elapsed_time may be asked for the time of ");
        put_item(j, h->first, beside, out);
        mr_buffer_puts(out, " before that is complete");
        return;
    }
    if (h->kind == MR_HAZARD_WRITE_AFTER_WRITE && !h->is_reset) {
        say_two_writes(j, h, beside, out);
        return;
    }
    if (h->kind == MR_HAZARD_USE_AFTER_FREE && is_collected(j, h->second))
        mr_buffer_puts(out, "Lua's collector");
    else put_item(j, h->second, beside, out);
    if (h->is_reset) {
        mr_buffer_puts(out, " may drop work that is pending");
        return;
    }
    switch (h->kind) {
    case MR_HAZARD_READ_AFTER_WRITE: mr_buffer_puts(out, " may read "); break;
    case MR_HAZARD_WRITE_AFTER_READ: mr_buffer_puts(out, " may write "); break;
    case MR_HAZARD_USE_AFTER_FREE: mr_buffer_puts(out, " may free "); break;
    case MR_HAZARD_USE_BEFORE_ALLOC: mr_buffer_puts(out, " may use "); break;
    default: mr_buffer_puts(out, " may read bytes that nothing has written of "); break;
    }
    put_tensor(j, h, out);
    switch (h->kind) {
    case MR_HAZARD_READ_AFTER_WRITE: mr_buffer_puts(out, " before "); break;
    case MR_HAZARD_WRITE_AFTER_READ:
    case MR_HAZARD_USE_AFTER_FREE: mr_buffer_puts(out, " while "); break;
    case MR_HAZARD_USE_BEFORE_ALLOC: mr_buffer_puts(out, " before it is allocated"); return;
    default: return;
    }
    put_item(j, h->first, beside, out);
    switch (h->kind) {
    case MR_HAZARD_READ_AFTER_WRITE: mr_buffer_puts(out, " has written it"); break;
    case MR_HAZARD_WRITE_AFTER_READ: mr_buffer_puts(out, " still reads it"); break;
    default: mr_buffer_puts(out, " still uses it"); break;
    }
}

void mr_waits_say_hazard(const wait_judge *j, const new_hazard *h, mr_site beside, mr_buffer *out) {
    say_hazard(j, h, beside, out);
    if (h->assumed) mr_buffer_puts(out, ", if both touch the same bytes: the code does not tell");
}

/* ---- why a wait can go */

/* The chain that orders the two without the wait; empty: there is none. */
static mr_buffer chain_of(wait_judge *j, size_t first, size_t second) {
    mr_buffer chain = {0};
    if (!mr_waits_judge_chain(j, first, second, &chain)) chain.size = 0;
    while (chain.size && chain.data[chain.size - 1] == '\n') chain.size--;
    if (chain.data) chain.data[chain.size] = '\0';
    return chain;
}

static void say_no_use(const wait_judge *j, const wait_round *r, mr_buffer *out) {
    mr_buffer_puts(out, "nothing that ");
    mr_waits_say_stream(j, r->stream, out);
    mr_buffer_puts(out, r->stream == MR_PROGRAM_NONE
                            ? " does or submits after it"
                            : " does after it, or that waits for such work,");
    mr_buffer_puts(out, " uses the data of the work that it waits for");
}

static void say_nothing_after(const wait_judge *j, const wait_round *r, mr_buffer *out) {
    if (r->stream == MR_PROGRAM_NONE) {
        mr_buffer_puts(out, "the host submits no work and uses no tensor after it, and all work is "
                            "waited for at the end");
        return;
    }
    mr_buffer_puts(out, "no work comes after it, in ");
    mr_waits_say_stream(j, r->stream, out);
    mr_buffer_puts(out, " or in what waits for that");
}

static void say_same_stream(wait_judge *j, const wait_pair *pair, mr_site where, mr_buffer *out) {
    mr_buffer_puts(out, "without it, too, ");
    put_item(j, pair->second, where, out);
    mr_buffer_puts(out, " comes after ");
    put_item(j, pair->first, where, out);
    mr_buffer_puts(out, ", as both are work of ");
    mr_waits_say_stream(j, mr_program_item_at(j->rounds->program, pair->first).stream, out);
}

/* The work on both sides that has data in common, and how it is ordered all the same. */
static void say_what_orders(wait_judge *j, const wait_round *r, wait_pair pair, mr_site where,
                            mr_buffer *out) {
    if (pair.is_found && pair.same_stream) {
        say_same_stream(j, &pair, where, out);
        return;
    }
    if (!pair.is_found && pair.is_complete) {
        say_no_use(j, r, out);
        return;
    }
    mr_buffer chain = {0};
    if (pair.is_found) chain = chain_of(j, pair.first, pair.second);
    if (chain.size) {
        mr_buffer_puts(out, "without it, too, ");
        put_item(j, pair.second, where, out);
        mr_buffer_puts(out, " comes after ");
        put_item(j, pair.first, where, out);
        mr_buffer_puts(out, ":\n");
        mr_buffer_puts(out, chain.data);
    } else {
        mr_buffer_puts(out, "without it, no access has a hazard that has none now");
    }
    mr_buffer_free(&chain);
}

/* No other stream has work that the round waits for. */
static void say_nothing_before(const wait_judge *j, const wait_round *r, mr_buffer *out) {
    size_t one;
    if (!mr_waits_before(j, r, true, &one, 1)) {
        mr_buffer_puts(out, "there is no work before it that it could wait for");
        return;
    }
    mr_waits_say_stream(j, r->stream, out);
    mr_buffer_puts(out, " waits for its own earlier work, which comes first anyway");
}

/* What a round of the wait has on its two sides, from the least to the most informative. */
typedef enum { NEVER_RECORDED, NOTHING_BEFORE, NOTHING_AFTER, HAS_BOTH } round_sides;

static round_sides sides_of(const wait_judge *j, const wait_round *r) {
    mr_program_item it = mr_program_item_at(j->rounds->program, r->at);
    size_t one;
    if (mr_kind_is(it.kind, MR_TRAIT_BOUND) && !it.bound) return NEVER_RECORDED;
    if (!mr_waits_before(j, r, false, &one, 1)) return NOTHING_BEFORE;
    return mr_waits_after(j, r, &one, 1) ? HAS_BOTH : NOTHING_AFTER;
}

/* Chooses the round for the explanation: the first one with a pair of two streams, or else with any pair, or else the
 * most informative one. */
static const wait_round *round_to_explain(const wait_judge *j, size_t wait, round_sides *out_sides,
                                          wait_pair *out_pair) {
    const wait_rounds *rounds = j->rounds;
    const wait_round *chosen = NULL;
    wait_pair pair = {.is_complete = true};
    size_t looked = 0;
    for (size_t i = rounds->first_round[wait]; i != NO_ITEM; i = rounds->next_round[i]) {
        const wait_round *r = &rounds->rounds.items[i];
        if (++looked > MOST_ROUNDS) { /* then a statement about all rounds is not possible */
            *out_sides = HAS_BOTH;
            pair.is_complete = false;
            break;
        }
        round_sides sides = sides_of(j, r);
        wait_pair found = {.is_complete = true};
        if (sides == HAS_BOTH) found = mr_waits_pair(j, r);
        bool is_better = !chosen || sides > *out_sides || (found.is_found && !pair.is_found) ||
                         (found.is_found && pair.same_stream && !found.same_stream);
        bool is_complete = pair.is_complete && found.is_complete;
        if (is_better) chosen = r, *out_sides = sides, pair = found;
        pair.is_complete = is_complete;
        if (pair.is_found && !pair.same_stream) break;
    }
    *out_pair = pair;
    return chosen;
}

void mr_waits_say_redundant(wait_judge *j, size_t wait, bool adds, bool with_chain,
                            mr_buffer *out) {
    round_sides sides = NEVER_RECORDED;
    wait_pair pair;
    const wait_round *r = round_to_explain(j, wait, &sides, &pair);
    mr_site where = mr_waits_site(j->rounds, wait);
    mr_waits_judge_drop_wait(j, wait);
    if (r->barrier != MR_PROGRAM_NONE) {
        mr_buffer_puts(out, "no hazard appears without this member of the barrier");
        return;
    }
    switch (sides) {
    case NEVER_RECORDED:
        mr_buffer_puts(out, "the event has never been recorded at that time: such a wait succeeds "
                            "at once and orders nothing (R13)");
        break;
    case NOTHING_BEFORE: say_nothing_before(j, r, out); break;
    case NOTHING_AFTER: say_nothing_after(j, r, out); break;
    case HAS_BOTH:
        if (!adds) mr_buffer_puts(out, "what it waits for is ordered before already; ");
        if (with_chain) say_what_orders(j, r, pair, where, out);
        else mr_buffer_puts(out, "without it, no access has a hazard that has none now");
        break;
    }
    if (mr_waits_is_measured(j, r))
        mr_buffer_puts(out, ". A time that is read after it may then be another");
}
