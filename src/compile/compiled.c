/* The result of mr_compile: its end. */
#include <stdlib.h>

#include "compile/compile.h"

void mr_compiled_free(mr_compiled *compiled) {
    free(compiled->ptx);
    free(compiled->log);
    for (int i = 0; i < compiled->entry_count; i++) free(compiled->entries[i]);
    free(compiled->entries);
    *compiled = (mr_compiled){.ptx = NULL};
}
