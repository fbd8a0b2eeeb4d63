/* NVRTC, NVIDIA's compiler as a library: opened at run time, from the places where a toolkit or pip puts it. */
#ifndef MR_COMPILE_NVRTC_H
#define MR_COMPILE_NVRTC_H

#include "compile/internal.h"

/* The file that would be opened, or NULL; does not open it. For names that only the loader can find it does open the
 * library. */
const char *mr_nvrtc_path(void);
/* Opens the library. Returns "NVRTC 13.0", or NULL and a sentence that says why. */
const char *mr_nvrtc_open(const char **out_missing);
mr_status mr_nvrtc_compile(const mr_compile_job *job, mr_compile_result *out);

#endif
