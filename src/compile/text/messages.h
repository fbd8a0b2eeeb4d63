/* A compiler's messages, for the user: with the lines of the user's file, and without ours. */
#ifndef MR_COMPILE_MESSAGES_H
#define MR_COMPILE_MESSAGES_H

#include "base/buffer.h"

typedef struct {
    /* "saxpy.lua:14:7: error: ...", with the source lines that the compiler shows; no newline at
     * the end */
    mr_buffer text;
    int error_count;        /* in `text` */
    int bad_name;           /* index of the first of the job's names that was rejected; -1: none */
    mr_buffer name_problem; /* the compiler's message about it */
} mr_messages;

/* `names`: those of the job. The caller frees the result. */
void mr_messages_read(const char *log, const char *const *names, int name_count, mr_messages *out);
void mr_messages_free(mr_messages *messages);

/* For a moved text: lines that start with "OLD_FILE:LINE" get the new file, and a line that is `lines` further
 * down. The caller frees the result; NULL: no memory. */
char *mr_messages_move(const char *text, const char *old_file, const char *new_file, int lines);

#endif
