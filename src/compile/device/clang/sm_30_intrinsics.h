/* What a kernel uses of this header of CUDA is there without an #include. */
#ifndef MILLRACE_SM_30_INTRINSICS_H
#define MILLRACE_SM_30_INTRINSICS_H
#endif
