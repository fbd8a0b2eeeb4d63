/* Shared by the files of this room: devices, and how a command is carried out. */
#ifndef MR_CUDA_BACKEND_PARTS_H
#define MR_CUDA_BACKEND_PARTS_H

#include "cuda/state.h"

/* ---- device.c: devices and their contexts */

mr_status mr_cuda_device_open(cuda_device *device); /* fills in the properties; makes no context */
mr_status mr_cuda_device_make_context(cuda_device *device);
/* Waits for the work that is under way, as it cannot be taken back. A lost device answers at once. */
void mr_cuda_device_finish(cuda_device *device);
/* Destroys the context. The streams have been closed or forgotten. */
void mr_cuda_device_close(cuda_device *device);
/* The first device that can really be used, or `ordinal` (-1: any), with its context made and kept. */
mr_status mr_cuda_device_find(int ordinal, int *out_ordinal);
void mr_cuda_device_found(void); /* releases that context; its user holds it now */

/* ---- submit.c */

/* *out_taken: see the slot `submit` of model/backend.h. */
mr_status mr_cuda_submit(const mr_command *command, bool *out_taken);

#endif
