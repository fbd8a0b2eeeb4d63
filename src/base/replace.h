/* Writing a file that appears complete or not at all.
 *
 * The bytes go into an unnamed file of the same folder, or into one with a name that ends in `~` where the file system
 * needs one. It gets the path's name when all bytes are on the disk. A failure before that leaves the old file as it
 * was. The end of the process does the same, and no other file is left. */
#ifndef MR_BASE_REPLACE_H
#define MR_BASE_REPLACE_H

#include <stdio.h>

#include "base/status.h"

/* Writes to `file`, and does not close it. An error of the file itself need not be returned: it is found afterwards. */
typedef mr_status (*mr_file_writer)(void *context, FILE *file);

/* Makes the file at `path`, or replaces it and keeps its owner and permissions. Errors name the path.
 *
 * A symbolic link stays one: its target is made or replaced. A file without any permission to write is an error, also
 * for root. A device or a pipe is written as it is. Two kinds of files are overwritten in place. These are those with
 * several names, and those beside which no file can be made (the folder is not ours, or the owner would change). This
 * begins once all new bytes are known and there is room for them; only then can the end of the process leave a mixture.
 *
 * While it runs, SIGPIPE and SIGXFSZ do not reach the calling thread: a pipe without a reader and a limit on the size
 * of files are errors. */
mr_status mr_replace_file(const char *path, mr_file_writer write, void *context);
/* Whether the folder of the path is there: NULL, or the error of mr_replace_file. */
mr_status mr_replace_has_folder(const char *path);

#endif
