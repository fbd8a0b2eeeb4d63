/* Device code has what it can use of this C header without an #include. */
#ifndef MILLRACE_STRING_H
#define MILLRACE_STRING_H
#endif
