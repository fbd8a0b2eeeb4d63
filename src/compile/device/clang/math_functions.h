/* What a kernel uses of this header of CUDA is there without an #include. */
#ifndef MILLRACE_MATH_FUNCTIONS_H
#define MILLRACE_MATH_FUNCTIONS_H
#endif
