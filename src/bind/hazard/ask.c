/* mr.hazard.readable: whether a stream or the host may read a tensor now, by the checker's knowledge. */
#include "bind/hazard/hazard.h"
#include "bind/open.h"

MR_FUNCTION(
    hazard_readable, "readable",
    "mr.hazard.readable(t: tensor [, s: stream]) -> readable: boolean?, writer: string?, "
    "where: string?",
    "Returns whether the next operation of that stream could read all of `t` without a hazard; "
    "without a stream: whether the host could. If not, also returns the operation that last wrote "
    "there without an order, and its line. Returns nil while the checker is off. "
    "Changes nothing.") {
    mr_set_context(L);
    mr_hazard *hazard = mr_bind_hazard(L);
    const mr_tensor *t = mr_check_tensor(L, 1);
    mr_stream *stream = lua_isnoneornil(L, 2) ? NULL : mr_check_stream(L, 2);
    mr_hazard_writer writer;
    if (mr_hazard_asked_mode(hazard) == MR_HAZARD_OFF && !mr_hazard_checking(hazard)) {
        lua_pushnil(L);
        return 1;
    }
    bool readable = mr_hazard_can_read(hazard, t, stream, &writer);
    lua_pushboolean(L, readable);
    if (readable) return 1;
    lua_pushstring(L, writer.op);
    mr_push_site(L, writer.where);
    return 3;
}

static const mr_function *const functions[] = {&hazard_readable_function, NULL};

const mr_class mr_hazard_ask_class = {"mr.hazard", "What the checker knows.", functions, NULL,
                                      NULL};

void mr_open_hazard_ask(lua_State *L) {
    lua_getfield(L, -1, "hazard");
    mr_table_open(L, &mr_hazard_ask_class);
    lua_pop(L, 1);
}
