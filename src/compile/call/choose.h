/* Which compilers may carry a job out, and the job by the first of them that is there. */
#ifndef MR_COMPILE_CHOOSE_H
#define MR_COMPILE_CHOOSE_H

#include "compile/compiler/clang.h"

typedef struct {
    bool may_use_nvrtc, may_use_clang;
    const char *only_clang; /* NULL: any */
    mr_clang_list clangs;
} mr_compile_choice;

/* By MILLRACE_COMPILER and the sandbox; finds clang only where NVRTC may not be used. Give out->clangs back with
 * mr_clang_free, also after an error. */
mr_status mr_compile_choose(bool is_confined, mr_compile_choice *out);

/* By which a cache tells compilers apart, without starting one. */
void mr_compile_put_identities(mr_buffer *out, const mr_compile_choice *chosen);

/* NOT_SUPPORTED: there is none; the message says what to install. A rejected text is no error: out->is_rejected. */
mr_status mr_compile_by(const mr_compile_job *job, mr_compile_choice *chosen,
                        mr_compile_result *out);

#endif
