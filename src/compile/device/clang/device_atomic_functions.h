/* Empty: kernels have the contents of this CUDA header without an #include. */
#ifndef MILLRACE_DEVICE_ATOMIC_FUNCTIONS_H
#define MILLRACE_DEVICE_ATOMIC_FUNCTIONS_H
#endif
