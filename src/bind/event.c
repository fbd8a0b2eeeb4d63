/* The userdata of an event; the box owns one reference, as a stream's does. */
#include "bind/internal.h"
#include "bind/registry.h"

/* --- state, check, constructor ------------------------------------------------------------------ */

static mr_event *event_at(lua_State *L, int arg) {
    mr_event **box = mr_check(L, arg, &mr_event_class);
    if (!*box) mr_misuse(L, "the event has been finalised"); /* only the debug library gets here */
    return *box;
}

mr_event *mr_check_event(lua_State *L, int arg) {
    mr_event *event = event_at(L, arg);
    mr_raise(L, mr_event_usable(event));
    return event;
}

MR_FUNCTION(
    mr_event_new, "event",
    "mr.event([opts: {timing: boolean=false, blocking: boolean=false, name: string}]) -> e: "
    "event",
    "A new event. It belongs to the device of the stream that it is first recorded on (R14). "
    "`timing` makes it usable for elapsed_time; `blocking` lets the host sleep rather than spin "
    "while it waits, which changes no order (R18).") {
    static const char *const known[] = {"timing", "blocking", "name", NULL};
    mr_machine *machine = mr_enter(L);
    mr_options_check(L, 1, known);
    mr_event_options options = {
        .timing = mr_option_boolean(L, 1, "timing", false),
        .blocking = mr_option_boolean(L, 1, "blocking", false),
        .name = mr_option_name(L, 1, "name"),
    };
    mr_event **box = mr_new(L, &mr_event_class, sizeof *box);
    mr_raise(L, mr_event_create(machine, &options, box));
    mr_registry_add(L, *box);
    return 1;
}

/* --- methods ------------------------------------------------------------------------------------ */

MR_FUNCTION(event_record, "record", "e:record([s: stream]) -> e: event",
            "Captures what has been submitted to `s` (the current stream if none is named) so far; "
            "replaces the record of before (R11, R12).") {
    mr_enter(L);
    mr_event *event = mr_check_event(L, 1);
    mr_raise(L, mr_event_record(event, mr_opt_stream(L, 2)));
    lua_settop(L, 1);
    return 1;
}

MR_FUNCTION(
    event_wait, "wait", "e:wait([s: stream])",
    "Later work of `s` (the current stream if none is named) waits for the most recent record; "
    "the host does not wait (R12, R15).") {
    mr_enter(L);
    mr_event *event = mr_check_event(L, 1);
    mr_raise(L, mr_stream_wait_event(mr_opt_stream(L, 2), event));
    return 0;
}

MR_FUNCTION(event_synchronize, "synchronize", "e:synchronize()",
            "The host waits for the most recent record; at once if there is none (R13).") {
    mr_enter(L);
    mr_raise(L, mr_event_synchronize(mr_check_event(L, 1)));
    return 0;
}

MR_FUNCTION(
    event_query, "query", "e:query() -> done: boolean",
    "Whether what the most recent record captured is done; true if it was never recorded (R13). "
    "Never waits; `true` orders like synchronize.") {
    bool done;
    mr_enter(L);
    mr_raise(L, mr_event_query(mr_check_event(L, 1), &done));
    lua_pushboolean(L, done);
    return 1;
}

static int push_elapsed(lua_State *L, mr_event *from, mr_event *to) {
    double milliseconds;
    mr_raise(L, mr_event_elapsed(from, to, &milliseconds));
    lua_pushnumber(L, milliseconds);
    return 1;
}

MR_FUNCTION(
    event_elapsed_time, "elapsed_time", "e:elapsed_time(later: event) -> ms: number",
    "Milliseconds on the device between the two records. Three different errors: not made with "
    "timing=true, never recorded, not complete yet (R17).") {
    mr_enter(L);
    mr_event *from = mr_check_event(L, 1);
    return push_elapsed(L, from, mr_check_event(L, 2));
}

MR_FUNCTION(event_sub, "__sub", "later - earlier -> ms: number",
            "The same as earlier:elapsed_time(later).") {
    mr_enter(L);
    mr_event *to = mr_check_event(L, 1);
    return push_elapsed(L, mr_check_event(L, 2), to);
}

MR_FUNCTION(event_close, "close", "e:close()",
            "Gives the event up: returns at once; waits already submitted stay valid (R19).") {
    mr_enter(L);
    mr_raise(L, mr_event_close(event_at(L, 1)));
    return 0;
}

MR_FUNCTION(event_close_variable, "__close", "", "The end of a <close> variable: e:close().") {
    mr_lend_stack(L);
    mr_error_destroy(mr_event_close(event_at(L, 1)));
    return 0;
}

MR_FUNCTION(event_gc, "__gc", "", "Drops the reference; waits for nothing (R19).") {
    mr_event **box = mr_check(L, 1, &mr_event_class);
    mr_lend_stack(L);
    mr_event_release(*box);
    *box = NULL;
    return 0;
}

MR_FUNCTION(event_tostring, "__tostring", "",
            "\"event `ready`\" or \"event #3\", and whether recorded.") {
    char text[256];
    mr_event *event = event_at(L, 1);
    const char *state = event->closed ? " (closed)" : event->record_seq ? "" : " (never recorded)";
    lua_pushfstring(L, "%s%s", mr_event_describe(event, text, sizeof text), state);
    return 1;
}

/* --- properties --------------------------------------------------------------------------------- */

static int get_device(lua_State *L) {
    mr_event *event = event_at(L, 1);
    if (event->device) mr_push_device(L, event->device);
    else lua_pushnil(L);
    return 1;
}

static int get_timing(lua_State *L) {
    lua_pushboolean(L, event_at(L, 1)->timing);
    return 1;
}

static int get_name(lua_State *L) {
    lua_pushstring(L, event_at(L, 1)->name); /* NULL pushes nil */
    return 1;
}

static int get_id(lua_State *L) {
    lua_pushinteger(L, event_at(L, 1)->id);
    return 1;
}

static int get_recorded(lua_State *L) {
    lua_pushboolean(L, event_at(L, 1)->record_seq != 0);
    return 1;
}

static int get_closed(lua_State *L) {
    lua_pushboolean(L, event_at(L, 1)->closed);
    return 1;
}

static const mr_property event_properties[] = {
    {"device", "device?", "Of its first record; nil before (R14).", get_device},
    {"timing", "boolean", "Whether it takes time stamps.", get_timing},
    {"name", "string?", "As given at creation.", get_name},
    {"id", "integer", "A number that no other event has.", get_id},
    {"recorded", "boolean",
     "Whether it has been recorded; a wait for one that has not delays nothing "
     "(R13).",
     get_recorded},
    {"closed", "boolean", "Whether it has been given up.", get_closed},
    {NULL, NULL, NULL, NULL}};

static const mr_function *const event_functions[] = {&event_record_function,
                                                     &event_wait_function,
                                                     &event_synchronize_function,
                                                     &event_query_function,
                                                     &event_elapsed_time_function,
                                                     &event_sub_function,
                                                     &event_close_function,
                                                     &event_close_variable_function,
                                                     &event_gc_function,
                                                     &event_tostring_function,
                                                     NULL};

const mr_class mr_event_class = {"event",
                                 "A name for everything that was in a stream when it was recorded.",
                                 event_functions, event_properties};

static const mr_function *const module_functions[] = {&mr_event_new_function, NULL};
const mr_class mr_events_class = {"mr", "Events.", module_functions, NULL};

void mr_open_event(lua_State *L, mr_machine *machine) {
    mr_class_open(L, machine, &mr_event_class);
    mr_table_open(L, machine, &mr_events_class);
}
