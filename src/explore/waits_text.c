/* The verdicts on waits as a text. */
#include <string.h>

#include "base/text.h"
#include "explore/waits.h"

static bool same_line(mr_site a, mr_site b) {
    return a.file == b.file && a.line == b.line;
}

/* "lines 5, 9, 12", of one file; else "race.lua:5, other.lua:9". */
static void put_kept(const mr_waits *w, mr_buffer *out) {
    char place[MR_LONGEST_NAME + 16];
    mr_site first = {0}, last = {0};
    bool one_file = true;
    size_t lines = 0;
    for (size_t i = 0; i < w->count; i++) {
        if (!w->waits[i].kept) continue;
        if (!lines) first = w->waits[i].where;
        one_file &= w->waits[i].where.file == first.file && first.file;
        lines += !lines || !same_line(last, w->waits[i].where);
        last = w->waits[i].where;
    }
    mr_buffer_puts(out, !one_file ? "" : lines > 1 ? "lines " : "line ");
    size_t put = 0;
    for (size_t i = 0; i < w->count; i++) {
        mr_site where = w->waits[i].where;
        if (!w->waits[i].kept || (put && same_line(last, where))) continue;
        if (put++) mr_buffer_puts(out, ", ");
        if (one_file) mr_buffer_printf(out, "%d", where.line);
        else mr_buffer_puts(out, mr_wait_place(where, (mr_site){0}, place, sizeof place));
        last = where;
    }
}

static void put_head(const mr_waits *w, mr_buffer *out) {
    if (w->hazards) {
        mr_buffer_printf(out,
                         "The program has hazards with all its waits (%zu accesses): fix those "
                         "first. Verdicts are about hazards that come in addition.\n",
                         w->hazards);
        if (w->hazard) mr_buffer_printf(out, "  %s\n", w->hazard);
    }
    mr_buffer_printf(out, "%zu wait%s", w->count, w->count == 1 ? "" : "s");
    if (w->count) {
        mr_buffer_printf(out, ", %zu suffice%s", w->sufficient, w->sufficient == 1 ? "s" : "");
        if (w->sufficient) mr_buffer_puts(out, ": ");
        put_kept(w, out);
        if (!w->exact)
            mr_buffer_puts(out, " (none of these can go; a smaller set may exist elsewhere)");
    }
    mr_buffer_puts(out, "\n");
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
    char place[MR_LONGEST_NAME + 16];
    mr_buffer_printf(out, "%s %s: %s%s", mr_wait_place(w->where, (mr_site){0}, place, sizeof place),
                     mr_wait_kind_text(w->kind), mr_wait_verdict_text(w->verdict),
                     w->verdict == MR_WAIT_IS_TOGETHER && w->kept ? ", kept" : "");
    mr_buffer_printf(out, " (%s", w->who);
    if (w->rounds > 1 && w->needed_rounds == MR_WAIT_NOT_COUNTED)
        mr_buffer_printf(out, ", %u rounds", w->rounds);
    else if (w->rounds > 1 && w->verdict == MR_WAIT_IS_NEEDED)
        mr_buffer_printf(out, ", each alone in %u of %u rounds", w->needed_rounds, w->rounds);
    else if (w->rounds > 1) mr_buffer_printf(out, ", %u rounds", w->rounds);
    if (w->has_cost && w->costs_ms >= 0.005)
        mr_buffer_printf(out, "; costs %.2f ms of %.2f", w->costs_ms,
                         w->kept ? all->kept_ms : all->makespan_ms);
    mr_buffer_puts(out, ")\n");
    if (w->because) put_text(out, w->because);
    if (w->instead) {
        mr_buffer_puts(out, "    instead: ");
        mr_buffer_puts(out, w->instead);
        mr_buffer_puts(out, "\n");
    }
}

void mr_waits_write(const mr_waits *waits, mr_buffer *out) {
    put_head(waits, out);
    for (size_t i = 0; i < waits->count; i++) put_wait(waits, &waits->waits[i], out);
    if (waits->count && waits->no_costs) mr_buffer_printf(out, "costs: %s\n", waits->no_costs);
}
