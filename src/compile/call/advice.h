/* Advice about a text that a compiler has rejected. */
#ifndef MR_COMPILE_ADVICE_H
#define MR_COMPILE_ADVICE_H

#include "base/buffer.h"

/* `said`: the compiler's messages, as the user sees them. Adds a sentence without a newline, or nothing. */
void mr_compile_advise(const char *said, bool is_confined, mr_buffer *out);

#endif
