/* Device code has what it can use of this C header without an #include. */
#ifndef MILLRACE_ASSERT_H
#define MILLRACE_ASSERT_H
#endif
