/* The checker's questions about the script, and its written reports: see hooks.h. */
#include "bind/hazard/hooks.h"

#include <stdio.h>

#include "base/output.h"
#include "bind/hazard/hazard.h"
#include "bind/internal.h"
#include "bind/source.h"
#include "bind/wrap.h"
#include "collective/comm.h"
#include "collective/ranks.h"

/* ---- whose names */

typedef struct {
    void (*look)(void *asked);
    void *asked;
} looking;

static int look_protected(lua_State *L) {
    const looking *l = lua_touserdata(L, 1);
    l->look(l->asked);
    return 0;
}

/* What the thread of a parked rank raised would be caught on the rank's own C stack. */
static bool as_host(void *context, uint16_t rank, void (*look)(void *asked), void *asked) {
    mr_bind_answerer *s = context;
    lua_State *L = s->machine->hooks.context;
    const mr_module *module = mr_bind_module(L);
    bool has_ranks = module && module->spawner;
    lua_State *parked = has_ranks ? module->parked_rank(module->spawner, rank - 1u) : NULL;
    looking l = {look, asked};
    s->rank = rank;
    bool has_looked = true;
    if (parked) {
        unsigned telling = s->machine->observing.telling;
        s->machine->hooks.context = parked;
        has_looked = mr_try_quietly(parked, look_protected, &l);
        s->machine->hooks.context = L;
        s->machine->observing.telling = telling; /* an error may have left a question */
    } else {
        look(asked);
    }
    s->rank = 0;
    return has_looked;
}

/* bind/gcstress.h: the checker has pointers into its state, also outside of a command. */
static void begin_question(const mr_bind_answerer *s) {
    s->machine->observing.telling++;
}

static bool end_question(const mr_bind_answerer *s, bool answer) {
    s->machine->observing.telling--;
    return answer;
}

#define QUIETLY(s, question) (begin_question(s), end_question(s, question))

static const mr_stream *current(void *context) {
    const mr_bind_answerer *s = context;
    const mr_module *module = mr_bind_module(s->machine->hooks.context);
    if (s->rank && module && module->collectives)
        return mr_ranks_stream(module->collectives, s->rank - 1u);
    return s->machine->current_device->current;
}

static bool variable(void *context, const mr_hazard_object *object, mr_site front, char *out,
                     size_t size) {
    const mr_bind_answerer *s = context;
    return QUIETLY(s, mr_bind_variable(s->machine->hooks.context, object, front, out, size));
}

static bool holder(void *context, const mr_hazard_object *object, char *out, size_t size,
                   mr_site *out_held) {
    const mr_bind_answerer *s = context;
    return QUIETLY(s, mr_bind_holder(s->machine->hooks.context, object, out, size, out_held));
}

static bool is_running(void *context, mr_site front) {
    const mr_bind_answerer *s = context;
    return QUIETLY(s, mr_bind_is_running(s->machine->hooks.context, front));
}

static bool before(void *context, const mr_script_meeting *meeting, mr_script_spot *out_spot) {
    const mr_bind_answerer *s = context;
    return QUIETLY(s, mr_bind_before(s->machine->hooks.context, meeting, out_spot));
}

static bool behind(void *context, mr_site where, bool is_over, mr_script_spot *out_spot) {
    const mr_bind_answerer *s = context;
    return QUIETLY(s, mr_bind_behind(s->machine->hooks.context, where, is_over, out_spot));
}

static bool still_runs(void *context, const mr_script_meeting *meeting) {
    const mr_bind_answerer *s = context;
    return QUIETLY(s, mr_bind_still_runs(s->machine->hooks.context, meeting));
}

static bool loop_variable(void *context, mr_site loop, mr_site use, const char *method,
                          const mr_script_spot *spot, char *out, size_t size) {
    const mr_bind_answerer *s = context;
    return QUIETLY(
        s, mr_bind_loop_variable(s->machine->hooks.context, loop, use, method, spot, out, size));
}

static bool waits_at_once(void *context, mr_site function, mr_site wait) {
    const mr_bind_answerer *s = context;
    return QUIETLY(s, mr_bind_waits_at_once(s->machine->hooks.context, function, wait));
}

static bool comes_before(void *context, const mr_script_spot *spot, mr_site where) {
    const mr_bind_answerer *s = context;
    return QUIETLY(s, mr_bind_comes_before(s->machine->hooks.context, spot, where));
}

static bool new_local(void *context, const mr_script_spot *from, const mr_script_spot *to,
                      bool (*is_taken)(const void *asker, const char *name), const void *asker,
                      char *name, size_t size) {
    const mr_bind_answerer *s = context;
    return QUIETLY(
        s, mr_bind_new_local(s->machine->hooks.context, from, to, is_taken, asker, name, size));
}

static bool ahead(void *context, const mr_script_spot *record, const mr_script_spot *wait,
                  const mr_script_meeting *meeting, const char *tensor, const char *stream,
                  bool (*is_taken)(const void *asker, const char *name), const void *asker,
                  mr_script_variable *out_ahead) {
    const mr_bind_answerer *s = context;
    return QUIETLY(s, mr_bind_ahead(s->machine->hooks.context, record, wait, meeting, tensor,
                                    stream, is_taken, asker, out_ahead));
}

static bool is_set_later(void *context, const mr_script_spot *spot, const char *expression) {
    const mr_bind_answerer *s = context;
    return QUIETLY(s, mr_bind_is_set_later(s->machine->hooks.context, spot, expression));
}

static bool is_direct(void *context, const mr_script_spot *spot, mr_site where) {
    const mr_bind_answerer *s = context;
    return QUIETLY(s, mr_bind_is_direct(s->machine->hooks.context, spot, where));
}

static bool result(void *context, mr_site call, const char *name, const char *option,
                   const mr_script_spot *spot, char *out, size_t size) {
    const mr_bind_answerer *s = context;
    return QUIETLY(s,
                   mr_bind_result(s->machine->hooks.context, call, name, option, spot, out, size));
}

static bool in_group(void *context, const mr_command *wait, const char **out_name,
                     mr_site *out_where) {
    const mr_bind_answerer *s = context;
    const mr_module *module = mr_bind_module(s->machine->hooks.context);
    bool is_stream = mr_command_kinds[wait->kind].after == MR_AFTER_STREAM;
    return module && module->collectives &&
           mr_collectives_collected(module->collectives, is_stream ? wait->stream : NULL,
                                    is_stream ? NULL : wait->u.device, out_name, out_where);
}

/* --- reports to standard error ------------------------------------------------------------------ */

/* The line of an entry of the prompt, which may have left the screen. */
static void quote(lua_State *L, mr_site where, mr_buffer *out) {
    int length = 0;
    mr_script *script =
        where.file && mr_source_entry(where.file) ? mr_source_read(L, where.file) : NULL;
    const char *line = script ? mr_script_line(script, where.line, &length) : NULL;
    if (line) mr_buffer_printf(out, "  %s:%d | %.*s\n", where.file, where.line, length, line);
    mr_script_free(script);
}

static void write_report(void *context, const mr_hazard_report *report, mr_hazard_news news) {
    const mr_bind_answerer *s = context;
    mr_buffer text = {0};
    begin_question(s);
    fflush(stdout);
    if (s->json) mr_hazard_write_json(report, &text);
    else if (news == MR_HAZARD_NEWS_REPORT) {
        bool is_one_line = report->first.where.file == report->second.where.file &&
                           report->first.where.line == report->second.where.line;
        mr_hazard_write_text(report, s->colour, &text);
        if (!is_one_line) quote(s->machine->hooks.context, report->first.where, &text);
        quote(s->machine->hooks.context, report->second.where, &text);
    } else mr_hazard_write_amended(report, news, s->colour, &text);
    if (text.data && s->json) mr_output_write(stderr, text.data, text.size);
    else if (text.data) mr_write_wrapped(stderr, text.data, text.size);
    mr_buffer_free(&text);
    end_question(s, true);
}

/* --- the table ---------------------------------------------------------------------------------- */

mr_hazard_hooks mr_bind_hazard_hooks(mr_bind_answerer *s) {
    return (mr_hazard_hooks){.context = s,
                             .write = write_report,
                             .as_host = as_host,
                             .current = current,
                             .variable = variable,
                             .holder = holder,
                             .is_running = is_running,
                             .before = before,
                             .behind = behind,
                             .still_runs = still_runs,
                             .comes_before = comes_before,
                             .waits_at_once = waits_at_once,
                             .new_local = new_local,
                             .ahead = ahead,
                             .is_set_later = is_set_later,
                             .is_direct = is_direct,
                             .result = result,
                             .loop_variable = loop_variable,
                             .in_group = in_group};
}
