/* Empty: kernels have the contents of this CUDA header without an #include. */
#ifndef MILLRACE_MATH_FUNCTIONS_H
#define MILLRACE_MATH_FUNCTIONS_H
#endif
