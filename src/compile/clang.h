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

/* Asks them one after the other, and returns the index of the first that can compile to PTX; its name is
 * "clang 14.0.6". -1: none; `out_missing` then says why. */
int mr_clang_probe(const mr_clang_list *list, const mr_compile_source *source, char *out_name,
                   size_t name_size, mr_buffer *out_missing);

mr_status mr_clang_compile(const mr_compile_job *job, const mr_clang_list *list,
                           mr_compile_result *out);

/* A hash of the device headers: what was compiled with others is of no use. */
void mr_clang_headers(const void **out_data, size_t *out_size, int index);

#endif
