/* Device code has what it can use of this C header without an #include: malloc, free, abs. */
#ifndef MILLRACE_STDLIB_H
#define MILLRACE_STDLIB_H

#include <stddef.h>

#endif
