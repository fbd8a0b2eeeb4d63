/* Tensors as text. tostring(t) never reads the values. print(t) does, so it copies them to the host and
 * waits.
 *
 * Lua's print uses tostring only, so the module replaces it by mr.print when it is loaded. For everything
 * except tensors, mr.print does the same. */
#include <math.h>
#include <stdio.h>

#include "base/output.h"
#include "bind/open.h"
#include "bind/outside.h"
#include "bind/nn/gradient.h"
#include "bind/tensor/tensor.h"
#include "bind/wrap.h"

/* How wide the rows of a tensor may be on the terminal. */
static int terminal_width(void) {
    int width = mr_wrap_width(stdout);
    return width && width < MR_TENSOR_WIDTH ? width : MR_TENSOR_WIDTH;
}

/* Pushes the text of the tensor at `index`, which must be absolute. `called`: the function's name for messages. */
static void push_values_text(lua_State *L, const char *called, int index, int width) {
    mr_caller caller = mr_enter_as(L, called);
    mr_tensor *t = mr_check_tensor(L, index);
    mr_buffer *buffer = mr_push_buffer(L);
    mr_tensor_print(mr_push_on_host(L, &caller, t), t, width, buffer);
    mr_let_go(L, -1);
    lua_pop(L, 1);
    mr_push_gradient_text(L, index);
    mr_buffer_puts(buffer, lua_tostring(L, -1));
    lua_pop(L, 1);
    mr_buffer_to_text(L);
}

MR_FUNCTION(format_tensor, "format", "mr.format(t: tensor) -> string",
            "Returns the values as text, in the form that print shows. Long dims are shortened. "
            "The last line has dtype, shape and device, and says whether the tensor requires "
            "gradients. Copies the values to the host in the "
            "current stream and waits for it.") {
    mr_check_tensor(L, 1);
    lua_settop(L, 1);
    push_values_text(L, "format", 1, MR_TENSOR_WIDTH);
    return 1;
}

int mr_format_for_terminal(lua_State *L) {
    mr_check_tensor(L, 1);
    lua_settop(L, 1);
    push_values_text(L, "format", 1, terminal_width());
    return 1;
}

static bool is_nan(lua_State *L, int index) {
    return lua_type(L, index) == LUA_TNUMBER && isnan(lua_tonumber(L, index));
}

MR_FUNCTION(format_print, "print", "mr.print(...)",
            "Like Lua's print, but shows the values of tensors. It copies them to the host in the "
            "current stream and waits for it. A freed tensor raises an error. Loading the module "
            "makes this function the global print.") {
    int count = lua_gettop(L);
    for (int i = 1; i <= count; i++) {
        size_t size;
        if (mr_test_tensor(L, i)) push_values_text(L, "print", i, terminal_width());
        else if (is_nan(L, i)) lua_pushliteral(L, "nan"); /* Lua shows its sign, too */
        else luaL_tolstring(L, i, NULL);
        const char *text = lua_tolstring(L, -1, &size);
        if (i > 1) mr_print_text(L, "\t", 1, false);
        mr_print_text(L, text, size, false);
        lua_pop(L, 1);
    }
    mr_print_text(L, "\n", 1, false);
    mr_output_flush(stdout);
    return 0;
}

static const mr_function *const functions[] = {&format_tensor_function, &format_print_function,
                                               NULL};

const mr_class mr_format_class = {
    "mr",
    "Tensors as text. tostring(t) shows dtype, shape and device, and waits for nothing. print(t) "
    "shows the values.",
    functions,
    NULL,
    NULL,
};

void mr_open_format(lua_State *L) {
    mr_table_open(L, &mr_format_class);
    lua_getfield(L, -1, "print");
    lua_setglobal(L, "print");
}
