/* A script's text as the checker's fixes need it: where a line can be put in, and what a name means there. Read
 * when a report is written and at no other time. A place is "in front of line n"; behind line n is in front of
 * line n + 1. */
#ifndef MR_SCRIPT_SCRIPT_H
#define MR_SCRIPT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mr_script mr_script;

/* Those read last; zeroed at first. */
typedef struct {
    mr_script *kept[4];
    unsigned next;
} mr_scripts;

/* A reference; NULL: no such file, too large, or not Lua. */
mr_script *mr_script_read(mr_scripts *scripts, const char *path);
/* The same of a text that is not a file, such as an entry of the prompt, under the name that reports give it. Not
 * bounded in size; NULL: not Lua, or no memory. */
mr_script *mr_script_of(mr_scripts *scripts, const char *name, const char *text);
void mr_scripts_free(mr_scripts *scripts);
void mr_script_free(mr_script *script); /* accepts NULL */

/* The line on which `text` begins, where a script's text or a file contains it unchanged (in a long string). 0: it is
 * not there; -1: it is there more than once. */
int mr_script_line_in(const char *script, const char *text, size_t size);
int mr_script_line_in_file(const char *path, const char *text, size_t size);

const char *mr_script_text(const mr_script *script);
int mr_script_line_count(const mr_script *script);
/* The text of a line without its end; NULL: there is no such line. */
const char *mr_script_line(const mr_script *script, int line, int *out_length);

/* A local that is visible at the end of the main chunk, or just before its `return`. */
typedef struct {
    const char *name; /* not terminated */
    int length;
    bool is_const, is_close; /* by its attribute; a <close> variable is constant, too */
} mr_script_local;

/* Those of the main chunk in the order of their declarations; the last one with a name is in force. *next begins at
 * 0. False: there are no more. */
bool mr_script_next_local(const mr_script *script, size_t *next, mr_script_local *out_local);
/* Where in the text the `return` of the main chunk begins, in bytes; -1: it has none. */
long mr_script_return_at(const mr_script *script);
bool mr_script_is_empty(const mr_script *script); /* nothing but space and comments */
/* The offset in bytes of a `;` that ends the text; -1: none. Also where the text before it ends, without a comment. */
long mr_script_quiet_at(const mr_script *script);
long mr_script_ends_at(const mr_script *script);
/* `_[7]` of the main chunk's text from *next on, with *out_entry = 7 and where it stands; *next begins at 0. */
bool mr_script_next_value(const mr_script *script, size_t *next, long *out_from, long *out_to,
                          long long *out_entry);

/* The line on which the statement around `line` begins, if a line can be inserted in front of it. For that, the
 * statement must be the first on its line, and a run must reach it. 0: there is none. The condition of `until` counts
 * as a statement of the loop's body. */
int mr_script_front(const mr_script *script, int line);
/* A line inserted in front of the result runs as soon as the statements of `line` are done. 0: there is none, as after
 * a return, or where `line` defines a function, whose body runs at other times. */
int mr_script_behind(const mr_script *script, int line);
/* The line has the body of a function that is not called immediately, as far as the text shows. */
bool mr_script_defines(const mr_script *script, int line);

/* The first line of the function whose body the place is in; 0: the main chunk. */
int mr_script_function(const mr_script *script, int front);
/* The place is in a loop of its function. */
bool mr_script_in_loop(const mr_script *script, int front);
bool mr_script_is_loop(const mr_script *script, int front); /* the statement that begins there */
/* A loop: the lines of its text, and the one in front of which a new line runs at the end of each turn; 0: none. */
typedef struct {
    int first, last;
    int end;
} mr_script_turns;

/* A loop among the statements that begin on line `front` runs code of `line` at each turn: a condition, or a body that
 * has no line of its own. `by_iterator`: it is the call that a `for` makes for the next values. The outermost loop. */
bool mr_script_repeats(const mr_script *script, int front, int line, bool by_iterator,
                       mr_script_turns *out);
/* `line` is in a statement that begins on line `front` or, for a loop, in its body. */
bool mr_script_is_within(const mr_script *script, int front, int line);
/* In the function that begins on line `function` (0: the main chunk), the innermost statement that has `line`, or
 * another statement on the same lines, also has the line `other`. False: that function does not have `line`. */
bool mr_script_is_beside(const mr_script *script, int line, int function, int other);
/* `line` has the body of a loop, in the function of the place `front`. */
bool mr_script_loops(const mr_script *script, int front, int line);
/* A run comes to several statements that begin on that line. */
bool mr_script_has_several(const mr_script *script, int front);
/* The same run reaches a call of that name after another statement of the line, or after another such call. */
bool mr_script_is_later(const mr_script *script, int front, const char *name);

/* The declaration that the name refers to at the place: a number that is the same for the same declaration, 0 for a
 * global. */
int mr_script_binding(const mr_script *script, const char *name, int front);
/* It is a local of the main chunk, outside of any block: there is one variable each time that the chunk runs. */
bool mr_script_is_of_chunk(const mr_script *script, const char *name, int front);
/* Counts the statements that begin on these lines and assign to the variable of that binding (see
 * mr_script_binding). With MR_SCRIPT_FIELD: to a field of that name of any table. A declaration
 * is not an assignment. */
enum { MR_SCRIPT_FIELD = -1 };
int mr_script_assigns(const mr_script *script, const char *name, int binding, int first, int last);
/* A local that is declared at the place `from` is visible at the later place `to`. */
bool mr_script_reaches(const mr_script *script, int from, int to);
bool mr_script_uses(const mr_script *script, const char *name); /* anywhere */
/* The statement of `line` begins there and is a call whose result is dropped. */
bool mr_script_is_call(const mr_script *script, int line);
/* Counts the calls by that name in the statements that begin on line `front`. */
int mr_script_count(const mr_script *script, int front, const char *name);
/* There, a call of `second` follows a call of `first`, and the same run reaches both. */
bool mr_script_follows(const mr_script *script, int front, const char *first, const char *second);
/* No function that is called at other times contains one of the two lines and not the other. */
bool mr_script_is_one_run(const mr_script *script, int line, int other);
/* The statement after a call of that name on `line` is a call of `synchronize` on `wait_line`, and no other code of the
 * script runs between the two. */
bool mr_script_waits_at_once(const mr_script *script, int line, const char *name, int wait_line);
/* A call of that name is the last code on `line`. */
bool mr_script_ends_with(const mr_script *script, int line, const char *name);
/* The statements that begin on line `front` may call the function of `line`, as far as names tell. A call without a
 * name may call each function. If line `last` has the condition of a body, the lines of that body after it do not
 * count. */
bool mr_script_leads_to(const mr_script *script, int front, int last, int line);
/* The block of the place contains `t[name]`, with the variable `name` that is visible at the place. */
bool mr_script_indexes(const mr_script *script, int front, const char *name);
/* `table[2]` is written in that block. */
bool mr_script_names_entry(const mr_script *s, int front, const char *table, long long index);
/* True if the statements of `line` run in the same state, such as the current stream, as a line in front of `front`.
 * They are the next statements, and none of them is in a function of its own. */
bool mr_script_is_direct(const mr_script *script, int front, int line);
/* The only variable of the `for ... in` on line `loop` whose value the statement of `line` uses. Another use than as a
 * value does not count, such as `x.y`, `x(1)`, or a call of a method that is not `method`. False: there is not exactly
 * one, the text assigns to it, or it is not visible at `front`. */
bool mr_script_loop_variable(const mr_script *script, int loop, int line, const char *method,
                             int front, char *out, size_t size);
/* A statement on `line` is the only call of `name` there and sets `option`: that of the line, or one in a function that
 * this hands to a call. *out: the variable that gets its result and is visible at `front`; "": the result is dropped.
 * False: neither. */
bool mr_script_result(const mr_script *script, int line, const char *name, const char *option,
                      int front, char *out, size_t size);

#endif
