/* Streams, events and memory, and what needs all of them: copies, an order of the caller's choice, collectives. Each
 * file has the slots of the backend for its objects. */
#ifndef MR_CUDA_OBJECTS_OBJECTS_H
#define MR_CUDA_OBJECTS_OBJECTS_H

#include "cuda/state.h"

/* ---- stream.c */

mr_status mr_cuda_stream_open(mr_stream *stream);
void mr_cuda_stream_close(mr_stream *stream);
mr_status mr_cuda_stream_query(mr_stream *stream, bool *out_done);
mr_status mr_cuda_stream_synchronize(mr_stream *stream);

/* ---- event.c */

mr_status mr_cuda_event_prepare(mr_event *event, cuda_device *device); /* so that it has a handle */
mr_status mr_cuda_event_record(const mr_command *command);
mr_status mr_cuda_event_wait(const mr_command *command);
/* R45: a record or a wait becomes a node of the graph that the driver captures on `lane`. */
mr_status mr_cuda_event_capture(const mr_command *command, cuda_device *device, CUstream lane);
/* The event is about to be recorded by a node of a graph that is launched on the stream. */
void mr_cuda_event_in_launch(mr_event *event, cuda_stream *stream);
mr_status mr_cuda_event_open(mr_event *event);
void mr_cuda_event_close(mr_event *event);
mr_status mr_cuda_event_query(mr_event *event, bool *out_done);
mr_status mr_cuda_event_synchronize(mr_event *event);
mr_status mr_cuda_event_elapsed(mr_event *from, mr_event *to, double *out_milliseconds);

/* ---- memory.c */

mr_status mr_cuda_pool_open(cuda_device *device); /* with the context current and new */
void mr_cuda_pool_close(cuda_device *device);     /* frees all blocks */
void mr_cuda_memory_free(const mr_command *command);
/* Later frees of the device wait for the present work of the stream, which may belong to another device. */
mr_status mr_cuda_reclaim_after(cuda_device *device, cuda_device *owner, CUstream stream);
mr_status mr_cuda_memory_alloc(mr_storage *storage);
void mr_cuda_memory_release(mr_storage *storage);
uint64_t mr_cuda_memory_reserved(mr_device *device);
mr_status mr_cuda_memory_trim(mr_device *device);
mr_status mr_cuda_memory_free_wait(mr_storage *storage);

/* ---- peer.c */

bool mr_cuda_can_access_peer(mr_device *device, mr_device *peer);
mr_status mr_cuda_enable_peer_access(mr_device *device, mr_device *peer);
void mr_cuda_forget_peer_access(mr_device *device, mr_device *peer);

/* ---- outside.c: what code outside of millrace can share */

extern const mr_outside_slots mr_cuda_outside;
void mr_cuda_outside_trim(cuda_device *device); /* the device is idle */
void mr_cuda_outside_leave(cuda_machine *cuda); /* the contexts are about to go, and are idle */

/* ---- barrier.c: the copies' barrier (R60). All work that the device has been given comes before the stream's next
 * work. All work that it is given later comes after the stream's last, also in streams that are yet to be made */

mr_status mr_cuda_barrier_before(cuda_stream *copy, cuda_device *device);
mr_status mr_cuda_barrier_after(cuda_stream *copy, cuda_device *device);

/* ---- copy.c */

/* *out_taken: see the slot `submit` of model/backend.h. */
mr_status mr_cuda_copy(const mr_command *command, bool *out_taken);

/* ---- latch.c */

mr_status mr_cuda_latches_begin(mr_machine *machine, uint32_t count, uint64_t patience_ns);
void mr_cuda_latches_end(mr_machine *machine, bool *out_gave_up);
mr_status mr_cuda_latch_wait(mr_stream *stream, uint32_t latch);
mr_status mr_cuda_latch_open_behind(mr_stream *stream, uint32_t latch);
void mr_cuda_latch_open(mr_machine *machine, uint32_t latch);
mr_status mr_cuda_latch_is_open(mr_device *device, uint32_t latch, bool *out_open);

/* ---- nccl.c: collectives */

mr_status mr_cuda_communicator_open(mr_device *const *devices, uint32_t count, void **out_link);
void mr_cuda_communicator_close(mr_machine *machine, void *link);
mr_status mr_cuda_communicator_id(mr_machine *machine, char out_id[MR_COMMUNICATOR_ID]);
mr_status mr_cuda_communicator_join(mr_device *device, const mr_membership *membership,
                                    void **out_link);
void mr_cuda_communicator_abort(mr_machine *machine, void *link);
void mr_cuda_links_leave(cuda_machine *cuda); /* the contexts are about to go */
/* A member of a meeting. With the one that is submitted last, NCCL gets the work of all. */
mr_status mr_cuda_meet(const mr_command *command);

#endif
