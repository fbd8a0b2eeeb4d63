/* Reads and writes of a script's calls outside of the machine: files and times.
 *
 * While all schedules of a script are explored, nothing outside may change, and each run is to get the same answers.
 * lua/millrace/explore/outside.lua then says where a file is, and what an answer is. */
#ifndef MR_BIND_OUTSIDE_H
#define MR_BIND_OUTSIDE_H

#include "bind/bind.h"

typedef enum {
    MR_PATH_READ,
    MR_PATH_WRITE,
    MR_PATH_WRITE_TIMES, /* the bytes hold times, which no two schedules have in common */
} mr_path_use;

/* Argument `arg`, a path as the user wrote it. Raises if it is not one: no string, empty, or with a NUL. */
const char *mr_check_path(lua_State *L, const char *what, int arg);

/* Where that file is: in a file of this run, or where the user says. The argument becomes this path, which the stack
 * keeps. The ending stays the same. Raises if the path is not allowed, for example for writing. */
const char *mr_path_of(lua_State *L, int arg, mr_path_use use);

/* Pushes the time in milliseconds that the call `name` returns: the given one, or that of an earlier run. */
void mr_push_time(lua_State *L, const char *name, double milliseconds);

/* Notes that the script reads times that differ in each run, such as a timeline's. */
void mr_note_times(lua_State *L);

/* For calls that print by themselves: writes to standard output, or to the run's captured output. `has_times`: the text
 * is a timeline. */
void mr_print_text(lua_State *L, const char *text, size_t size, bool has_times);

/* outside{file=, time=, times=, print=}, or nil. From now on file(path, use) says where a file is; use is "read",
 * "write" or "write times". time(name, ms) says what a call returns. times() is called when the script reads other
 * times, and print(text, has_times) for text that a call prints. */
int mr_outside_tool_set(lua_State *L);
/* absolute(path) -> the path from the root, without links on the way to the file; of a folder that is not there: as it
 * is */
int mr_outside_tool_absolute(lua_State *L);
/* new_random() -> math.random and math.randomseed with a generator of their own */
int mr_outside_tool_new_random(lua_State *L);

#endif
