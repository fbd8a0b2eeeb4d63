/* The lines of a fix as a report shows them, each with its place. */
#include "hazard/explain.h"

#include "base/text.h"

const char *mr_hazard_place_text(mr_script_place place) {
    static const char *const texts[] = {"before", "after", "within"};
    return texts[place];
}

/* Usually all lines of a report are in one file, which its first line names. */
static bool is_of_one_file(const mr_hazard_report *report, const mr_hazard_fix *fix) {
    const char *first = report->first.where.file, *second = report->second.where.file;
    return fix->where.file == first && (!second || first == second);
}

/* "before line 12"; "before race.lua:12" where several files are named; "before mr:7" of an entry that has its own
 * number, "before mr:7:2". */
static void put_place(mr_buffer *out, const mr_hazard_report *report, const mr_hazard_fix *fix) {
    bool is_within = fix->place == MR_SCRIPT_WITHIN;
    bool is_first = fix->place == MR_SCRIPT_BEFORE && fix->where.line == 1;
    char place[PLACE_SIZE];
    mr_site shown = {fix->file ? fix->file : fix->where.file, fix->where.line};
    const char *within = fix->in_loop ? "in the loop of" : "split";
    mr_buffer_puts(out, is_within ? within : mr_hazard_place_text(fix->place));
    mr_buffer_puts(out, " ");
    if (fix->typed && is_first) mr_text_put(out, fix->where.file);
    else if (!fix->typed && is_of_one_file(report, fix))
        mr_buffer_printf(out, "line %d", fix->where.line);
    else mr_text_put(out, mr_hazard_place(shown, place, sizeof place));
    if (is_within && fix->in_loop) {
        mr_buffer_puts(out, fix->has_namesake ? ", before the `" : ", before `");
        mr_text_put(out, fix->op);
        mr_buffer_puts(out, "`");
        if (fix->has_namesake) {
            mr_buffer_puts(out, " on ");
            mr_text_put(out, fix->stream);
        }
        mr_buffer_puts(out, ",");
    } else if (is_within) {
        mr_buffer_puts(out, ", and between the two parts");
    }
}

void mr_hazard_fix_text(const mr_hazard_report *report, mr_buffer *out) {
    for (int i = 0; i < report->fix_count; i++) {
        const mr_hazard_fix *fix = &report->fix[i];
        mr_buffer_printf(out, "%s%s", i ? "\n     " : "", fix->typed ? "next time, " : "");
        put_place(out, report, fix);
        mr_buffer_puts(out, fix->typed ? " enter   " : " add   ");
        mr_text_put(out, fix->text);
    }
    if (!report->fix_count) mr_text_put(out, report->advice);
}
