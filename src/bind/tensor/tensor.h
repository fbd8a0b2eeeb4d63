/* Functions that the tensor files share. The class "tensor" is too large for one file, so each file has a part of it. A
 * part is an mr_class of its own with the same name, which the reference page shows as a section. */
#ifndef MR_BIND_TENSOR_TENSOR_H
#define MR_BIND_TENSOR_TENSOR_H

#include "bind/tensor_box.h"

extern const mr_property mr_tensor_facts[]; /* facts.c: shape, dtype ... */

/* compare.c. Raises, naming both, when one is on the host or on another device. */
void mr_check_same_place(lua_State *L, const char *what, const mr_tensor *a, const mr_tensor *b);

/* index.c */
int mr_tensor_get_index(lua_State *L); /* __index for anything but a string */
int mr_tensor_set_index(lua_State *L); /* __newindex for anything but a string */
/* For a call of __index with an integer: whether ipairs asks for the row after the last. It ends there, as it does for
 * a table. */
bool mr_tensor_ends_ipairs(lua_State *L);

/* format.c. format(t): what mr.format returns, with rows that the terminal has room for. */
int mr_format_for_terminal(lua_State *L);

/* move.c. The tensor on the host, with its values now, in a userdata that is pushed. */
mr_tensor *mr_push_on_host(lua_State *L, const mr_caller *caller, mr_tensor *t);

#endif
