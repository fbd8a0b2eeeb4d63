/* Tensors as a person reads them. tostring(t) never looks at the values; print(t) does, so it copies
 * them to the host and waits.
 *
 * Lua's print can only ask for tostring, so the module puts mr.print in its place when it is loaded:
 * the same for everything but tensors. */
#include <stdio.h>

#include "bind/tensor.h"

/* A buffer that the collector frees when pushing its text runs out of memory. */
static int buffer_gc(lua_State *L) {
    mr_buffer_free(lua_touserdata(L, 1));
    return 0;
}

static mr_buffer *push_buffer(lua_State *L) {
    static const char metatable; /* its address is the registry key */
    mr_buffer *buffer = lua_newuserdatauv(L, sizeof *buffer, 0);
    *buffer = (mr_buffer){0};
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &metatable) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_createtable(L, 0, 1);
        lua_pushcfunction(L, buffer_gc);
        lua_setfield(L, -2, "__gc");
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &metatable);
    }
    lua_setmetatable(L, -2);
    return buffer;
}

/* Pushes the text of the tensor at `index`, which must be absolute. */
static void push_values_text(lua_State *L, mr_machine *machine, int index) {
    int top = lua_gettop(L);
    mr_tensor *t = mr_check_tensor(L, index);
    mr_buffer *buffer = push_buffer(L);
    mr_tensor_print(mr_push_on_host(L, machine, t), t, buffer);
    mr_let_go(L, -1);
    if (buffer->failed || !buffer->data)
        mr_raise(L, mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for the text of a tensor"));
    lua_pushlstring(L, buffer->data, buffer->size);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    mr_buffer_free(buffer);
}

MR_FUNCTION(
    format_tensor, "format", "mr.format(t: tensor) -> string",
    "The values as text, as print shows them: long dims are shortened, and a line with dtype, "
    "shape and place ends it. Copies to the host in the current stream and waits for it.") {
    mr_machine *machine = mr_enter_as(L, "format");
    mr_check_tensor(L, 1);
    lua_settop(L, 1);
    push_values_text(L, machine, 1);
    return 1;
}

MR_FUNCTION(
    format_print, "print", "mr.print(...)",
    "Lua's print, but of tensors it shows the values, which are copied to the host in the current "
    "stream and waited for; a freed one raises. Loading the module makes it the global print.") {
    mr_machine *machine = mr_enter_as(L, "print");
    int count = lua_gettop(L);
    for (int i = 1; i <= count; i++) {
        size_t size;
        if (mr_test_tensor(L, i)) push_values_text(L, machine, i);
        else luaL_tolstring(L, i, NULL);
        const char *text = lua_tolstring(L, -1, &size);
        if (i > 1) lua_writestring("\t", 1);
        lua_writestring(text, size);
        lua_pop(L, 1);
    }
    lua_writeline();
    return 0;
}

static const mr_function *const functions[] = {&format_tensor_function, &format_print_function,
                                               NULL};

const mr_class mr_format_class = {
    "mr",
    "Tensors as text. tostring(t) shows dtype, shape and place and waits for nothing; print(t) "
    "shows "
    "the values.",
    functions,
    NULL,
};

void mr_open_format(lua_State *L, mr_machine *machine) {
    mr_table_open(L, machine, &mr_format_class);
    lua_getfield(L, -1, "print");
    lua_setglobal(L, "print");
}
