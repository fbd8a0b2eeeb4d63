/* The known name that is nearest to a mistyped one, for "did you mean". */
#ifndef MR_BIND_NEAREST_H
#define MR_BIND_NEAREST_H

#include <stdbool.h>

#define MR_NEAREST_LONGEST 40 /* longer names are not compared */

typedef struct {
    const char *wanted;
    char best[MR_NEAREST_LONGEST + 1];
    int distance;
    bool is_other; /* `best` is of another kind: in place or not, a module or a function */
} mr_nearest;

void mr_nearest_begin(mr_nearest *nearest, const char *wanted);
void mr_nearest_offer(mr_nearest *nearest, const char *known);
const char *mr_nearest_found(const mr_nearest *nearest); /* NULL: nothing is near enough */

#endif
