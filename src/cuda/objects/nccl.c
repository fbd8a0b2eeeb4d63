/* Collectives (model/meeting.h), carried out by NCCL.
 *
 * Where all ranks are devices of this process, the members' calls stand in one NCCL group, which is made when the last
 * member is submitted. NCCL has either the work of all ranks or of none. Where ranks are processes, each submits its
 * own member, and the others are far. Before that, collective/match.c has checked that the ranks agree, and events make
 * the operations of a communicator serial. So NCCL never waits for a rank that does not come, unless that rank's
 * process or device fails in between. Then the watch of the communicator ends the wait (wait.c), and aborts it.
 *
 * NCCL may wait for a device in its calls: when it connects ranks at their first operation, and when a communicator is
 * destroyed. So host functions are run before each call (mr_cuda_may_wait), and a communicator that was closed is kept
 * until another one is made or the contexts go.
 *
 * Ranks of one process would read each other's tensors directly, which needs access to the pool's memory (R59). NCCL is
 * told to use its own buffers instead: NCCL_P2P_DIRECT_DISABLE, unless the user has set that. */
#include "cuda/objects/objects.h"
#include "cuda/wait/wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/meeting.h"

struct cuda_link {
    cuda_link *next;
    bool is_closed;
    mr_status (*watch)(void *context, double waited); /* NULL: all ranks are in this process */
    void *context;
    uint32_t size;
    mr_nccl_comm comms[]; /* by rank; NULL: in another process, or aborted */
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

static mr_status open_nccl(const char *what) {
    setenv("NCCL_P2P_DIRECT_DISABLE", "1", 0);
    mr_status status = mr_cuda_library_open(MR_CUDA_LIBRARY_NCCL);
    if (!status) return MR_OK;
    mr_status told = mr_fail(status->code,
                             "%s: %s: install NCCL, name its file in MILLRACE_LIBNCCL, or use "
                             "virtual GPUs (--device virtual)",
                             what, status->message);
    mr_error_destroy(status);
    return told;
}

static mr_status new_link(uint32_t size, cuda_link **out_link) {
    cuda_link *link = *out_link = calloc(1, sizeof *link + size * sizeof *link->comms);
    if (!link) return mr_no_memory("for a communicator");
    link->size = size;
    return MR_OK;
}

/* Calls the watches of open communicators during a wait that has lasted so long. */
static mr_status watch_links(cuda_machine *cuda, uint64_t waited_ns) {
    for (cuda_link *link = cuda->links; link; link = link->next)
        if (link->watch && !link->is_closed)
            MR_TRY(link->watch(link->context, (double)waited_ns * 1e-9));
    return MR_OK;
}

static void keep_link(cuda_machine *cuda, cuda_link *link, void **out_link) {
    link->next = cuda->links;
    cuda->links = link;
    cuda->watch_links = watch_links;
    *out_link = link;
}

mr_status mr_cuda_communicator_open(mr_device *const *devices, uint32_t count, void **out_link) {
    cuda_machine *cuda = mr_cuda_of(devices[0]->machine);
    int ordinals[MR_MEETING_MOST];
    MR_TRY(open_nccl("comms"));
    MR_TRY(mr_cuda_waits_for_all(cuda, "comms"));
    for (uint32_t k = 0; k < count; k++) {
        cuda_device *device = devices[k]->impl;
        MR_TRY(mr_cuda_use(device));
        ordinals[k] = device->handle;
    }
    free_closed(cuda);
    cuda_link *link;
    MR_TRY(new_link(count, &link));
    mr_nccl_result result = mr_nccl.CommInitAll(link->comms, (int)count, ordinals);
    come_back();
    if (result) {
        free(link);
        return failed("comms", result);
    }
    keep_link(cuda, link, out_link);
    return MR_OK;
}

mr_status mr_cuda_communicator_id(mr_machine *machine, char out_id[MR_COMMUNICATOR_ID]) {
    mr_nccl_id id;
    (void)machine;
    MR_TRY(open_nccl("init"));
    mr_nccl_result result = mr_nccl.GetUniqueId(&id);
    if (result) return failed("init", result);
    memcpy(out_id, id.bytes, sizeof id.bytes);
    return MR_OK;
}

/* NCCL finds two ranks on one GPU by itself, as it alone knows what NCCL_HOSTID does. */
static mr_status join_failed(const cuda_device *device, mr_nccl_result result) {
    const char *more = mr_nccl.GetLastError(NULL);
    if (result != MR_NCCL_INVALID_USAGE || !more || !strstr(more, "Duplicate GPU"))
        return failed("init", result);
    return mr_fail(MR_CODE_INVALID_DEVICE,
                   "init: two ranks have one GPU, and NCCL takes one rank a GPU (R67): this rank "
                   "has device %d. Start as many ranks as there are GPUs, or give the ranks of a "
                   "computer different GPUs with --device cuda:I; NCCL's words: %s",
                   device->device->index, more);
}

mr_status mr_cuda_communicator_join(mr_device *on, const mr_membership *membership,
                                    void **out_link) {
    cuda_machine *cuda = mr_cuda_of(on->machine);
    cuda_device *device = on->impl;
    cuda_link *link;
    mr_nccl_id id;
    MR_TRY(open_nccl("init"));
    MR_TRY(mr_cuda_waits_for_all(cuda, "init"));
    free_closed(cuda);
    MR_TRY(mr_cuda_use(device));
    MR_TRY(new_link(membership->size, &link));
    link->watch = membership->watch;
    link->context = membership->context;
    memcpy(id.bytes, membership->id, sizeof id.bytes);
    mr_nccl_result result = mr_nccl.CommInitRank(&link->comms[membership->rank],
                                                 (int)membership->size, id, (int)membership->rank);
    come_back();
    if (result) {
        free(link);
        return join_failed(device, result);
    }
    keep_link(cuda, link, out_link);
    return MR_OK;
}

void mr_cuda_communicator_abort(mr_machine *machine, void *which) {
    cuda_link *link = which;
    (void)machine;
    for (uint32_t k = 0; k < link->size; k++) {
        if (link->comms[k]) mr_nccl.CommAbort(link->comms[k]);
        link->comms[k] = NULL;
    }
    come_back();
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

/* NCCL and collective/match.c connect the sends and receives of two ranks in the order of their calls. */
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
    for (p->member = 0; p->member < p->meeting->size && !result; p->member++)
        if (!p->meeting->members[p->member].far) result = call(p);
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
