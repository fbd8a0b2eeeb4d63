/* Checks the call of each rank by itself. match.c compares the calls of the ranks. */
#include "collective/calls.h"
#include "ops/collective.h"

#include <stdio.h>

const char *mr_collective_name(const mr_collective_call *call) {
    if (call->way == MR_PEER_SEND) return "send";
    if (call->way == MR_PEER_RECV) return "recv";
    return mr_collective_text(call->what);
}

static const mr_tensor *any_tensor(const mr_collective_call *call) {
    return call->in ? call->in : call->out;
}

mr_dtype mr_collective_dtype(const mr_collective_call *call) {
    return (mr_dtype)any_tensor(call)->dtype;
}

int64_t mr_collective_count(const mr_collective_call *call) {
    switch (call->what) {
    case MR_COLLECTIVE_REDUCE_SCATTER: return call->out->numel;
    case MR_COLLECTIVE_ALL_TO_ALL: return call->in->numel / call->comm->clique->size;
    case MR_COLLECTIVE_ALL_GATHER: return call->in->numel;
    case MR_COLLECTIVE_ALL_REDUCE:
    case MR_COLLECTIVE_BROADCAST:
    case MR_COLLECTIVE_REDUCE:
    case MR_COLLECTIVE_EXCHANGE: break;
    }
    return any_tensor(call)->numel;
}

static mr_status refuse_tensor(const mr_collective_call *call, const mr_tensor *t) {
    const char *name = mr_collective_name(call);
    char text[160], comm[120];
    mr_tensor_describe(t, text, sizeof text);
    if (t->storage->device == call->comm->device)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s is not contiguous; pass its contiguous()",
                       name, text);
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s is not on device %d, which is that of %s",
                   name, text, call->comm->device->index,
                   mr_comm_describe(call->comm, comm, sizeof comm));
}

static mr_status check_tensor(const mr_collective_call *call, const mr_tensor *t) {
    if (!t) return MR_OK;
    if (t->storage->machine != call->comm->clique->machine)
        return mr_fail(MR_CODE_INVALID_HANDLE, "%s: the tensor belongs to another machine",
                       mr_collective_name(call));
    MR_TRY(mr_tensor_usable(t));
    bool fits = t->storage->device == call->comm->device && t->contiguous;
    return fits ? MR_OK : refuse_tensor(call, t);
}

static mr_status check_sizes(const mr_collective_call *call) {
    const mr_tensor *in = call->in, *out = call->out;
    const char *name = mr_collective_name(call);
    int64_t size = call->comm->clique->size;
    if (call->what == MR_COLLECTIVE_ALL_TO_ALL && in->numel % size)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: %lld elements cannot be cut into %lld equal parts, one for each rank",
                       name, (long long)in->numel, (long long)size);
    if (!in || !out) return MR_OK;
    if (in->dtype != out->dtype)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: the result is %s and the input %s: both must have one dtype", name,
                       mr_dtype_text((mr_dtype)out->dtype), mr_dtype_text((mr_dtype)in->dtype));
    int64_t in_units = call->what == MR_COLLECTIVE_REDUCE_SCATTER ? size : 1;
    int64_t out_units = call->what == MR_COLLECTIVE_ALL_GATHER ? size : 1;
    if (in->numel * out_units == out->numel * in_units) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: the result has %lld elements and the input %lld: expected %lld and %lld",
                   name, (long long)out->numel, (long long)in->numel,
                   (long long)(in_units > 1 ? in->numel / size : in->numel * out_units),
                   (long long)(in_units > 1 ? in->numel / size * size : in->numel));
}

/* R65: in place, or apart. */
static mr_status check_overlap(const mr_collective_call *call) {
    const mr_tensor *in = call->in, *out = call->out;
    if (!in || !out || !mr_tensor_may_overlap(in, out)) return MR_OK;
    uint64_t in_first, in_end, out_first, out_end, own = call->comm->rank;
    mr_tensor_extent(in, &in_first, &in_end);
    mr_tensor_extent(out, &out_first, &out_end);
    bool in_place = false;
    switch (call->what) {
    case MR_COLLECTIVE_ALL_REDUCE:
    case MR_COLLECTIVE_BROADCAST:
    case MR_COLLECTIVE_REDUCE: in_place = in_first == out_first; break;
    case MR_COLLECTIVE_ALL_GATHER:
        in_place = in_first == out_first + own * (in_end - in_first);
        break;
    case MR_COLLECTIVE_REDUCE_SCATTER:
        in_place = out_first == in_first + own * (out_end - out_first);
        break;
    case MR_COLLECTIVE_ALL_TO_ALL:
    case MR_COLLECTIVE_EXCHANGE: break;
    }
    if (in_place) return MR_OK;
    return mr_fail(
        MR_CODE_INVALID_ARGUMENT,
        "%s: the result overlaps the input, but the call is not in place (R65): pass the "
        "same tensor, rank %llu's own part of the larger one, or a clone()",
        mr_collective_name(call), (unsigned long long)own);
}

static mr_status check_root(const mr_collective_call *call) {
    if (call->root < call->comm->clique->size) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: expected a rank from 0 to %u, as there are %u, got %u",
                   mr_collective_name(call), call->comm->clique->size - 1, call->comm->clique->size,
                   call->root);
}

static mr_status check_stream(const mr_collective_call *call) {
    const mr_stream *stream = call->stream;
    char text[100];
    MR_TRY(mr_stream_usable(stream));
    if (stream->device == call->comm->device) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: %s is on device %d and the communicator's rank %u on device %d",
                   mr_collective_name(call), mr_stream_describe(stream, text, sizeof text),
                   stream->device->index, call->comm->rank, call->comm->device->index);
}

/* A call that is not a node waits for other ranks, and these would wait for the end of the capture. */
static mr_status check_capture(const mr_collective_call *call) {
    char text[100];
    if (!call->comm->clique->machine->captures.open || call->stream->capture) return MR_OK;
    return mr_fail(MR_CODE_CAPTURE_UNSUPPORTED,
                   "%s: %s is not capturing, but another stream is: let it wait for an event of "
                   "the capture first, or call it after the capture",
                   mr_collective_name(call), mr_stream_describe(call->stream, text, sizeof text));
}

mr_status mr_collective_check(const mr_collective_call *call) {
    MR_TRY(mr_comm_usable(call->comm, mr_collective_name(call)));
    MR_TRY(check_root(call));
    MR_TRY(check_tensor(call, call->in));
    MR_TRY(check_tensor(call, call->out));
    MR_TRY(check_sizes(call));
    MR_TRY(check_overlap(call));
    bool is_bool = mr_collective_dtype(call) == MR_BOOL;
    if (mr_collective_reduces(call->what) && call->redop == MR_REDOP_AVG && is_bool)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: bools have no mean",
                       mr_collective_name(call));
    MR_TRY(check_stream(call));
    return check_capture(call);
}

/* ---- at the end of the group: changes since the calls, and memory that the calls share */

static mr_status check_state(const mr_collective_call *call) {
    MR_TRY(mr_comm_usable(call->comm, mr_collective_name(call)));
    if (call->in) MR_TRY(mr_tensor_usable(call->in));
    if (call->out) MR_TRY(mr_tensor_usable(call->out));
    MR_TRY(mr_stream_usable(call->stream));
    return check_capture(call);
}

static bool share(const mr_tensor *a, const mr_tensor *b) {
    return a && b && mr_tensor_may_overlap(a, b);
}

/* NCCL carries out all that a rank has in a group by one kernel, so nothing orders its parts. */
static mr_status check_apart(const pending_call *call, const pending_call *other) {
    char comm[120], place[160] = "";
    const mr_collective_call *a = &call->ask, *b = &other->ask;
    if (a->comm != b->comm) return MR_OK;
    if (!share(a->out, b->out) && !share(a->out, b->in) && !share(a->in, b->out)) return MR_OK;
    if (other->where.file)
        snprintf(place, sizeof place, " (%.120s:%d)", other->where.file, other->where.line);
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: %s has a %s of the same memory in this group%s, and one of them writes it: "
                   "nothing orders the operations of a group (R63). Use another tensor, or another "
                   "group",
                   call->name, mr_comm_describe(a->comm, comm, sizeof comm), other->name, place);
}

mr_status mr_collectives_check_group(const mr_collectives *c) {
    uint32_t host = c->machine->rank;
    for (size_t i = 0; i < c->calls.count; i++) {
        const pending_call *call = &c->calls.items[i];
        if (call->host != host) continue;
        MR_TRY(check_state(&call->ask));
        for (size_t j = 0; j < i; j++)
            if (c->calls.items[j].host == host) MR_TRY(check_apart(call, &c->calls.items[j]));
    }
    return MR_OK;
}
