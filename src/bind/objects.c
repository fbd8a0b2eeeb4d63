/* The script's devices, streams and events as userdata and as arguments; and options and lists
 * that hold objects. The methods of each kind are in a file of their own; a tensor's box is in
 * tensor_box.c. */
#include <stdlib.h>
#include <string.h>

#include "bind/internal.h"
#include "bind/open.h"
#include "bind/registry.h"

/* --- devices ------------------------------------------------------------------------------------ */

mr_device *mr_device_named(lua_State *L, const char *text) {
    static const char *const words[] = {"cuda", "virtual", "device"};
    mr_machine *machine = mr_bind_machine(L);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(text, words[i], length) != 0) continue;
        if (!text[length]) return machine->current_device;
        if (!strchr(": ", text[length])) continue;
        char *end;
        const char *digits = text + length + 1;
        long ordinal = strtol(digits, &end, 10);
        if (*digits < '0' || *digits > '9' || *end || ordinal >= machine->device_count)
            mr_misuse(L, "there is no device \"%.40s\": this machine has %d, from %s:0", text,
                      machine->device_count, words[i]);
        return machine->devices[ordinal];
    }
    return NULL;
}

mr_device *mr_check_device(lua_State *L, int arg) {
    mr_device **box = mr_test(L, arg, &mr_kind_device);
    if (box) return *box;
    if (lua_type(L, arg) == LUA_TSTRING) {
        mr_device *device = mr_device_named(L, lua_tostring(L, arg));
        if (device) return device;
    }
    if (lua_type(L, arg) != LUA_TNUMBER)
        mr_bad_argument(L, arg, "a device or its ordinal, or a name such as \"cuda:0\"");
    mr_machine *machine = mr_bind_machine(L);
    lua_Integer ordinal = mr_check_integer(L, arg);
    if (ordinal < 0 || ordinal >= machine->device_count)
        mr_raise(L, mr_fail(MR_CODE_INVALID_DEVICE,
                            "there is no device %lld: this machine has %d, numbered from 0",
                            (long long)ordinal, machine->device_count));
    return machine->devices[ordinal];
}

void mr_push_device(lua_State *L, mr_device *device) {
    if (mr_registry_push(L, device)) return;
    mr_device **box = mr_new(L, &mr_kind_device, sizeof *box);
    *box = device;
    mr_registry_add(L, device);
}

/* The object of a userdata of that kind. It is NULL after the finalizer; only the debug library can reach such a
 * userdata. */
static void *object_at(lua_State *L, int arg, const mr_kind *kind, const char *name) {
    void *object;
    memcpy(&object, mr_check(L, arg, kind), sizeof object);
    if (!object) mr_misuse(L, "the %s was already collected", name);
    return object;
}

/* --- streams ------------------------------------------------------------------------------------ */

mr_stream *mr_stream_at(lua_State *L, int arg) {
    return object_at(L, arg, &mr_kind_stream, "stream");
}

mr_stream *mr_check_stream(lua_State *L, int arg) {
    mr_stream *stream = mr_stream_at(L, arg);
    mr_raise(L, mr_stream_usable(stream));
    return stream;
}

mr_stream *mr_opt_stream(lua_State *L, int arg) {
    if (lua_isnoneornil(L, arg)) return mr_bind_machine(L)->current_device->current;
    return mr_check_stream(L, arg);
}

void mr_push_stream(lua_State *L, mr_stream *const *at) {
    if (mr_registry_push(L, *at)) return;
    mr_stream **box = mr_new(L, &mr_kind_stream, sizeof *box);
    if (mr_registry_push(L, *at)) { /* a finalizer made another userdata for it */
        lua_remove(L, -2);
        return;
    }
    *box = *at;
    mr_stream_retain(*box);
    mr_registry_add(L, *box);
}

/* --- events ------------------------------------------------------------------------------------- */

mr_event *mr_event_at(lua_State *L, int arg) {
    return object_at(L, arg, &mr_kind_event, "event");
}

mr_event *mr_check_event(lua_State *L, int arg) {
    mr_event *event = mr_event_at(L, arg);
    mr_raise(L, mr_event_usable(event));
    return event;
}

/* --- options ------------------------------------------------------------------------------------ */

mr_stream *mr_option_stream(lua_State *L, const mr_option_slots *options, const char *name) {
    int at = mr_option_at(L, options, name);
    if (!at) return NULL;
    if (!mr_test(L, at, &mr_kind_stream)) mr_bad_option(L, at, name, "a stream");
    return mr_check_stream(L, at);
}

mr_tensor *mr_option_tensor(lua_State *L, const mr_option_slots *options, const char *name) {
    int at = mr_option_at(L, options, name);
    if (!at) return NULL;
    if (!mr_test(L, at, &mr_kind_tensor)) mr_bad_option(L, at, name, "a tensor");
    return mr_check_tensor(L, at);
}

mr_device *mr_option_device(lua_State *L, const mr_option_slots *options, const char *name) {
    int at = mr_option_at(L, options, name);
    if (!at) return NULL;
    bool is_text = lua_type(L, at) == LUA_TSTRING;
    mr_device *named = is_text ? mr_device_named(L, lua_tostring(L, at)) : NULL;
    if (named) return named;
    if (is_text)
        mr_misuse(L,
                  "option `%s`: there is no device \"%.40s\": expected a device, its ordinal, or a "
                  "name such as \"cuda:0\"",
                  name, lua_tostring(L, at));
    if (lua_type(L, at) != LUA_TNUMBER && !mr_test(L, at, &mr_kind_device))
        mr_bad_option(L, at, name, "a device or its ordinal");
    return mr_check_device(L, at);
}

/* --- lists -------------------------------------------------------------------------------------- */

static void *check_tensor(lua_State *L, int index) {
    return mr_check_tensor(L, index);
}

static void *check_stream(lua_State *L, int index) {
    return mr_check_stream(L, index);
}

mr_tensor **mr_check_tensors(lua_State *L, int index, const char *what, int *out_count) {
    return (mr_tensor **)mr_check_list(L, index, what, &mr_kind_tensor, check_tensor, out_count);
}

mr_stream **mr_check_streams(lua_State *L, int index, const char *what, int *out_count) {
    return (mr_stream **)mr_check_list(L, index, what, &mr_kind_stream, check_stream, out_count);
}
