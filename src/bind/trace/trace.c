/* The userdata of a trace: its properties, printing and saving it. Traces are made in tracer.c. */
#include "bind/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "base/output.h"
#include "bind/hazard/hazard.h"
#include "bind/open.h"
#include "bind/outside.h"
#include "bind/source.h"
#include "bind/trace/parts.h"
#include "bind/wrap.h"
#include "trace/writers.h"

/* --- showing -------------------------------------------------------------------------------------- */

static mr_trace_terminal terminal_of(lua_State *L, const mr_option_slots *options) {
    bool at_terminal = isatty(STDOUT_FILENO);
    mr_trace_terminal terminal = {
        .width = (int)mr_option_integer(L, options, "width", mr_page_width()),
        .ascii = mr_option_boolean(L, options, "ascii", at_terminal && mr_output_is_ascii()),
        .color = mr_option_boolean(L, options, "color", mr_output_has_colour(stdout)),
        .is_brief = !mr_option_boolean(L, options, "short", true)};
    if (terminal.width < 40) terminal.width = 40;
    if (terminal.width > 1000) terminal.width = 1000;
    return terminal;
}

static const mr_trace *option_trace(lua_State *L, const mr_option_slots *options) {
    int at = mr_option_at(L, options, "before");
    return at ? mr_check_trace(L, at) : NULL;
}

/* Returns the output of a writer to a file, as a text. */
static mr_status text_of(const mr_trace *trace, const mr_trace *before,
                         const mr_trace_terminal *terminal, char **out_text, size_t *out_size) {
    FILE *file = open_memstream(out_text, out_size);
    if (!file) return mr_no_memory("to print a trace");
    mr_status status = before ? mr_trace_print_both(before, trace, terminal, file)
                              : mr_trace_print(trace, terminal, file);
    bool failed = ferror(file) != 0;
    if ((fclose(file) != 0 || failed) && !status) status = mr_no_memory("to print a trace");
    return status;
}

MR_FUNCTION(
    trace_print, "print",
    "tr:print([options: {width: integer, ascii: boolean, color: boolean, before: trace, short: "
    "boolean=true}])",
    "Prints the timeline: a lane for the host and for each stream, a bar for each operation, "
    "and what waited for what. `width` is in columns, at least 40; the terminal decides "
    "where no option is given. `before`: another trace, which is printed above it on the same "
    "axis. `short=false` leaves out the list of bars that are too short for a name.") {
    static const char *const known[] = {"width", "ascii", "color", "before", "short", NULL};
    mr_set_context(L);
    const mr_trace *trace = mr_check_trace(L, 1);
    mr_option_slots options = mr_check_options(L, 2, known);
    mr_trace_terminal terminal = terminal_of(L, &options);
    char *text = NULL;
    size_t size = 0;
    mr_status status = text_of(trace, option_trace(L, &options), &terminal, &text, &size);
    lua_pushlstring(L, status ? "" : text, status ? 0 : size);
    free(text);
    mr_raise(L, status);
    mr_print_text(L, lua_tostring(L, -1), size, true);
    mr_output_flush(stdout);
    return 0;
}

const char *mr_bind_trace_source(void *context, const char *file, size_t *out_size) {
    mr_buffer whole = {0};
    mr_hazard_whole_name(mr_bind_hazard(context), file, &whole);
    mr_script *script = whole.failed ? NULL : mr_source_read(context, whole.data);
    mr_buffer_free(&whole);
    if (!script) return NULL;
    const char *text = mr_script_text(script);
    *out_size = strlen(text);
    mr_script_free(script); /* the module keeps those that were read last */
    return text;
}

#define LARGE ((double)(16 << 20)) /* bytes: programs take long to open a larger file */

/* A page takes a twentieth of the size of Perfetto's format. */
static void say_if_large(const mr_trace *trace, const char *path) {
    struct stat status;
    char text[600];
    size_t length = strlen(path);
    bool is_page = length > 5 && strcasecmp(path + length - 5, ".html") == 0;
    if (stat(path, &status) != 0 || (double)status.st_size < LARGE) return;
    mr_number_format(text, sizeof text,
                     "millrace: %.300s has %.0f MB, for %d spans: %smr.timeline(fn) traces only "
                     "what fn does\n",
                     path, (double)status.st_size / (1 << 20), (int)mr_trace_count(trace),
                     is_page ? "" : "an .html of them is smaller, and ");
    mr_output_write_message(stderr, text, strlen(text));
}

mr_status mr_trace_save_as(lua_State *L, const mr_trace *trace, const mr_trace *before,
                           const char *path) {
    MR_TRY(mr_trace_is_png(path) ? mr_trace_save_png(trace, before, path)
                                 : mr_trace_save(trace, before, path, mr_bind_trace_source, L));
    say_if_large(trace, path);
    return MR_OK;
}

MR_FUNCTION(trace_save, "save", "tr:save(path: string [, options: {before: trace}])",
            "Writes the trace to a file. The ending of its name is the format: .html (a page to "
            "look at), .json (for Chrome and Perfetto), .svg, .png, or .dot (the order as a "
            "graph). .csv and .spans.json have the spans. A .png needs one of rsvg-convert, "
            "inkscape and magick in PATH. `before`: another trace to compare with (.html, .svg, "
            ".png). The file appears complete or not at all.") {
    static const char *const known[] = {"before", NULL};
    mr_set_context(L);
    const mr_trace *trace = mr_check_trace(L, 1);
    mr_check_path(L, "save", 2);
    const char *path = mr_path_of(L, 2, MR_PATH_WRITE_TIMES);
    mr_option_slots options = mr_check_options(L, 3, known);
    mr_raise(L, mr_trace_save_as(L, trace, option_trace(L, &options), path));
    return 0;
}

MR_FUNCTION(trace_len, "__len", "#tr -> count: integer", "The number of spans.") {
    lua_pushinteger(L, (lua_Integer)mr_trace_count(mr_check_trace(L, 1)));
    return 1;
}

MR_FUNCTION(trace_tostring, "__tostring", "", "\"trace of 12 spans on 2 streams, 3.214 ms\".") {
    const mr_trace *trace = mr_check_trace(L, 1);
    char text[120];
    int count = (int)mr_trace_count(trace), streams = (int)mr_trace_stream_count(trace);
    mr_number_format(text, sizeof text, "trace of %d span%s on %d stream%s, %.3f ms", count,
                     count == 1 ? "" : "s", streams, streams == 1 ? "" : "s",
                     mr_trace_ms(mr_trace_facts_of(trace)->duration));
    lua_pushstring(L, text);
    return 1;
}

MR_FUNCTION(trace_gc, "__gc", "", "Drops the trace.") {
    const mr_trace **box = mr_check(L, 1, &mr_kind_trace);
    mr_trace_release(*box);
    *box = NULL;
    return 0;
}

/* --- properties ----------------------------------------------------------------------------------- */

static int get_spans(lua_State *L) {
    lua_settop(L, 1);
    mr_push_spans(L, 1);
    return 1;
}

static int get_ms(lua_State *L) {
    lua_pushnumber(L, mr_trace_ms(mr_trace_facts_of(mr_check_trace(L, 1))->duration));
    return 1;
}

static int get_streams(lua_State *L) {
    const mr_trace *trace = mr_check_trace(L, 1);
    size_t count = mr_trace_stream_count(trace);
    lua_createtable(L, (int)count, 0);
    for (uint32_t i = 0; i < count; i++) {
        const mr_trace_stream *stream = mr_trace_stream_at(trace, i);
        lua_createtable(L, 0, 4);
        mr_set_text(L, "name", stream->name);
        lua_pushinteger(L, stream->id);
        lua_setfield(L, -2, "id");
        lua_pushinteger(L, stream->device);
        lua_setfield(L, -2, "device");
        lua_pushinteger(L, stream->priority);
        lua_setfield(L, -2, "priority");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int get_hazards(lua_State *L) {
    const mr_trace *trace = mr_check_trace(L, 1);
    size_t count = mr_trace_hazard_count(trace);
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        const mr_trace_hazard *hazard = mr_trace_hazard_at(trace, i);
        lua_createtable(L, 0, 5);
        mr_set_span(L, "first", hazard->first);
        mr_set_span(L, "second", hazard->second);
        mr_set_text(L, "kind", hazard->kind);
        mr_set_text(L, "message", hazard->message);
        mr_set_text(L, "fix", hazard->fix);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int get_facts(lua_State *L) {
    const mr_trace_facts *facts = mr_trace_facts_of(mr_check_trace(L, 1));
    lua_createtable(L, 0, 9);
    mr_set_text(L, "backend", facts->backend);
    mr_set_text(L, "device", facts->device);
    mr_set_text(L, "model", facts->model);
    mr_set_text(L, "chooser", facts->chooser);
    mr_set_text(L, "how", facts->how);
    mr_set_text(L, "script", facts->script);
    mr_set_ms(L, "began", facts->began);
    lua_pushinteger(L, (lua_Integer)facts->forgotten);
    lua_setfield(L, -2, "forgotten");
    lua_pushinteger(L, facts->device_count);
    lua_setfield(L, -2, "device_count");
    return 1;
}

static const mr_property trace_properties[] = {
    {"spans", "table[]",
     "One table for each command, in the order of submission. It has name, kind (\"op\", \"copy\", "
     "\"record\", ...), stream (its name, or \"host\"), where and seq. engine is \"sm\", "
     "\"copy-in\", ..., or \"host\" for actions of the host itself. start and finish are times of "
     "the device; nil: it has not run. Where they are known, it has ready, and called, returned "
     "and waited: the host's clock, and how long the host stood in the call. It also has bytes, "
     "blocks, event, record (index of the record that it waits for), held_by (the command that it "
     "waited for last) and holder (its index). A trace of several ranks has rank. Times are "
     "milliseconds since the trace began.",
     get_spans},
    {"ms", "number", "How long it took: the latest time of any span.", get_ms},
    {"streams", "table[]", "The streams: name, id, device, priority.", get_streams},
    {"hazards", "table[]",
     "Hazards that the checker reported: kind, message, fix, first and second (indices of spans).",
     get_hazards},
    {"facts", "table",
     "Where it is from: backend, device, model, chooser, how (how times were found), script, "
     "began (the host's clock at 0), forgotten (spans that are no longer there), device_count.",
     get_facts},
    {NULL, NULL, NULL, NULL}};

static const mr_function *const trace_functions[] = {&trace_print_function,
                                                     &trace_save_function,
                                                     &trace_overlap_function,
                                                     &trace_idle_function,
                                                     &trace_critical_path_function,
                                                     &trace_why_function,
                                                     &trace_compare_function,
                                                     &trace_len_function,
                                                     &trace_tostring_function,
                                                     &trace_gc_function,
                                                     NULL};

const mr_class mr_trace_class = {"trace",
                                 "The commands of a script, and when the devices ran them. It "
                                 "never changes. mr.timeline and mr.trace.stop create it.",
                                 trace_functions, trace_properties, &mr_kind_trace};

void mr_open_trace(lua_State *L) {
    mr_open_spans(L);
    mr_open_trace_answers(L);
    mr_class_open(L, &mr_trace_class);
}
