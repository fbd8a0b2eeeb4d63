/* A temporary folder for one compilation. */
#ifndef MR_COMPILE_FOLDER_H
#define MR_COMPILE_FOLDER_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/status.h"

typedef struct {
    char path[4096]; /* "": none */
} mr_folder;

/* Under TMPDIR, or /tmp. Only this user can read it. */
mr_status mr_folder_make(mr_folder *out);
/* The file's name in the folder has no slash. */
mr_status mr_folder_write(const mr_folder *folder, const char *name, const void *data, size_t size);
mr_status mr_folder_read(const mr_folder *folder, const char *name, mr_buffer *out);
/* With all its files. Does nothing for a zeroed struct. */
void mr_folder_remove(mr_folder *folder);

#endif
