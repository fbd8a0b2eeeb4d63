/* Empty: kernels have the contents of this CUDA header without an #include. */
#ifndef MILLRACE_VECTOR_TYPES_H
#define MILLRACE_VECTOR_TYPES_H
#endif
