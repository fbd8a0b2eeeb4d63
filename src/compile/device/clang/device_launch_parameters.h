/* Empty: kernels have the contents of this CUDA header without an #include. */
#ifndef MILLRACE_DEVICE_LAUNCH_PARAMETERS_H
#define MILLRACE_DEVICE_LAUNCH_PARAMETERS_H
#endif
