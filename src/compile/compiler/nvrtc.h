/* NVRTC, NVIDIA's compiler as a library: a worker opens it (worker.h), from the places where a toolkit or pip puts
 * it. */
#ifndef MR_COMPILE_NVRTC_H
#define MR_COMPILE_NVRTC_H

#include "compile/internal.h"

/* The file that would be opened, or NULL; does not open it. For names that only the loader can find it does open the
 * library. */
const char *mr_nvrtc_path(void);
/* Asks a worker for the library's name, such as "NVRTC 13.0". False: why it cannot be used here. */
bool mr_nvrtc_probe(const mr_compile_source *source, char *out_name, size_t name_size,
                    char *out_problem, size_t problem_size);
/* By a worker. `out_problem` is empty, or says why NVRTC cannot be used here; then nothing was compiled. */
mr_status mr_nvrtc_compile(const mr_compile_job *job, mr_compile_result *out, char *out_problem,
                           size_t problem_size);

#endif
