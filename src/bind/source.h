/* The files that scripts were run from: the only ones that the checker reads to place a fix. A chunk's own name does
 * not count, since load(text, "@/any/file") can claim any name. */
#ifndef MR_BIND_SOURCE_H
#define MR_BIND_SOURCE_H

#include <lua.h>

#include "model/command.h"
#include "script/script.h"

/* From now on Lua's loadfile, dofile and require note the files that they run. Also notes the script in `arg`. Not
 * called in a sandbox, so there no file is ever read. */
void mr_source_watch(lua_State *L);
/* The main script, with which the program was started. `is_main` allocates no Lua memory. */
void mr_source_add_main(lua_State *L, const char *path);
bool mr_source_is_main(lua_State *L, const char *file);

/* Entries of a prompt are chunks called "mr:1", "mr:2", ... Their texts are read like files, and for a report their
 * variables that later entries see are variables of the script. */
#define MR_SOURCE_ENTRY "mr:"
int mr_source_entry(const char *file); /* 7 for "mr:7"; 0: it is not an entry */
/* Pops the text. An entry that was loaded from a file keeps the name of the file; else `file` is NULL. */
void mr_source_set_entry(lua_State *L, int number, const char *file);
/* "mr:7", or a file that became an entry */
bool mr_source_is_entry(lua_State *L, const char *file);
/* True for an entry that was typed where a script has stopped. It sees the variables of the stop, and no later entry
 * sees its own. */
bool mr_source_is_stop(const char *file);
/* Pops the table of these variables, which the prompt keeps up to date. Each name leads to a function whose first
 * upvalue is the variable, or to a value that is not a function. */
void mr_source_set_locals(lua_State *L);
bool mr_source_push_locals(lua_State *L); /* false, and pushes nothing: there is no prompt */

/* The line on which the function of that frame begins; 0 for the main chunk, also that of an entry. `s`: the script
 * that the frame is of, or NULL. */
int mr_source_function(lua_State *L, const mr_script *s, const lua_Debug *frame);

/* Keeps the chunk's name for its lines, however many other names the script makes up (base/intern.h). */
void mr_source_keep_name(lua_State *L, const char *name);

/* The text of a script's file; NULL: it is not one, or mr_script_read fails. */
mr_script *mr_source_read(lua_State *L, const char *file);
/* The place where `text` begins, if exactly one of these files and entries contains it literally, once. The name in
 * `out` lives as long as the machine. */
bool mr_source_locate(lua_State *L, const char *text, size_t size, mr_site *out);

#endif
