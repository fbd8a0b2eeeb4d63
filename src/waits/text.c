/* The verdicts on waits as a text. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "waits/waits.h"

/* By line where they are of one file, else by name. */
static int compare_sites(const void *a, const void *b) {
    const mr_site *x = a, *y = b;
    const char *first = x->file ? x->file : "", *second = y->file ? y->file : "";
    int files = strcmp(first, second);
    return files ? files : x->line < y->line ? -1 : x->line > y->line;
}

/* "lines 5, 9, 12", of one file; else "race.lua:5, other.lua:9". */
static void put_kept(const mr_waits *w, mr_buffer *out) {
    char place[MR_LONGEST_NAME + 16];
    mr_site *sites = malloc((w->count + 1) * sizeof *sites);
    size_t count = 0, lines = 0;
    if (!sites) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < w->count; i++)
        if (w->waits[i].kept) sites[count++] = w->waits[i].where;
    qsort(sites, count, sizeof *sites, compare_sites);
    for (size_t i = 0; i < count; i++)
        if (!i || compare_sites(&sites[i], &sites[lines - 1])) sites[lines++] = sites[i];
    bool one_file = lines && sites[0].file && sites[0].file == sites[lines - 1].file;
    if (one_file) mr_buffer_puts(out, lines > 1 ? "lines " : "line ");
    for (size_t i = 0; i < lines; i++) {
        if (i) mr_buffer_puts(out, ", ");
        if (one_file) mr_buffer_printf(out, "%d", sites[i].line);
        else
            mr_buffer_puts(out,
                           mr_wait_place(w->names, sites[i], (mr_site){0}, place, sizeof place));
    }
    free(sites);
}

static void put_unknown(const mr_waits *w, mr_buffer *out) {
    size_t unknown = 0;
    for (size_t i = 0; i < w->count; i++) unknown += w->waits[i].verdict == MR_WAIT_IS_UNKNOWN;
    if (unknown)
        mr_buffer_printf(out, " (%zu of these %s not known to be needed)", unknown,
                         unknown == 1 ? "is" : "are");
}

static void put_head(const mr_waits *w, mr_buffer *out) {
    if (w->hazards) {
        mr_buffer_printf(out,
                         "The program %s hazards with all its waits (%zu access%s; --check counts "
                         "pairs of accesses): fix those first. The verdicts leave %s out, so a "
                         "redundant wait may be needed "
                         "for %s.\n",
                         w->hazards_assumed ? "may have" : "has", w->hazards,
                         w->hazards == 1 ? "" : "es", w->hazards == 1 ? "it" : "them",
                         w->hazards == 1 ? "it" : "them");
        if (w->hazard) mr_buffer_printf(out, "  %s\n", w->hazard);
    }
    mr_claim claim = mr_waits_claim(w);
    if (claim == MR_CLAIM_IS_NONE) {
        mr_buffer_puts(out, w->total ? "Not everything was followed, so a redundant wait may be "
                                       "needed:\n"
                                     : "Not everything was followed:\n");
        mr_claims_write(&w->claims, claim, out);
    }
    mr_buffer_printf(out, "%zu wait%s", w->total, w->total == 1 ? "" : "s");
    if (!w->searched && w->interrupted) {
        mr_buffer_printf(out, "; interrupted, and known by then: %zu %s needed", w->count,
                         w->count == 1 ? "is" : "are");
    } else if (w->count) {
        mr_buffer_printf(out, ", %zu suffice%s%s", w->sufficient, w->sufficient == 1 ? "s" : "",
                         w->hazards ? " for the other accesses" : "");
        if (w->sufficient) mr_buffer_puts(out, ": ");
        put_kept(w, out);
        if (!w->exact)
            mr_buffer_puts(out, " (none of these can go; a smaller set may exist elsewhere)");
        put_unknown(w, out);
    }
    mr_buffer_puts(out, "\n");
    if (claim == MR_CLAIM_IS_CONDITIONAL) mr_claims_write(&w->claims, claim, out);
    if (w->has_costs && w->makespan_ms - w->kept_ms >= 0.005)
        mr_buffer_printf(out, "%.2f ms by the device model, %.2f with only those\n", w->makespan_ms,
                         w->kept_ms);
}

static void put_text(mr_buffer *out, const char *text) {
    mr_buffer_puts(out, "    ");
    for (; *text; text++) {
        mr_buffer_add(out, text, 1);
        if (*text == '\n') mr_buffer_puts(out, "    ");
    }
    mr_buffer_puts(out, "\n");
}

static void put_wait(const mr_waits *all, const mr_wait *w, mr_buffer *out) {
    char place[MR_LONGEST_NAME + 16], cost[24];
    mr_buffer_printf(out, "%s %s: %s%s",
                     mr_wait_place(all->names, w->where, (mr_site){0}, place, sizeof place),
                     mr_wait_kind_text(w->kind), mr_wait_verdict_text(w->verdict),
                     w->verdict == MR_WAIT_IS_TOGETHER && w->kept ? ", kept" : "");
    mr_buffer_printf(out, " (%s", w->who);
    if (w->rounds > 1 && w->needed_rounds == MR_WAIT_NOT_COUNTED)
        mr_buffer_printf(out, ", %u times", w->rounds);
    else if (w->rounds > 1 && w->verdict == MR_WAIT_IS_NEEDED && !w->needed_rounds)
        mr_buffer_printf(out, ", each of the %u times alone can go", w->rounds);
    else if (w->rounds > 1 && w->verdict == MR_WAIT_IS_NEEDED)
        mr_buffer_printf(out, ", %u of %u times", w->needed_rounds, w->rounds);
    else if (w->rounds > 1) mr_buffer_printf(out, ", %u times", w->rounds);
    if (w->has_cost && (w->costs_ms >= 0.005 || w->instead))
        mr_buffer_printf(out, "; costs %s ms of %.2f",
                         mr_wait_ms_text(w->costs_ms, cost, sizeof cost),
                         w->kept ? all->kept_ms : all->makespan_ms);
    mr_buffer_puts(out, ")\n");
    if (w->because) put_text(out, w->because);
    if (w->instead) {
        mr_buffer_puts(out, "    instead: ");
        mr_buffer_puts(out, w->instead);
        mr_buffer_puts(out, "\n");
    }
}

static void put_record(const mr_waits *all, const mr_wait_record *c, mr_buffer *out) {
    char place[MR_LONGEST_NAME + 16];
    mr_buffer_printf(out, "%s record_stream: %s%s (%s for %s",
                     mr_wait_place(all->names, c->where, (mr_site){0}, place, sizeof place),
                     mr_wait_verdict_text(c->verdict),
                     c->verdict == MR_WAIT_IS_TOGETHER && c->kept ? ", kept" : "", c->tensor,
                     c->stream);
    if (c->rounds > 1) mr_buffer_printf(out, ", %u times", c->rounds);
    mr_buffer_puts(out, ")\n");
    if (c->because) put_text(out, c->because);
}

void mr_waits_write(const mr_waits *waits, mr_buffer *out) {
    put_head(waits, out);
    for (size_t i = 0; i < waits->count; i++) put_wait(waits, &waits->waits[i], out);
    for (size_t i = 0; i < waits->records.count; i++)
        put_record(waits, &waits->records.items[i], out);
    if (waits->count && waits->no_costs) mr_buffer_printf(out, "costs: %s\n", waits->no_costs);
}
