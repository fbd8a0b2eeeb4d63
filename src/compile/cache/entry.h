/* One compilation as a value of the cache: what its key is, and its bytes. */
#ifndef MR_COMPILE_ENTRY_H
#define MR_COMPILE_ENTRY_H

#include "compile/cache/cache.h"
#include "compile/internal.h"

/* `compiler` tells the compilers apart: the path, size and time of their files. False: nothing of this job may be taken
 * from a cache or put into one. */
bool mr_entry_key(const mr_compile_job *job, const char *compiler, mr_cache_key *out);

void mr_entry_write(const mr_compile_job *job, const mr_compiled *compiled, mr_buffer *out);
/* False: the bytes are not what mr_entry_write wrote, or there is no memory. The lines become those of the job. */
bool mr_entry_read(const mr_compile_job *job, const mr_buffer *entry, mr_compiled *out);

#endif
