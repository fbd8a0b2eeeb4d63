/* Paths of files that a script's calls read and write.
 *
 * While all schedules of a script are explored, nothing outside may change. lua/millrace/explore/outside.lua then says
 * for each path where the bytes are in this run: in a file of the run's own, or where the script says. */
#ifndef MR_BIND_PATH_H
#define MR_BIND_PATH_H

#include "bind/bind.h"

typedef enum {
    MR_PATH_READ,
    MR_PATH_WRITE,
    MR_PATH_WRITE_TIMES, /* the bytes hold times, which no two schedules have in common */
} mr_path_use;

/* Argument `arg`, a path as the user wrote it. Raises if it is none: no string, empty, or with a NUL. */
const char *mr_check_path(lua_State *L, const char *what, int arg);

/* Where that file is. The argument becomes this path, which the stack keeps. The ending stays the same. Raises what
 * the redirection raises, as for a file that nobody may write. */
const char *mr_path_of(lua_State *L, int arg, mr_path_use use);

/* redirect(fn|nil): from now on fn(path, use) says where a file is; use: "read", "write", "write times". */
int mr_path_tool_redirect(lua_State *L);

#endif
