/* Where a fix of the checker can be inserted. `s` is the text of the file; NULL: the text is unknown (a prompt, -e),
 * and the line itself is taken. Results are described at the checker's hooks of the same names (mr_hazard_hooks). */
#ifndef MR_SCRIPT_PLACE_H
#define MR_SCRIPT_PLACE_H

#include "script/script.h"
#include "script/spot.h"

/* The place in front of the second access, found by its own line alone. */
bool mr_script_place_before(const mr_script *s, const mr_script_meeting *meeting,
                            mr_script_spot *out_spot);

/* A call that has not returned yet and led to the second access. */
typedef struct mr_script_call mr_script_call;
struct mr_script_call {
    const char *file;
    int line;
    int function;       /* the line on which its function begins; 0: the main chunk */
    const char *called; /* what it calls, as the line names it; NULL: an operator, or unknown */
    /* The innermost call that it led to from a function written on one line, which has no place; or NULL. */
    const mr_script_call *inner;
    bool is_after; /* the statement of the first access led to this call, and has not ended */
    bool is_gone;  /* a function between this call and the second access has ended by a tail call */
};

/* *out_inside: false where the function is written on the line of a call, which then takes the fix. */
bool mr_script_place_in_call(const mr_script *s, const mr_script_meeting *meeting,
                             const mr_script_call *call, mr_script_spot *out_spot,
                             bool *out_inside);

bool mr_script_place_behind(const mr_script *s, mr_site where, mr_script_spot *out_spot);
/* Whether a function that is at `line`, and begins on line `function`, is still in the run of the first access's
 * statement: it has submitted no work elsewhere since. */
bool mr_script_still_runs(const mr_script *s, const mr_script_meeting *meeting, int line,
                          int function);
bool mr_script_comes_before(const mr_script *s, const mr_script_spot *spot, mr_site where);
bool mr_script_new_local(const mr_script *s, const mr_script_spot *from, const mr_script_spot *to,
                         bool (*is_taken)(const void *context, const char *name),
                         const void *context, char *name, size_t size);
/* ahead.c */
bool mr_script_ahead(const mr_script *s, const mr_script_spot *record, const mr_script_spot *wait,
                     const mr_script_meeting *meeting, const char *tensor, const char *stream,
                     bool (*is_taken)(const void *context, const char *name), const void *context,
                     mr_script_variable *out);
bool mr_script_is_set_later(const mr_script *s, const mr_script_spot *spot, const char *expression);

#endif
