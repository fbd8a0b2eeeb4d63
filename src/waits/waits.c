/* The waits that a program needs: see waits.h. Finds the waits, judges each alone, searches for a smallest sufficient
 * set, then computes costs and writes explanations. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "waits/parts.h"
#include "model/backend.h"

#define USUAL_EFFORT                                                                               \
    ((uint64_t)20 * 1000 * 1000) /* commands that a search looks at: some seconds */
#define USUAL_PLAYED   ((uint64_t)4 * 1000 * 1000) /* commands that are carried out for costs */
#define MOST_QUESTIONS ((uint64_t)2 * 1000 * 1000 * 1000) /* waits times commands: some minutes */
#define MOST_CHAINS    64

const char *mr_wait_kind_text(mr_wait_kind kind) {
    static const char *const texts[] = {
#define X(name, text) [MR_WAIT_##name] = text,
        MR_WAIT_KIND_LIST(X)
#undef X
    };
    return texts[kind];
}

const char *mr_wait_verdict_text(mr_wait_verdict verdict) {
    static const char *const texts[] = {
#define X(name, text) [MR_WAIT_IS_##name] = text,
        MR_WAIT_VERDICT_LIST(X)
#undef X
    };
    return texts[verdict];
}

typedef struct {
    mr_waits *result;
    const mr_waits_options *options;
    wait_rounds rounds;
    wait_judge judge;
    wait_search search;
    wait_costs costs;
    bool *adds; /* by wait */
    uint64_t effort;
    int chains;
} finder;

static mr_status take_text(mr_buffer *text, char **out) {
    if (text->failed) {
        mr_buffer_free(text);
        return mr_no_memory("for the verdicts on waits");
    }
    *out = text->data;
    *text = (mr_buffer){0};
    return MR_OK;
}

static mr_status judged(wait_judge *j) {
    mr_status status = j->status;
    j->status = MR_OK;
    return status;
}

/* ---- the questions */

static uint32_t count_rounds(const wait_rounds *rounds, size_t wait) {
    uint32_t count = 0;
    for (size_t i = rounds->first_round[wait]; i != NO_ITEM; i = rounds->next_round[i]) count++;
    return count;
}

static void describe(finder *f, size_t wait) {
    const wait_round *r = &f->rounds.rounds.items[f->rounds.first_round[wait]];
    mr_wait *w = &f->result->waits[wait];
    mr_buffer who = {0};
    mr_waits_say_stream(&f->judge, r->stream, &who);
    w->kind = mr_waits_kind(&f->rounds, wait);
    w->where = mr_waits_site(&f->rounds, wait);
    w->rounds = count_rounds(&f->rounds, wait);
    w->needed_rounds = MR_WAIT_NOT_COUNTED;
    mr_text_copy(w->who, sizeof w->who, who.data ? who.data : "?");
    mr_buffer_free(&who);
}

/* Drops the wait alone: is there a hazard, and which? If not, does the wait add any order? */
static mr_status ask_alone(finder *f, size_t wait) {
    mr_wait *w = &f->result->waits[wait];
    if (mr_waits_judge_adds_nothing(&f->judge, wait)) return MR_OK;
    mr_waits_judge_drop_wait(&f->judge, wait);
    f->judge.adds = f->adds;
    f->judge.only_hazards = true;
    bool breaks = mr_waits_judge_breaks(&f->judge);
    f->judge.only_hazards = false;
    f->judge.adds = NULL;
    MR_TRY(judged(&f->judge));
    f->search.needed[wait] = breaks || f->judge.lost.lost;
    if (!f->search.needed[wait]) return MR_OK;
    const new_hazard *why = breaks ? &f->judge.found.items[0] : &f->judge.lost;
    mr_buffer text = {0};
    w->verdict = breaks ? MR_WAIT_IS_NEEDED : MR_WAIT_IS_UNKNOWN;
    mr_buffer_puts(&text, breaks ? "without it, " : "no hazard appears without it, but ");
    mr_waits_say_hazard(&f->judge, why, w->where, &text);
    return take_text(&text, &w->because);
}

static mr_status count_needed_rounds(finder *f, size_t wait) {
    mr_wait *w = &f->result->waits[wait];
    w->needed_rounds = 0;
    if (!f->search.needed[wait] || w->verdict == MR_WAIT_IS_UNKNOWN) return MR_OK;
    if (w->rounds == 1) {
        w->needed_rounds = 1;
        return MR_OK;
    }
    if (f->judge.told + (uint64_t)w->rounds * f->rounds.items > f->effort) {
        w->needed_rounds = MR_WAIT_NOT_COUNTED;
        return MR_OK;
    }
    for (size_t i = f->rounds.first_round[wait]; i != NO_ITEM; i = f->rounds.next_round[i]) {
        mr_waits_judge_drop_round(&f->judge, i);
        f->judge.only_hazards = true;
        w->needed_rounds += mr_waits_judge_breaks(&f->judge);
        f->judge.only_hazards = false;
        MR_TRY(judged(&f->judge));
    }
    return MR_OK;
}

static mr_status ask(finder *f) {
    for (size_t i = 0; i < f->rounds.waits; i++) {
        describe(f, i);
        MR_TRY(ask_alone(f, i));
    }
    f->effort += f->judge.told;
    uint64_t limit = f->effort;
    f->effort = f->judge.told + (limit - f->judge.told) / 2; /* half of it for the search */
    for (size_t i = 0; i < f->rounds.waits; i++) MR_TRY(count_needed_rounds(f, i));
    uint64_t left = limit > f->judge.told ? limit - f->judge.told : 0;
    MR_TRY(mr_waits_search(&f->judge, left, &f->search));
    f->result->searched = true;
    f->result->exact = f->search.exact;
    for (size_t i = 0; i < f->rounds.waits; i++) {
        mr_wait *w = &f->result->waits[i];
        w->kept = f->search.kept[i];
        f->result->sufficient += w->kept;
        if (f->search.needed[i]) continue; /* already written when it was judged */
        w->verdict = f->search.matters[i] ? MR_WAIT_IS_TOGETHER : MR_WAIT_IS_REDUNDANT;
    }
    return MR_OK;
}

/* ---- the reasons */

static void put_others(const finder *f, const wait_cut *cut, size_t wait, mr_buffer *out) {
    char place[MR_LONGEST_NAME + 16];
    size_t put = 0;
    for (size_t i = 0; i < cut->count; i++) {
        if (cut->waits[i] == wait) continue;
        const mr_wait *other = &f->result->waits[cut->waits[i]];
        mr_buffer_puts(out, !put ? "" : put + 2 == cut->count ? " and " : ", ");
        mr_buffer_puts(out, mr_wait_place(f->options->names, other->where,
                                          f->result->waits[wait].where, place, sizeof place));
        if (other->kind == MR_WAIT_BARRIER) mr_buffer_printf(out, " (%s)", other->who);
        put++;
    }
}

/* Judges the program without the whole cut, once for all its waits. */
static mr_status ask_cut(finder *f, wait_cut *cut) {
    if (cut->is_asked) return MR_OK;
    bool *kept = malloc(f->rounds.waits * sizeof *kept);
    if (!kept) return mr_no_memory("for the verdicts on waits");
    memset(kept, true, f->rounds.waits * sizeof *kept);
    for (size_t i = 0; i < cut->count; i++) kept[cut->waits[i]] = false;
    mr_waits_judge_keep(&f->judge, kept);
    free(kept);
    cut->breaks = mr_waits_judge_breaks(&f->judge);
    if (cut->breaks) cut->why = f->judge.found.items[0];
    MR_TRY(judged(&f->judge));
    cut->is_asked = true;
    return MR_OK;
}

#define OTHERS_ORDER_IT "other waits order the same work: not all of them can go"

static mr_status say_together(finder *f, size_t wait, mr_buffer *out) {
    wait_cut *cut = mr_waits_cut_of(&f->search, wait);
    if (!cut) {
        mr_buffer_puts(out, OTHERS_ORDER_IT);
        return MR_OK;
    }
    MR_TRY(ask_cut(f, cut));
    if (!cut->breaks) {
        mr_buffer_puts(out, OTHERS_ORDER_IT);
        return MR_OK;
    }
    mr_buffer_puts(out, "it can go alone, but not together with ");
    put_others(f, cut, wait, out);
    mr_buffer_puts(out, ": ");
    mr_waits_say_hazard(&f->judge, &cut->why, f->result->waits[wait].where, out);
    return MR_OK;
}

static mr_status explain(finder *f, size_t wait) {
    mr_wait *w = &f->result->waits[wait];
    mr_buffer text = {0};
    mr_status status = MR_OK;
    if (f->search.needed[wait]) return MR_OK; /* with the question */
    if (w->verdict == MR_WAIT_IS_TOGETHER) status = say_together(f, wait, &text);
    else mr_waits_say_redundant(&f->judge, wait, f->adds[wait], f->chains++ < MOST_CHAINS, &text);
    if (!status) status = judged(&f->judge);
    if (!status) return take_text(&text, &w->because);
    mr_buffer_free(&text);
    return status;
}

/* ---- the costs */

static mr_status set_no_costs(finder *f, const char *reason) {
    f->result->no_costs = strdup(reason);
    return f->result->no_costs ? MR_OK : mr_no_memory("for the verdicts on waits");
}

static mr_status propose(finder *f, size_t wait) {
    mr_wait *w = &f->result->waits[wait];
    mr_buffer text = {0};
    mr_status status = mr_waits_instead(&f->costs, wait, w->costs_ms, &text);
    if (!status) status = judged(&f->judge);
    if (!status && text.size) return take_text(&text, &w->instead);
    mr_buffer_free(&text);
    return status;
}

/* Computes the costs of the kept waits (`kept`), or of the others. */
static mr_status price_each(finder *f, bool kept, uint64_t most) {
    for (size_t i = 0; i < f->rounds.waits; i++) {
        mr_wait *w = &f->result->waits[i];
        if (w->kept != kept) continue;
        if (f->costs.played + f->rounds.items > most) {
            f->result->costs_are_cut = true;
            return MR_OK;
        }
        MR_TRY(mr_waits_cost_of(&f->costs, i, &w->has_cost, &w->costs_ms));
        if (kept && w->has_cost) MR_TRY(propose(f, i));
    }
    return MR_OK;
}

/* Costs of kept waits are computed without the rest: with it, each of two equivalent waits would seem to cost
 * nothing. */
static mr_status price(finder *f) {
    const char *reason;
    uint64_t most = f->options->all_costs ? UINT64_MAX : USUAL_PLAYED;
    MR_TRY(mr_waits_costs_open(&f->judge, f->options, f->search.kept, &f->costs, &reason));
    if (reason) return set_no_costs(f, reason);
    f->result->has_costs = true;
    f->result->kept_ms = f->costs.makespan_ms;
    MR_TRY(price_each(f, true, most));
    uint64_t played = f->costs.played;
    mr_waits_costs_close(&f->costs);
    MR_TRY(mr_waits_costs_open(&f->judge, f->options, NULL, &f->costs, &reason));
    if (reason) return set_no_costs(f, reason);
    f->result->makespan_ms = f->costs.makespan_ms;
    MR_TRY(price_each(f, false, most > played ? most - played : 0));
    if (!f->result->costs_are_cut) return MR_OK;
    return set_no_costs(f, "the program is long, so not all of them were predicted: "
                           "mr.waits(fn, {costs = true}) takes the time");
}

/* ---- all of it */

static mr_status note_hazards(finder *f) {
    mr_buffer text = {0};
    uint64_t resets = UINT64_MAX - mr_program_stream_count(f->result->program);
    for (size_t i = 0; i < f->judge.known.count; i++) /* what a reset drops is not a hazard */
        f->result->hazards += f->judge.known.items[i].storage <= resets;
    f->result->hazards_assumed = f->result->hazards && !f->judge.has_certain;
    if (!f->result->hazards || !f->judge.found.count) return MR_OK;
    mr_waits_say_hazard(&f->judge, &f->judge.found.items[0], (mr_site){0}, &text);
    return take_text(&text, &f->result->hazard);
}

/* Notes what the checker could not follow in the first run, and what may decide the script's path. */
static void note_claims(finder *f) {
    mr_claims *claims = &f->result->claims;
    claims->count[MR_CLAIM_FORGOTTEN] = f->judge.claims.count[MR_CLAIM_FORGOTTEN];
    claims->count[MR_CLAIM_COLLECTED] = f->judge.claims.count[MR_CLAIM_COLLECTED];
    claims->count[MR_CLAIM_UNSPECIFIED] = f->judge.claims.count[MR_CLAIM_UNSPECIFIED];
    claims->count[MR_CLAIM_UPDATES] = f->judge.claims.count[MR_CLAIM_UPDATES];
    claims->count[MR_CLAIM_QUERIES] = mr_waits_beyond_open_answers(&f->judge);
    claims->count[MR_CLAIM_HOST_FUNCTIONS] = mr_waits_beyond_open_functions(&f->judge);
}

mr_claim mr_waits_claim(const mr_waits *waits) {
    return mr_claims_judge(&waits->claims);
}

/* Reads by the host are no condition: with the same order of all accesses, the host reads the same values. */
void mr_waits_note_claims(mr_waits *waits, const mr_claims *recorded) {
    mr_claims claims = *recorded;
    claims.count[MR_CLAIM_HOST_READS] = 0;
    claims.count[MR_CLAIM_QUERIES] = 0;
    if (waits->names) claims.where = mr_hazard_shown(waits->names, claims.where);
    mr_claims_merge(&waits->claims, &claims);
}

static mr_status make_room(finder *f) {
    size_t count = f->rounds.waits;
    f->result->waits = calloc(count + 1, sizeof *f->result->waits);
    f->search.needed = calloc(count + 1, sizeof *f->search.needed);
    f->adds = calloc(count + 1, sizeof *f->adds);
    if (!f->result->waits || !f->search.needed || !f->adds)
        return mr_no_memory("for the verdicts on waits");
    f->result->count = f->result->total = count;
    return MR_OK;
}

static void free_wait(const mr_wait *w) {
    free(w->because);
    free(w->instead);
}

/* For an interrupted search: some waits are known to be needed, and nothing is known of the others. */
static void keep_what_is_known(finder *f) {
    mr_waits *r = f->result;
    size_t known = 0;
    r->interrupted = true;
    if (r->searched) {
        r->costs_are_cut = r->costs_are_cut || r->has_costs;
        return;
    }
    for (size_t i = 0; i < r->count; i++) {
        if (r->waits[i].because) r->waits[known++] = r->waits[i];
        else free_wait(&r->waits[i]);
    }
    r->count = known;
}

static mr_status find(finder *f) {
    MR_TRY(mr_waits_rounds(f->result->program, f->options, &f->rounds));
    uint64_t questions = (uint64_t)f->rounds.waits * f->rounds.items;
    if (questions > MOST_QUESTIONS)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "waits: %zu waits in %zu commands are too many to look at each: call it "
                       "with fewer rounds or a part of the program",
                       f->rounds.waits, f->rounds.items);
    MR_TRY(make_room(f));
    MR_TRY(mr_waits_judge_open(&f->rounds, f->options, &f->judge));
    MR_TRY(note_hazards(f));
    note_claims(f);
    MR_TRY(ask(f));
    for (size_t i = 0; i < f->rounds.waits; i++) MR_TRY(explain(f, i));
    /* A wait may be the only thing that orders the collectives of two communicators (R64a). */
    f->result->claims.count[MR_CLAIM_ROOM] = f->judge.room;
    MR_TRY(mr_waits_judge_records(&f->judge, f->search.kept, f->result, &f->result->records));
    return price(f);
}

mr_status mr_waits_find(const mr_program *program, const mr_waits_options *options,
                        mr_waits **out_waits) {
    *out_waits = NULL;
    finder f = {.options = options, .effort = options->effort ? options->effort : USUAL_EFFORT};
    f.result = calloc(1, sizeof *f.result);
    if (!f.result) return mr_no_memory("for the verdicts on waits");
    f.result->program = program;
    f.result->names = options->names;
    mr_program_retain(program);
    mr_status status = find(&f);
    if (status && mr_code_is_interruption(status->code)) {
        mr_error_destroy(status);
        status = MR_OK;
        keep_what_is_known(&f);
    }
    if (f.costs.judge) mr_waits_costs_close(&f.costs);
    mr_waits_search_free(&f.search);
    if (f.judge.rounds) mr_waits_judge_close(&f.judge);
    mr_waits_rounds_free(&f.rounds);
    free(f.adds);
    if (status) mr_waits_destroy(f.result);
    else *out_waits = f.result;
    return status;
}

void mr_waits_destroy(mr_waits *waits) {
    if (!waits) return;
    for (size_t i = 0; i < waits->count; i++) free_wait(&waits->waits[i]);
    free(waits->waits);
    mr_waits_records_free(&waits->records);
    free(waits->hazard);
    free(waits->no_costs);
    mr_program_release(waits->program);
    free(waits);
}
