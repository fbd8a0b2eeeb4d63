/* Writes the checker's final text: the claim, the number of findings, and the limits of the claim. */
#include "hazard/explain.h"

#include "base/text.h"

#include <inttypes.h>

static const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

static void put_clean(const mr_hazard_totals *t, mr_buffer *out) {
    mr_buffer_printf(
        out, "no hazards: every legal schedule of %s %" PRIu64 " operation%s gives the same values",
        t->operations == 1 ? "this" : "these", t->operations, plural(t->operations));
}

static void put_found(const mr_hazard_totals *t, bool whole_run, mr_buffer *out) {
    uint64_t dropped = t->claims.count[MR_CLAIM_DROPPED];
    uint64_t cleared = t->claims.count[MR_CLAIM_CLEARED];
    uint64_t places = t->reports + dropped;
    mr_buffer_printf(
        out, "%" PRIu64 " hazard%s at %" PRIu64 " pair%s of places in %" PRIu64 " operation%s",
        t->hazards, plural(t->hazards), places, plural(places), t->operations,
        plural(t->operations));
    if (dropped) mr_buffer_printf(out, " (%" PRIu64 " not shown)", dropped);
    if (whole_run && cleared)
        mr_buffer_printf(out, " (%" PRIu64 " before mr.hazard.clear())", cleared);
    if (t->follow_ups)
        mr_buffer_printf(out, "; the same fixes also order %" PRIu64 " more access%s",
                         t->follow_ups, t->follow_ups == 1 ? "" : "es");
}

static void put_nothing_outside(const mr_hazard_totals *t, mr_buffer *out) {
    const uint64_t checked = t->checked_apart - t->explored - t->stressed;
    const char *names[4];
    size_t count = 0;
    if (checked) names[count++] = "mr.hazard.check";
    if (t->explored) names[count++] = "mr.explore";
    if (t->stressed) names[count++] = "mr.stress", names[count++] = "mr.replay";
    mr_buffer_puts(out, "nothing was checked outside ");
    for (size_t i = 0; i < count; i++) {
        mr_buffer_puts(out, !i ? "" : i + 1 == count ? " and " : ", ");
        mr_buffer_puts(out, names[i]);
    }
}

/* The first line: what is claimed. */
static void put_head(const checker *c, const mr_hazard_totals *t, bool whole_run, mr_buffer *out) {
    if (t->hazards) put_found(t, whole_run, out);
    else if (mr_hazard_claim(t) != MR_CLAIM_IS_NONE) put_clean(t, out);
    else if (t->operations)
        mr_buffer_printf(out,
                         "no hazard was found in %" PRIu64
                         " operation%s, but not every schedule is covered",
                         t->operations, plural(t->operations));
    else if (t->checked_apart) put_nothing_outside(t, out);
    else if (c->mode == MR_HAZARD_OFF)
        mr_buffer_puts(out, "nothing was checked: the checker is off");
    else mr_buffer_puts(out, "nothing was checked: no operation was submitted");
    mr_buffer_puts(out, "\n");
}

static void put_apart(uint64_t operations, const char *who, mr_buffer *out) {
    if (operations)
        mr_buffer_printf(
            out, "not counted: %" PRIu64 " operation%s ran inside %s and %s reported there\n",
            operations, plural(operations), who, operations == 1 ? "is" : "are");
}

void mr_hazard_summary(const mr_hazard *c, bool whole_run, mr_buffer *out) {
    mr_hazard_totals t = mr_hazard_get_totals(c, whole_run);
    put_head(c, &t, whole_run, out);
    if (t.hazards) /* the first line has told these */
        t.claims.count[MR_CLAIM_DROPPED] = t.claims.count[MR_CLAIM_CLEARED] = 0;
    t.claims.where = mr_hazard_shown(c, t.claims.where);
    mr_claims_write(&t.claims, mr_hazard_claim(&t), out);
    put_apart(t.checked_apart - t.explored - t.stressed, "mr.hazard.check", out);
    put_apart(t.explored, "mr.explore", out);
    if (t.stressed)
        mr_buffer_printf(
            out,
            "not counted: %" PRIu64
            " operation%s ran inside mr.stress or mr.replay, which report no hazards\n",
            t.stressed, plural(t.stressed));
    mr_hazard_describe_ignores(c, out);
}

/* How often the places of each report were met, also after it was written. */
static void put_json_counts(const mr_hazard *c, mr_buffer *out) {
    const char *separator = "";
    mr_buffer_puts(out, ",\"counts\":[");
    for (size_t i = 0; i < mr_hazard_report_count(c); i++) {
        const mr_hazard_report *r = mr_hazard_report_at(c, i);
        if (mr_hazard_kind_is_advice(r->kind)) continue;
        mr_buffer_printf(out,
                         "%s{\"number\":%" PRIu64 ",\"count\":%" PRIu64 ",\"stream_pairs\":%u}",
                         separator, r->number, r->count, r->stream_pairs);
        separator = ",";
    }
    mr_buffer_puts(out, "]");
}

void mr_hazard_summary_json(const mr_hazard *c, int rank, mr_buffer *out) {
    mr_hazard_totals t = mr_hazard_get_totals(c, true);
    mr_buffer text = {0};
    mr_hazard_summary(c, true, &text);
    while (text.size && text.data[text.size - 1] == '\n') text.data[--text.size] = '\0';
    mr_buffer_printf(out,
                     "{\"type\":\"summary\",\"claim\":\"%s\",\"operations\":%" PRIu64
                     ",\"hazards\":%" PRIu64 ",\"reports\":%" PRIu64 ",\"follow_ups\":%" PRIu64
                     ",\"checked_apart\":%" PRIu64,
                     mr_claim_text(mr_hazard_claim(&t)), t.operations, t.hazards, t.reports,
                     t.follow_ups, t.checked_apart);
    for (int i = 0; i < MR_CLAIM_COUNT; i++)
        mr_buffer_printf(out, ",\"%s\":%" PRIu64, mr_claim_rows[i].key, t.claims.count[i]);
    mr_buffer_puts(out, ",\"text\":");
    mr_text_put_json(out, text.data ? text.data : "");
    put_json_counts(c, out);
    if (rank >= 0) mr_buffer_printf(out, ",\"rank\":%d", rank);
    mr_buffer_puts(out, "}\n");
    mr_buffer_free(&text);
}
