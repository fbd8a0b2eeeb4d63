/* What a kernel uses of this header of CUDA is there without an #include. */
#ifndef MILLRACE_CUDA_RUNTIME_API_H
#define MILLRACE_CUDA_RUNTIME_API_H
#endif
