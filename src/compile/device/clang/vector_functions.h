/* What a kernel uses of this header of CUDA is there without an #include. */
#ifndef MILLRACE_VECTOR_FUNCTIONS_H
#define MILLRACE_VECTOR_FUNCTIONS_H
#endif
