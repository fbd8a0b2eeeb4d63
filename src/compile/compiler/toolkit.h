/* The headers of the CUDA toolkit that a confined worker may have. */
#ifndef MR_COMPILE_TOOLKIT_H
#define MR_COMPILE_TOOLKIT_H

/* Opens a header by the path that the compiler asked for. Returns a file descriptor that the caller closes, or -1: the
 * path is none of the toolkit's headers, or there is no such header. The answer depends on the files of the toolkit
 * alone: a path that leaves `folder` is refused before any file is looked at. For a folder of headers the descriptor
 * tells its facts and nothing else. */
int mr_toolkit_open(const char *folder, const char *path);

#endif
