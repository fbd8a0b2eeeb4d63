/* Where a fix can be inserted: see place.h. */
#include "script/place.h"

#include <stdio.h>
#include <string.h>

/* Both accesses are on one line, or in one statement. Are they of two rounds of a loop, or of the same run? An
 * operation that is written once must be of two rounds. For two different operations, their order in the text
 * decides. */
static bool came_round(const mr_script *s, const mr_script_meeting *m, int front) {
    bool is_same = strcmp(m->first_op, m->second_op) == 0;
    if (!s) return is_same;
    if (m->first.line > m->second.line) return true; /* a loop's condition, and its body before */
    if (m->first.line == m->second.line && mr_script_loops(s, front, m->second.line)) return false;
    if (!mr_script_function(s, front) && !mr_script_in_loop(s, front) &&
        !mr_script_is_loop(s, front) && !mr_script_defines(s, m->second.line))
        return false;
    const char *first = mr_script_count(s, front, m->first_op) ? m->first_op : "op";
    const char *second = mr_script_count(s, front, m->second_op) ? m->second_op : "op";
    if (!mr_script_count(s, front, first) || !mr_script_count(s, front, second)) return is_same;
    return !mr_script_follows(s, front, first, second);
}

/* The first access is of the same statement, and no other work was submitted between the two. */
static bool is_together(const mr_script *s, const mr_script_meeting *m, int front) {
    if (!m->first.file || m->first.file != m->second.file || !m->lowest) return false;
    if (!s) return m->lowest == m->second.line && m->highest == m->second.line;
    return m->lowest >= front && mr_script_is_within(s, front, m->highest);
}

/* Whether the first access ran before the loop began. Its line is in the code that has run up to the loop, and in no
 * function that a turn may call. */
static bool ran_before(const mr_script *s, const mr_script_meeting *m, const char *file, int front,
                       const mr_script_turns *turns) {
    int line = m->first.line;
    if (file != m->first.file || (line >= turns->first && line <= turns->last)) return false;
    if (mr_script_defines(s, line) || !mr_script_is_one_run(s, turns->first, line)) return false;
    return !mr_script_function(s, front) ||
           !mr_script_leads_to(s, front, turns->last, turns->first);
}

/* In front of the statement. But a line in front of a loop runs once, and what a turn does may come after it. Where
 * the body has no line for its end, the names in the loop decide. The second access is the code of line `line` or what
 * this calls. */
static bool put(const mr_script *s, const mr_script_meeting *m, const char *file, int front,
                int line, bool by_iterator, mr_script_spot *out_spot) {
    mr_script_turns turns;
    *out_spot = (mr_script_spot){MR_SCRIPT_BEFORE, {file, front}, front, false, false, 0};
    if (!s || !mr_script_repeats(s, front, line, by_iterator, &turns) ||
        ran_before(s, m, file, front, &turns))
        return true;
    out_spot->again = turns.end;
    if (turns.end || file != m->first.file) return turns.end > 0;
    bool is_inside = m->first.line >= turns.first && m->first.line <= turns.last;
    return !is_inside && !mr_script_leads_to(s, front, turns.last, m->first.line); /* by names */
}

/* Whether the line that called the code of the second access had called the code of the first one before. Then a fix in
 * front of the line does not help. *out_known false: its text does not tell. */
static bool is_between(const mr_script *s, const mr_script_meeting *m, const mr_script_call *call,
                       int front, bool *out_known) {
    *out_known = true;
    if (!s || call->is_after) return false;
    bool of_file = call->file == m->first.file;
    bool has_first = of_file && mr_script_is_within(s, front, m->first.line);
    bool has_second = call->file == m->second.file && mr_script_is_within(s, front, m->second.line);
    if (has_first && has_second) return false; /* see came_round */
    if (!has_first && of_file && mr_script_is_one_run(s, front, m->first.line) &&
        !mr_script_defines(s, m->first.line))
        return false;
    if (!has_first && of_file && !mr_script_leads_to(s, front, call->line, m->first.line))
        return false;
    if (mr_script_loops(s, front, call->line) || (has_first && call->is_gone)) return true;
    *out_known = !call->is_gone;
    const mr_script_call *inner = call->inner;
    if (inner && inner->file == call->file && mr_script_is_within(s, front, inner->line))
        call = inner;
    const char *const names[] = {call->called ? call->called : m->second_op, m->second_op, "op"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (mr_script_count(s, front, names[i])) return mr_script_is_later(s, front, names[i]);
    bool is_operator = has_second && !call->called; /* that may be anywhere in the statement */
    return is_operator || mr_script_has_several(s, front);
}

bool mr_script_place_before(const mr_script *s, const mr_script_meeting *m,
                            mr_script_spot *out_spot) {
    int line = m->second.line, front = s ? mr_script_front(s, line) : line;
    if (!front) return false;
    if (is_together(s, m, front) && !came_round(s, m, front)) {
        bool loops = s && mr_script_loops(s, front, m->second.line);
        bool has_namesake = loops && mr_script_count(s, front, m->second_op) > 1;
        *out_spot = (mr_script_spot){
            MR_SCRIPT_WITHIN, {m->second.file, front}, front, loops, has_namesake, 0};
        return true;
    }
    return !(s && mr_script_defines(s, line)) &&
           put(s, m, m->second.file, front, line, false, out_spot);
}

bool mr_script_place_in_call(const mr_script *s, const mr_script_meeting *m,
                             const mr_script_call *call, mr_script_spot *out_spot,
                             bool *out_inside) {
    int front = s ? mr_script_front(s, call->line) : call->line;
    *out_inside = !s || (front && mr_script_function(s, front) == call->function);
    if (!*out_inside) return false;
    bool by_iterator = call->called && strcmp(call->called, "for iterator") == 0;
    bool is_known, fits = put(s, m, call->file, front, call->line, by_iterator, out_spot);
    bool between = is_between(s, m, call, front, &is_known);
    if (between) out_spot->place = MR_SCRIPT_WITHIN, out_spot->again = 0;
    return between || (fits && is_known);
}

bool mr_script_place_behind(const mr_script *s, mr_site where, mr_script_spot *out_spot) {
    int front = s ? mr_script_behind(s, where.line) : where.line + 1;
    bool in_loop = s && front && mr_script_in_loop(s, front);
    *out_spot =
        (mr_script_spot){MR_SCRIPT_AFTER, {where.file, front - 1}, front, in_loop, false, 0};
    return front > 0;
}

/* The line is of the same function as the statement that begins on line `front`, and not in that statement. */
static bool is_elsewhere(const mr_script *s, int front, int line) {
    return !mr_script_is_within(s, front, line) &&
           mr_script_function(s, line) == mr_script_function(s, front);
}

bool mr_script_still_runs(const mr_script *s, const mr_script_meeting *m, int line, int function) {
    int front = s ? mr_script_front(s, m->first.line) : 0;
    if (!s && m->lowest && (m->lowest < line || m->highest > line)) return false;
    if (!front) return line == m->first.line;
    if (!mr_script_is_within(s, front, line) || function != mr_script_function(s, front))
        return false;
    return !m->lowest || !(is_elsewhere(s, front, m->lowest) || is_elsewhere(s, front, m->highest));
}

bool mr_script_comes_before(const mr_script *s, const mr_script_spot *spot, mr_site where) {
    return s ? mr_script_is_within(s, spot->front, where.line) : where.line == spot->front;
}

bool mr_script_new_local(const mr_script *s, const mr_script_spot *from, const mr_script_spot *to,
                         bool (*is_taken)(const void *context, const char *name),
                         const void *context, char *name, size_t size) {
    static const char *const names[] = {"e",  "ready", "done", "e2", "e3", "e4",
                                        "e5", "e6",    "e7",   "e8", "e9", NULL};
    const char *const *free_name = names;
    if (!s || from->where.file != to->where.file || to->place == MR_SCRIPT_WITHIN) return false;
    while (*free_name && (mr_script_uses(s, *free_name) || is_taken(context, *free_name)))
        free_name++;
    bool fits = *free_name && mr_script_reaches(s, from->front, to->front);
    if (fits) snprintf(name, size, "%s", *free_name);
    return fits;
}
