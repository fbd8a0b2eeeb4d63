/* Shared by the files of this folder: a job, which a compiler carries out, and its result.
 *
 * Two compilers. NVRTC, NVIDIA's compiler, is a library that is opened at run time. Where it is missing, clang runs.
 * clang normally needs the CUDA toolkit for the names that CUDA C++ has without an `#include`; `device/` has headers
 * of our own instead, which are embedded in the binary. So a machine with nothing but clang compiles the same
 * kernels. The math functions for clang are our own, too (`device/clang/millrace/functions.h`). They are also
 * compiled for the host, and `tests/c/test_compile_math.c` measures their errors: at most CUDA's own bounds. They are
 * used also where NVIDIA's library of them is installed, so that clang gives the same values on every machine.
 *
 * Messages have the user's lines. A `#line` directive gives the text the name and the line that it has in the script.
 * `text/messages.c` removes what concerns our own headers, and brings the messages of both compilers into one form.
 *
 * The cache. A file of the cache is named by a hash. It covers the text, the options, the names, the architecture, the
 * files of the compiler, and all files that the text may include. The place of the text in the script is not part of
 * it. The lines in the PTX are moved when a file is read, so an edit elsewhere in a script compiles nothing again. Only
 * a text that can show its own line (`__LINE__`, `assert`) is compiled again when it moves. Each file has a hash of its
 * contents, and is written under another name and renamed. So a damaged file is the same as none, and several processes
 * can use one folder.
 *
 * Apart from us. A hostile text can crash a compiler, or make it work for hours, so none runs in this process. clang
 * is a program anyway (`child.c`). NVRTC lives in a *worker* (`compiler/worker.c`, `worker/`): a small program that is
 * embedded in the binary and runs from a file in memory, so a Lua module has it, too. One worker is kept. It answers
 * requests over a socket (`wire.h`), on a thread with a stack of 256 MiB, and ends when millrace has gone. A worker
 * that crashes after it has served before is replaced once, so the result never depends on what was compiled before.
 *
 * In the sandbox the worker has no file system (`worker/confine.c`). A filter of the text could not do that:
 * `__has_include` can be made of pasted tokens, and a message shows lines of an included file. A seccomp filter lists
 * the system calls that the compiler may make. Those that open a file raise a signal instead. Its handler asks
 * millrace, which hands out headers of the toolkit (`compiler/toolkit.c`): a path is reduced by its text alone, so a
 * folder outside decides nothing. There is no cache. Without such filters the sandbox refuses to compile. */
#ifndef MR_COMPILE_INTERNAL_H
#define MR_COMPILE_INTERNAL_H

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "compile/compile.h"

#define MR_LIMIT_DEFAULT_MS   60000
#define MR_LONGEST_SOURCE     ((size_t)16 << 20)
#define MR_FIRST_ARCHITECTURE 75

/* Our headers among the embedded files: those for clang, and those for both compilers. */
#define MR_COMPILE_HEADERS       "device/"
#define MR_COMPILE_HEADERS_CLANG MR_COMPILE_HEADERS "clang/"
#define MR_COMPILE_HEADERS_STD   MR_COMPILE_HEADERS "std/"

/* The folder in which clang finds our headers. It exists only for clang, so it must not be the name of a real one. */
#define MR_COMPILE_ROOT "/millrace-device"
/* The name of the "file" that has a line for each of the names. */
#define MR_COMPILE_NAMES "millrace-names"

typedef struct {
    const mr_compile_source *source;
    const char *file;   /* of the source, or a name for one that has none */
    const char *beside; /* the source's, or `file` */
    int line;           /* at least 1 */
    int architecture;   /* of the device: 90 */
} mr_compile_job;

/* Zeroed at first, except `entries`, which has room for the source's names. */
typedef struct {
    bool is_rejected;   /* by the compiler; `log` says why, and there is no PTX */
    mr_buffer ptx, log; /* as the compiler wrote them */
    char **entries;     /* the symbol of each name; NULL: not found */
    char compiler[48];
} mr_compile_result;

static inline void mr_compile_set_name(char *out, size_t size, const char *name) {
    snprintf(out, size, "%s", name);
}

static inline int mr_compile_limit(const mr_compile_source *source) {
    return source->time_limit_ms > 0 ? source->time_limit_ms : MR_LIMIT_DEFAULT_MS;
}

/* The option for the folder of the user's file, where the text may include files. False: the text may include none, or
 * there is no room. */
static inline bool mr_compile_put_folder(const mr_compile_job *job, char *out, size_t size) {
    const char *slash = strrchr(job->beside, '/');
    int length = slash ? (int)(slash - job->beside) + (slash == job->beside) : 1;
    return !job->source->is_confined &&
           snprintf(out, size, "-I%.*s", length, slash ? job->beside : ".") < (int)size;
}

/* Appends a #line directive: the next line is line `line` of `file`. */
static inline void mr_compile_put_line(mr_buffer *out, int line, const char *file) {
    mr_buffer_printf(out, "#line %d \"", line);
    for (const char *c = file; *c; c++)
        mr_buffer_printf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c == '\n' ? ' ' : *c);
    mr_buffer_puts(out, "\"\n");
}

#endif
