/* clang as a child process, with device headers of our own (device/, embedded in the binary): no CUDA toolkit is
 * needed, and one that is installed is not used. */
#ifndef MR_COMPILE_CLANG_H
#define MR_COMPILE_CLANG_H

#include "compile/internal.h"

#define MR_CLANG_MOST 12

/* Programs that may be a clang with a PTX back end; looked for in PATH, none is started. */
typedef struct {
    char *paths[MR_CLANG_MOST];
    int count;
} mr_clang_list;

/* `only`: this program and no other; NULL: the usual names. */
mr_status mr_clang_find(const char *only, mr_clang_list *out);
void mr_clang_free(mr_clang_list *list);

/* Asks them one after the other, and sets out_path to the first that can compile to PTX, and out->compiler to its name,
 * such as "clang 14.0.6". NULL: none can; the reasons are appended to `out_problem`. Fails only if it was
 * interrupted. */
mr_status mr_clang_probe(const mr_compile_job *job, const mr_clang_list *list,
                         mr_compile_result *out, const char **out_path, mr_buffer *out_problem);

/* By the program `path`, whose name is in out->compiler. */
mr_status mr_clang_compile(const mr_compile_job *job, const char *path, mr_compile_result *out);

#endif
