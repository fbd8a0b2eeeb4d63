/* Empty: kernels have the contents of this CUDA header without an #include. */
#ifndef MILLRACE_SM_30_INTRINSICS_H
#define MILLRACE_SM_30_INTRINSICS_H
#endif
