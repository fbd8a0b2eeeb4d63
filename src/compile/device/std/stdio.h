/* Device code has what it can use of this C header without an #include. */
#ifndef MILLRACE_STDIO_H
#define MILLRACE_STDIO_H
#endif
