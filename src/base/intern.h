/* Strings that live as long as the process and are equal exactly when their pointers are: names of
 * script files, operations, tensors. A long-running script makes few distinct ones. */
#ifndef MR_BASE_INTERN_H
#define MR_BASE_INTERN_H

#include <stddef.h>

/* Bytes of a name that a script may give, and of a file's name that is kept. */
#define MR_LONGEST_NAME 200

/* Returns the one copy of `text`, or "?" when memory is out. `text` may hold no NUL before `size`. */
const char *mr_intern(const char *text, size_t size);

#endif
