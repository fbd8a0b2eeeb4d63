/* Writing a file that appears complete or not at all.
 *
 * Easiest to break: the file is written under another name in the same folder, and renamed when every byte of it is on its
 * way to the disk. What fails before that leaves the old file as it was, and no temporary one. */
#ifndef MR_BASE_REPLACE_H
#define MR_BASE_REPLACE_H

#include <stdio.h>

#include "base/status.h"

/* Writes to `file`, and does not close it. An error of the file itself need not be returned: it is found afterwards. */
typedef mr_status (*mr_file_writer)(void *context, FILE *file);

/* Makes the file at `path`, or replaces it and keeps its permissions. A symbolic link stays one: what it points to is
 * replaced. A device or a pipe is written as it is. Errors name the path. */
mr_status mr_replace_file(const char *path, mr_file_writer write, void *context);

#endif
