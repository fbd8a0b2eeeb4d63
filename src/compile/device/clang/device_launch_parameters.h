/* What a kernel uses of this header of CUDA is there without an #include. */
#ifndef MILLRACE_DEVICE_LAUNCH_PARAMETERS_H
#define MILLRACE_DEVICE_LAUNCH_PARAMETERS_H
#endif
