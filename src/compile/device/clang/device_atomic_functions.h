/* What a kernel uses of this header of CUDA is there without an #include. */
#ifndef MILLRACE_DEVICE_ATOMIC_FUNCTIONS_H
#define MILLRACE_DEVICE_ATOMIC_FUNCTIONS_H
#endif
