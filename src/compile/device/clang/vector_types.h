/* What a kernel uses of this header of CUDA is there without an #include. */
#ifndef MILLRACE_VECTOR_TYPES_H
#define MILLRACE_VECTOR_TYPES_H
#endif
