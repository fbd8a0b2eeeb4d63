/* CUDA C++ to PTX: this machine's compilers, and a cache of their results on disk.
 *
 * NVRTC compiles in a process of ours (compiler/worker.h). Where it is missing, clang compiles, with device headers of
 * our own (src/compile/device), so that a machine without CUDA compiles kernels, too. Both compile without a GPU.
 *
 * All functions may be called from any thread. */
#ifndef MR_COMPILE_COMPILE_H
#define MR_COMPILE_COMPILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The text to compile. Nothing of it is kept after the call. */
typedef struct {
    const char *text; /* CUDA C++ */
    size_t size;
    const char *file;   /* of the user, for messages and the PTX; NULL: none */
    const char *beside; /* a file in whose folder `#include "..."` looks; NULL: `file` */
    int line;           /* of that file, where `text` starts; 0 is 1 */
    /* The user's: "-DN=4", "-std=c++17", "-I", "include", "--use_fast_math". Those of nvcc that NVRTC knows; for clang
     * they are translated. */
    const char *const *options;
    int option_count;
    /* The device's: 9, 0 for an H200. The PTX is for the newest architecture not above it that the compiler knows. */
    int compute_major, compute_minor;
    /* C++ names of kernels that must be in the PTX: "saxpy", "block_sum<256>", "ns::f<float>". This also instantiates
     * templates. Other kernels of the text are in the PTX, too, except templates that nothing instantiates. */
    const char *const *names;
    int name_count;
    /* For the sandbox: the compiler has no file system, whatever the text and the options say. It finds the headers of
     * CUDA and C, and nothing else. Only NVRTC, and no cache. */
    bool is_confined;
    int time_limit_ms; /* 0: 60 s */
    /* Asked many times a second while a compiler works; true ends it at once. May be NULL. */
    bool (*interrupted)(void *context);
    void *context;
} mr_compile_source;

typedef struct {
    char *ptx; /* NUL-terminated; without the NUL it has `size` bytes */
    size_t size;
    char **entries; /* for each of the names its symbol in the PTX: "_Z9block_sumILi256EEvPf" */
    int entry_count;
    char *log;         /* warnings, with the user's file and lines; NULL: none */
    char compiler[48]; /* "NVRTC 13.0", "clang 14.0.6" */
    bool from_cache;
} mr_compiled;

/* Fills `out`, which mr_compiled_free must free after success only. Errors:
 *   INVALID_ARGUMENT  the compiler rejects the text; the message is the compiler's, with the user's file and lines.
 *                     Or an option, a name, or the text cannot be used.
 *   NOT_SUPPORTED     there is no compiler, or none that may be used here; the message says what to install.
 *   INTERRUPTED       `interrupted` returned true.
 *   UNKNOWN           the compiler crashed, or it took longer than the limit.
 *   OUT_OF_MEMORY */
mr_status mr_compile(const mr_compile_source *source, mr_compiled *out);
void mr_compiled_free(mr_compiled *compiled);

/* Calls `say` once for each fact: ("kernel compiler", "NVRTC 13.0 (/usr/...)"). It may start child processes to ask
 * them for their versions. For `millrace doctor`. */
void mr_compile_describe(void (*say)(const char *what, const char *text));

#endif
