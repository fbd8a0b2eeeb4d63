/* Empty: kernels have the contents of this CUDA header without an #include. */
#ifndef MILLRACE_CUDA_H
#define MILLRACE_CUDA_H
#endif
