/* Places in a script's text for a new line, as data: the checker asks for them and shows them in reports, and
 * src/script finds them. */
#ifndef MR_SCRIPT_SPOT_H
#define MR_SCRIPT_SPOT_H

#include "base/status.h"

typedef enum {
    MR_SCRIPT_BEFORE, /* the line */
    MR_SCRIPT_AFTER,
    /* both operations are of that line: it has to be split, and this goes between */
    MR_SCRIPT_WITHIN,
} mr_script_place;

/* A place for a new line of Lua: as reports name it, and the line that it is inserted in front of, whose variables it
 * can use. Without a text, both are the same line. */
typedef struct {
    mr_script_place place;
    mr_site where;
    int front;
    bool in_loop; /* WITHIN: the body of a loop stands on that line; AFTER: the place is in one */
    bool has_namesake; /* WITHIN: the line calls several operations with the name of the second */
    /* BEFORE a loop: the same is needed in front of this line, at the end of its body; or 0 */
    int again;
} mr_script_spot;

/* Two accesses, and the range of lines of all work that was submitted between them. */
typedef struct {
    mr_site first, second;
    const char *first_op, *second_op;
    int lowest, highest; /* of second's file; 0: other files, too */
    bool is_running;     /* the script is in the middle of the second */
    bool is_call;        /* `second` calls the function that does it: the fix belongs outside */
    bool is_of_round;    /* the first used what the second's line had used last before */
} mr_script_meeting;

/* A variable for an event that is recorded anew each time that the first access runs. */
typedef struct {
    mr_script_spot made; /* where it is declared, so that both places see it */
    char name[16];
    char index[40]; /* it holds an event for each value of this; "": it is one event */
} mr_script_variable;

#endif
