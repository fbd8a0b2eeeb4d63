/* The userdata of an event; the box owns one reference, like that of a stream. */
#include "bind/machine/event.h"
#include "bind/explore.h"
#include "bind/internal.h"
#include "bind/machine/ipc.h"
#include "bind/machine/polls.h"
#include "bind/open.h"
#include "bind/outside.h"
#include "bind/registry.h"
#include "graph/graph.h"
#include "model/capture.h"
#include "model/observer.h"
#include "model/outside.h"

/* --- state, check, constructor ------------------------------------------------------------------ */

/* The backend's slots for events that several processes share; NULL: this event is not shared. */
static const mr_outside_slots *check_processes(lua_State *L, const mr_caller *caller,
                                               const mr_option_slots *given,
                                               const mr_event_options *options) {
    const mr_outside_slots *slots;
    int handle = mr_option_at(L, given, "ipc");
    if (!handle && mr_option_at(L, given, "device"))
        mr_misuse(
            L, "event: option `device` is for `ipc`: an event belongs to the device of the stream "
               "on which it is first recorded");
    if (!handle && !options->interprocess) return NULL;
    if (options->timing || (handle && (options->interprocess || options->blocking)))
        mr_misuse(L, "event: an event of several processes takes no %s",
                  options->timing
                      ? "time stamps: leave out timing=true"
                      : "options of the one that made it: expected ipc, device and name");
    mr_raise(L, mr_outside_of(caller->machine, handle ? "event{ipc=}" : "event{interprocess=true}",
                              MR_NO_IPC_EVENTS, &slots));
    if (handle && caller->machine->memory.limit)
        mr_misuse(L, "event: --sandbox takes no handles of other processes");
    mr_bind_explore_refuse(L, "an event of several processes: " MR_OUTSIDE_NOT_EXPLORED);
    if (handle) mr_check_ipc_handle(L, handle, "event");
    return slots;
}

static void open_handle(lua_State *L, const mr_caller *caller, const mr_option_slots *given,
                        const mr_outside_slots *slots, mr_event *event) {
    mr_device *device = mr_option_device(L, given, "device");
    const char *handle = mr_check_ipc_handle(L, mr_option_at(L, given, "ipc"), "event");
    if (!device) device = caller->machine->current_device;
    mr_raise(L, slots->event_import(event, device, handle));
    mr_share_event(caller, event, "event{ipc=}");
}

MR_FUNCTION(
    mr_event_new, "event",
    "mr.event([opts: {timing: boolean=false, blocking: boolean=false, interprocess: boolean=false, "
    "ipc: string, device: device|integer|string, name: string}]) -> e: event",
    "Makes an event. The event belongs to the device of the stream on which it is first recorded "
    "(R14). elapsed_time needs `timing=true`. With `blocking=true`, the host sleeps instead of "
    "polling while it waits for the event; this does not change any order (R18). With "
    "interprocess=true, other processes can use it by e:ipc_handle(); such an event takes no time "
    "stamps. `ipc`: the handle of an event of another process; it is opened on the current device, "
    "or on `device`. Not available on the virtual GPU.") {
    static const char *const known[] = {"timing", "blocking", "interprocess", "ipc", "device",
                                        "name",   NULL};
    mr_caller caller = mr_enter(L);
    mr_option_slots given = mr_check_options(L, 1, known);
    mr_event_options options = {
        .timing = mr_option_boolean(L, &given, "timing", false),
        .blocking = mr_option_boolean(L, &given, "blocking", false),
        .interprocess = mr_option_boolean(L, &given, "interprocess", false),
        .name = mr_option_name(L, &given, "name"),
    };
    const mr_outside_slots *slots = check_processes(L, &caller, &given, &options);
    mr_event **box = mr_new(L, &mr_kind_event, sizeof *box);
    mr_raise(L, mr_event_create(&caller, &options, box));
    int handle = mr_option_at(L, &given, "ipc");
    if (handle) open_handle(L, &caller, &given, slots, *box);
    mr_registry_add(L, *box);
    return 1;
}

/* --- methods ------------------------------------------------------------------------------------ */

/* The option `external`: in a capture, each launch makes the record or wait itself (R45). */
static bool is_external(lua_State *L, int arg) {
    static const char *const known[] = {"external", NULL};
    mr_option_slots given = mr_check_options(L, arg, known);
    return mr_option_boolean(L, &given, "external", false);
}

void mr_event_record_with(lua_State *L, const mr_caller *caller, int event_arg, mr_stream *stream,
                          int options) {
    bool external = is_external(L, options);
    mr_event *event = mr_check_event(L, event_arg);
    if (external && stream->capture)
        mr_raise(L, mr_capture_external(caller, MR_COMMAND_RECORD, event, stream));
    else mr_raise(L, mr_event_record(caller, event, stream));
}

void mr_event_wait_with(lua_State *L, const mr_caller *caller, mr_stream *stream, int event_arg,
                        int options) {
    bool external = is_external(L, options);
    mr_event *event = mr_check_event(L, event_arg);
    if (external && stream->capture)
        mr_raise(L, mr_capture_external(caller, MR_COMMAND_WAIT, event, stream));
    else mr_raise(L, mr_stream_wait_event(caller, stream, event));
}

MR_FUNCTION(
    event_record, "record", "e:record([s: stream [, opts: {external: boolean=false}]]) -> e: event",
    "Captures all work that was submitted to `s` (default: the current stream) so far. "
    "Replaces the previous record (R11, R12). `external`: if `s` captures a graph, each launch "
    "records the event (R45).") {
    mr_caller caller = mr_enter(L);
    mr_check_event(L, 1);
    mr_event_record_with(L, &caller, 1, mr_opt_stream(L, 2), 3);
    lua_settop(L, 1);
    return 1;
}

MR_FUNCTION(
    event_wait, "wait", "e:wait([s: stream [, opts: {external: boolean=false}]])",
    "Later work of `s` (default: the current stream) waits for the most recent record. The "
    "host does not wait (R12, R15). `external`: if `s` captures a graph, each launch waits for "
    "the record that is then the most recent (R45).") {
    mr_caller caller = mr_enter(L);
    mr_check_event(L, 1);
    mr_event_wait_with(L, &caller, mr_opt_stream(L, 2), 1, 3);
    return 0;
}

MR_FUNCTION(
    event_synchronize, "synchronize", "e:synchronize()",
    "The host waits for the most recent record. If there is none, it returns at once (R13).") {
    mr_caller caller = mr_enter(L);
    mr_raise(L, mr_event_synchronize(&caller, mr_check_event(L, 1)));
    return 0;
}

MR_FUNCTION(
    event_query, "query", "e:query() -> done: boolean",
    "Returns whether the work that the most recent record captured is done; true if the event was "
    "never recorded (R13). Never waits. The answer `true` orders like synchronize.") {
    bool done;
    mr_caller caller = mr_enter(L);
    mr_raise(L, mr_event_query(&caller, mr_check_event(L, 1), &done));
    mr_polls_note(L, &caller, done);
    lua_pushboolean(L, done);
    return 1;
}

/* Asked here: only bind knows the script's line, which the capture's error names. */
static void ask_capture(lua_State *L, const mr_caller *caller, mr_event *event) {
    mr_raise(L, mr_capture_ask_host(caller, MR_ASK_EVENT, "elapsed_time", NULL, event, NULL));
}

static int push_elapsed(lua_State *L, const mr_caller *caller, mr_event *from, mr_event *to) {
    double milliseconds;
    mr_observers_learned(caller->machine); /* an error also tells the host something */
    ask_capture(L, caller, from);
    ask_capture(L, caller, to);
    mr_raise(L, mr_event_elapsed(from, to, &milliseconds));
    mr_push_time(L, "elapsed_time", milliseconds);
    return 1;
}

MR_FUNCTION(event_elapsed_time, "elapsed_time", "e:elapsed_time(later: event) -> ms: number",
            "Returns the milliseconds on the device between the two records. There are three "
            "different errors: the event was made without timing=true, it was never recorded, or "
            "the record is not complete (R17).") {
    mr_caller caller = mr_enter(L);
    mr_event *from = mr_check_event(L, 1);
    return push_elapsed(L, &caller, from, mr_check_event(L, 2));
}

MR_FUNCTION(event_sub, "__sub", "later - earlier -> ms: number",
            "The same as earlier:elapsed_time(later).") {
    mr_caller caller = mr_enter(L);
    mr_event *to = mr_check_event(L, 1);
    return push_elapsed(L, &caller, mr_check_event(L, 2), to);
}

MR_FUNCTION(
    event_close, "close", "e:close()",
    "Closes the event. Returns at once; waits that are already submitted stay valid (R19).") {
    mr_set_context(L);
    mr_bind_explore_closes_event(L, mr_event_at(L, 1));
    mr_raise(L, mr_event_close(mr_event_at(L, 1)));
    return 0;
}

MR_FUNCTION(event_close_variable, "__close", "", "The end of a <close> variable: e:close().") {
    mr_set_context(L);
    mr_bind_explore_closes_event(L, mr_event_at(L, 1));
    mr_error_destroy(mr_event_close(mr_event_at(L, 1)));
    return 0;
}

MR_FUNCTION(event_gc, "__gc", "", "Drops the reference; waits for nothing (R19).") {
    mr_event **box = mr_check(L, 1, &mr_kind_event);
    mr_set_context(L);
    mr_event_release(*box);
    *box = NULL;
    return 0;
}

MR_FUNCTION(event_tostring, "__tostring", "",
            "\"event `ready`\" or \"event #3\", and whether recorded.") {
    char text[256];
    mr_event *event = mr_event_at(L, 1);
    mr_bind_explore_tells_number(L);
    bool is_recorded = event->record_seq || event->shared; /* or that is unknown */
    const char *state = event->closed ? " (closed)" : is_recorded ? "" : " (never recorded)";
    lua_pushfstring(L, "%s%s", mr_event_describe(event, text, sizeof text), state);
    return 1;
}

/* --- properties --------------------------------------------------------------------------------- */

static int get_device(lua_State *L) {
    mr_event *event = mr_event_at(L, 1);
    if (event->device) mr_push_device(L, event->device);
    else lua_pushnil(L);
    return 1;
}

static int get_timing(lua_State *L) {
    lua_pushboolean(L, mr_event_at(L, 1)->timing);
    return 1;
}

static int get_blocking(lua_State *L) {
    lua_pushboolean(L, mr_event_at(L, 1)->blocking);
    return 1;
}

static int get_name(lua_State *L) {
    lua_pushstring(L, mr_name_text(mr_event_at(L, 1)->name)); /* NULL pushes nil */
    return 1;
}

static int get_id(lua_State *L) {
    mr_bind_explore_tells_number(L);
    lua_pushinteger(L, mr_event_number(mr_event_at(L, 1)));
    return 1;
}

static int get_recorded(lua_State *L) {
    lua_pushboolean(L, mr_event_at(L, 1)->record_seq != 0);
    return 1;
}

static int get_closed(lua_State *L) {
    lua_pushboolean(L, mr_event_at(L, 1)->closed);
    return 1;
}

static const mr_property event_properties[] = {
    {"device", "device?", "The device of its first record; nil before that (R14).", get_device},
    {"timing", "boolean", "Whether it stores time stamps, for elapsed_time.", get_timing},
    {"blocking", "boolean", "Whether the host sleeps while it waits for the event (R18).",
     get_blocking},
    {"name", "string?", "The name given at creation.", get_name},
    {"id", "integer", "A unique number.", get_id},
    {"recorded", "boolean",
     "Whether it has been recorded. A wait for an event that was never recorded has no effect "
     "(R13).",
     get_recorded},
    {"closed", "boolean", "Whether it has been closed.", get_closed},
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
                                 "A mark in a stream. Its record stands for all work that was in "
                                 "the stream at the time of the record.",
                                 event_functions, event_properties, &mr_kind_event};

static const mr_function *const module_functions[] = {&mr_event_new_function, NULL};
const mr_class mr_events_class = {"mr", "Events.", module_functions, NULL, NULL};

void mr_open_event(lua_State *L) {
    mr_class_open(L, &mr_event_class);
    mr_table_open(L, &mr_events_class);
}
