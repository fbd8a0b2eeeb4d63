/* Collectives (model/meeting.h), carried out by NCCL.
 *
 * All ranks are devices of this process. So the members' calls stand in one NCCL group, which is made when the last
 * member is submitted. NCCL has either the work of all ranks or of none. Before that, collective/match.c has checked
 * that the ranks agree, and events make the operations of a communicator serial. So NCCL never waits for a rank that
 * does not come.
 *
 * NCCL may wait for a device in its calls: when it connects ranks at their first operation, and when a communicator is
 * destroyed. So host functions are run before each call (mr_cuda_may_wait), and a communicator that was closed is kept
 * until another one is made or the contexts go.
 *
 * Ranks of one process would read each other's tensors directly, which needs access to the pool's memory (R59). NCCL is
 * told to use its own buffers instead: NCCL_P2P_DIRECT_DISABLE, unless the user has set that. */
#include "cuda/state.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/meeting.h"

struct cuda_link {
    cuda_link *next;
    bool is_closed;
    uint32_t size;
    mr_nccl_comm comms[]; /* by rank */
};

static const int dtypes[] = {
#define X(name, value) [MR_##name] = value,
    MR_NCCL_DTYPE_LIST(X)
#undef X
};

static const int redops[] = {
#define X(name, value) [MR_REDOP_##name] = value,
    MR_NCCL_REDOP_LIST(X)
#undef X
};

/* ---- communicators */

static mr_status failed(const char *what, mr_nccl_result result) {
    const char *more = mr_nccl.GetLastError(NULL);
    return mr_fail(result == MR_NCCL_UNHANDLED_CUDA_ERROR ? MR_CODE_LAUNCH_FAILURE
                                                          : MR_CODE_UNKNOWN,
                   "%s: NCCL failed: %s%s%s", what, mr_nccl.GetErrorString(result),
                   more && more[0] ? ": " : "", more ? more : "");
}

/* NCCL makes other contexts current. */
static void come_back(void) {
    mr_cuda_current = NULL;
}

static void free_link(cuda_link *link, mr_nccl_result (*end)(mr_nccl_comm comm)) {
    for (uint32_t k = 0; k < link->size; k++)
        if (link->comms[k]) end(link->comms[k]);
    come_back();
    free(link);
}

static void free_closed(cuda_machine *cuda) {
    for (cuda_link **at = &cuda->links; *at;) {
        cuda_link *link = *at;
        if (!link->is_closed) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        free_link(link, mr_nccl.CommDestroy);
    }
}

void mr_cuda_links_leave(cuda_machine *cuda) {
    while (cuda->links) {
        cuda_link *link = cuda->links;
        cuda->links = link->next;
        free_link(link, cuda->machine->lost ? mr_nccl.CommAbort : mr_nccl.CommDestroy);
    }
}

static mr_status open_nccl(void) {
    setenv("NCCL_P2P_DIRECT_DISABLE", "1", 0);
    mr_status status = mr_cuda_library_open(MR_CUDA_LIBRARY_NCCL);
    if (!status) return MR_OK;
    mr_status told = mr_fail(status->code,
                             "comms: %s: install NCCL, name its file in MILLRACE_LIBNCCL, or use "
                             "virtual GPUs (--device virtual)",
                             status->message);
    mr_error_destroy(status);
    return told;
}

mr_status mr_cuda_communicator_open(mr_device *const *devices, uint32_t count, void **out_link) {
    cuda_machine *cuda = mr_cuda_of(devices[0]->machine);
    int ordinals[MR_MEETING_MOST];
    MR_TRY(open_nccl());
    MR_TRY(mr_cuda_waits_for_all(cuda, "comms"));
    for (uint32_t k = 0; k < count; k++) {
        cuda_device *device = devices[k]->impl;
        MR_TRY(mr_cuda_use(device));
        ordinals[k] = device->handle;
    }
    free_closed(cuda);
    cuda_link *link = calloc(1, sizeof *link + count * sizeof *link->comms);
    if (!link) return mr_no_memory("for a communicator");
    link->size = count;
    mr_nccl_result result = mr_nccl.CommInitAll(link->comms, (int)count, ordinals);
    come_back();
    if (result) {
        free(link);
        return failed("comms", result);
    }
    link->next = cuda->links;
    cuda->links = link;
    *out_link = link;
    return MR_OK;
}

void mr_cuda_communicator_close(mr_machine *machine, void *link) {
    (void)machine;
    ((cuda_link *)link)->is_closed = true;
}

/* ---- operations */

typedef struct {
    const mr_meeting *meeting;
    const cuda_link *link;
    uint32_t member;
} part;

static const mr_command *command_of(const part *p) {
    return p->meeting->members[p->member].command;
}

static const mr_tensor *operand(const part *p, int16_t which) {
    return which == MR_MEETING_NONE ? NULL : command_of(p)->operands[which].tensor;
}

static void *address(const mr_tensor *t) {
    return t ? (char *)(uintptr_t)t->storage->address + t->offset * mr_dtype_size(t->dtype) : NULL;
}

static CUstream stream_of(const part *p) {
    return ((cuda_stream *)command_of(p)->stream->impl)->handle;
}

static int redop_of(const mr_meeting *meeting, mr_dtype dtype) {
    if (dtype != MR_BOOL) return redops[meeting->redop];
    /* as ops/collective.h says: `or` and `and` of bytes that are 0 and 1 */
    bool is_or = meeting->redop == MR_REDOP_SUM || meeting->redop == MR_REDOP_MAX;
    return redops[is_or ? MR_REDOP_MAX : MR_REDOP_MIN];
}

/* NCCL 2.28 has a function for it, and earlier versions do not. */
static mr_nccl_result all_to_all(const part *p, const mr_tensor *in, const mr_tensor *out,
                                 mr_nccl_comm comm) {
    size_t count = (size_t)in->numel / p->meeting->size, bytes = count * mr_dtype_size(in->dtype);
    mr_nccl_result result = MR_NCCL_SUCCESS;
    for (uint32_t peer = 0; peer < p->meeting->size && !result; peer++) {
        result = mr_nccl.Send((char *)address(in) + peer * bytes, count, dtypes[in->dtype],
                              (int)peer, comm, stream_of(p));
        if (!result)
            result = mr_nccl.Recv((char *)address(out) + peer * bytes, count, dtypes[in->dtype],
                                  (int)peer, comm, stream_of(p));
    }
    return result;
}

/* NCCL connects the sends and receives of two ranks in the order of their calls, and so does collective/match.c. */
static mr_nccl_result exchange(const part *p, mr_nccl_comm comm) {
    const mr_meeting *meeting = p->meeting;
    mr_nccl_result result = MR_NCCL_SUCCESS;
    for (uint32_t i = 0; i < meeting->message_count && !result; i++) {
        const mr_message *message = &meeting->messages[i];
        const mr_tensor *t;
        if (message->from == p->member) {
            t = operand(p, message->in);
            result = mr_nccl.Send(address(t), (size_t)t->numel, dtypes[t->dtype],
                                  (int)meeting->members[message->to].rank, comm, stream_of(p));
        }
        if (message->to == p->member && !result) {
            t = operand(p, message->out);
            result = mr_nccl.Recv(address(t), (size_t)t->numel, dtypes[t->dtype],
                                  (int)meeting->members[message->from].rank, comm, stream_of(p));
        }
    }
    return result;
}

static mr_nccl_result call(const part *p) {
    const mr_meeting *meeting = p->meeting;
    const mr_meeting_member *member = &meeting->members[p->member];
    mr_nccl_comm comm = p->link->comms[member->rank];
    if (meeting->what == MR_COLLECTIVE_EXCHANGE) return exchange(p, comm);
    const mr_tensor *in = operand(p, member->in), *out = operand(p, member->out);
    const mr_tensor *known = in ? in : out;
    int dtype = dtypes[known->dtype], redop = redop_of(meeting, known->dtype);
    int root = (int)meeting->members[meeting->root].rank;
    size_t count = (size_t)known->numel;
    CUstream stream = stream_of(p);
    switch (meeting->what) {
    case MR_COLLECTIVE_ALL_REDUCE:
        return mr_nccl.AllReduce(address(in), address(out), count, dtype, redop, comm, stream);
    case MR_COLLECTIVE_BROADCAST:
        /* the root in place has no `out`, and the other ranks have no `in` */
        return mr_nccl.Broadcast(address(known), address(out ? out : in), count, dtype, root, comm,
                                 stream);
    case MR_COLLECTIVE_REDUCE:
        return mr_nccl.Reduce(address(in), address(out), count, dtype, redop, root, comm, stream);
    case MR_COLLECTIVE_ALL_GATHER:
        return mr_nccl.AllGather(address(in), address(out), count, dtype, comm, stream);
    case MR_COLLECTIVE_REDUCE_SCATTER:
        return mr_nccl.ReduceScatter(address(in), address(out), (size_t)out->numel, dtype, redop,
                                     comm, stream);
    case MR_COLLECTIVE_ALL_TO_ALL: return all_to_all(p, in, out, comm);
    case MR_COLLECTIVE_EXCHANGE: break; /* above */
    }
    return MR_NCCL_SUCCESS;
}

static mr_nccl_result call_all(part *p) {
    mr_nccl_result result = mr_nccl.GroupStart();
    if (result) return result;
    for (p->member = 0; p->member < p->meeting->size && !result; p->member++) result = call(p);
    mr_nccl_result ended = mr_nccl.GroupEnd();
    return result ? result : ended;
}

mr_status mr_cuda_meet(const mr_command *command) {
    const mr_meeting *meeting = command->meeting;
    cuda_device *device = ((cuda_stream *)command->stream->impl)->device;
    part p = {.meeting = meeting, .link = meeting->link};
    if (!p.link)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "%s: a recorded collective runs on virtual GPUs only: start millrace with "
                       "--device virtual",
                       command->name);
    MR_TRY(mr_cuda_may_wait(device, command->name));
    if (mr_command_waits_for_others(command)) return MR_OK;
    mr_nccl_result result = call_all(&p);
    come_back();
    MR_TRY(mr_cuda_use(device));
    return result ? failed(command->name, result) : MR_OK;
}
