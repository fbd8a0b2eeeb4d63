/* Where a cure can be put in: from the script's text, and from the stack, which tells what runs now. Without the
 * text (a prompt, -e) the line itself is taken. */
#include <stdio.h>
#include <string.h>

#include "bind/hazard.h"
#include "bind/internal.h"
#include "bind/script_text.h"

/* Of one line, or of one statement: has it come round again, or are they two parts of the same run? The same
 * operation, written once, can only have come round; of two different ones the order in the text tells. */
static bool came_round(const mr_script *s, const mr_hazard_meeting *m, int front) {
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

/* The first access is of the statement, and nothing else was submitted between. */
static bool is_together(const mr_script *s, const mr_hazard_meeting *m, int front) {
    if (!m->first.file || m->first.file != m->second.file || !m->lowest) return false;
    if (!s) return m->lowest == m->second.line && m->highest == m->second.line;
    return m->lowest >= front && mr_script_is_within(s, front, m->highest);
}

/* In front of a loop it would come before the first access, if that is inside. */
static bool put(const mr_script *s, const mr_hazard_meeting *m, const char *file, int front,
                mr_hazard_spot *out_spot) {
    *out_spot = (mr_hazard_spot){MR_HAZARD_BEFORE, {file, front}, front};
    return !(s && file == m->first.file && m->first.line > front && mr_script_is_loop(s, front) &&
             mr_script_is_within(s, front, m->first.line));
}

/* Of the line that called what did the second: did it call what did the first, too, and before? Then nothing in front
 * of it helps. */
static bool is_between(const mr_script *s, const mr_hazard_meeting *m, const char *file,
                       const lua_Debug *frame, int front, const char *called) {
    if (!s) return false;
    bool of_file = file == m->first.file;
    bool has_first = of_file && mr_script_is_within(s, front, m->first.line);
    bool has_second = file == m->second.file && mr_script_is_within(s, front, m->second.line);
    if (has_first && has_second) return false; /* see came_round */
    if (!has_first && of_file && mr_script_is_one_run(s, front, m->first.line) &&
        !mr_script_defines(s, m->first.line))
        return false;
    return mr_script_loops(s, front, frame->currentline) || mr_script_has_several(s, front) ||
           (called && mr_script_count(s, front, called) > 1);
}

/* The innermost function in which the statement that runs now begins on a line of its own: a function that is
 * written and called on one line takes none. */
static bool put_into_frame(lua_State *L, const mr_hazard_meeting *m, mr_hazard_spot *out_spot) {
    lua_Debug frame;
    const char *called = NULL;
    for (int level = 0; mr_bind_frame(L, &level, &frame); level++) {
        const char *file = mr_bind_file(&frame);
        mr_script *s = mr_script_read(file);
        int line = frame.currentline, front = s ? mr_script_front(s, line) : line;
        bool inside = !s || (front && mr_script_function(s, front) == frame.linedefined);
        bool between = inside && is_between(s, m, file, &frame, front, called);
        bool fits = inside && put(s, m, file, front, out_spot);
        mr_script_free(s);
        if (between) out_spot->place = MR_HAZARD_WITHIN;
        if (inside) return between || fits;
        lua_getinfo(L, "nt", &frame);
        called = frame.name;
        if (frame.istailcall) return false; /* the line that called it is gone */
    }
    return false;
}

static bool runs_now(lua_State *L, mr_site where) {
    lua_Debug frame;
    int level = 0;
    return mr_bind_frame(L, &level, &frame) && mr_bind_file(&frame) == where.file &&
           frame.currentline == where.line;
}

bool mr_bind_before(lua_State *L, const mr_hazard_meeting *m, mr_hazard_spot *out_spot) {
    mr_script *s = mr_script_read(m->second.file);
    int line = m->second.line, front = s ? mr_script_front(s, line) : line;
    bool within = front && is_together(s, m, front) && !came_round(s, m, front);
    bool fits =
        front && !(s && mr_script_defines(s, line)) && put(s, m, m->second.file, front, out_spot);
    mr_script_free(s);
    if (within) *out_spot = (mr_hazard_spot){MR_HAZARD_WITHIN, {m->second.file, front}, front};
    if (within || !m->is_running || !runs_now(L, m->second)) return within || fits;
    return put_into_frame(L, m, out_spot);
}

bool mr_bind_behind(mr_site where, mr_hazard_spot *out_spot) {
    mr_script *s = mr_script_read(where.file);
    int front = s ? mr_script_behind(s, where.line) : where.line + 1;
    mr_script_free(s);
    *out_spot = (mr_hazard_spot){MR_HAZARD_AFTER, {where.file, front - 1}, front};
    return front > 0;
}

bool mr_bind_new_local(const mr_hazard_spot *from, const mr_hazard_spot *to,
                       bool (*is_taken)(const void *context, const char *name), const void *context,
                       char *name, size_t size) {
    static const char *const names[] = {"e",  "ready", "done", "e2", "e3", "e4",
                                        "e5", "e6",    "e7",   "e8", "e9", NULL};
    const char *const *free_name = names;
    if (from->where.file != to->where.file || to->place == MR_HAZARD_WITHIN) return false;
    mr_script *s = mr_script_read(from->where.file);
    if (!s) return false;
    while (*free_name && (mr_script_uses(s, *free_name) || is_taken(context, *free_name)))
        free_name++;
    bool fits = *free_name && mr_script_reaches(s, from->front, to->front);
    if (fits) snprintf(name, size, "%s", *free_name);
    mr_script_free(s);
    return fits;
}
