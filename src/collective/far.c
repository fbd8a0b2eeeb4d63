/* Calls of ranks in other processes, as messages, and their stand-ins: see world.h. */
#include "collective/world_parts.h"

#include <string.h>

#include "tensor/tensor.h"

#define NO_TENSOR UINT64_MAX

static void write_tensor(const mr_tensor *t, mr_buffer *out) {
    mr_message_add(out, t ? (uint64_t)t->numel : NO_TENSOR);
}

static void write_stream(const mr_stream *stream, mr_buffer *out) {
    mr_message_add(out, stream->id);
    mr_message_add(out, stream->kind);
    mr_message_add(out, stream->blocking);
    mr_message_add(out, (uint64_t)(int64_t)stream->priority);
    mr_message_add_text(out, stream->name ? stream->name->text : NULL);
}

/* Writes the group with its ranks, since the reader may not have made this group yet. */
static void write_group(const mr_world *w, const mr_comm *comm, mr_buffer *out) {
    uint32_t number = comm->clique->group - 1, i = 0;
    while (w->groups.items[i]->number != number) i++;
    const world_group *group = w->groups.items[i];
    mr_message_add(out, number);
    mr_message_add(out, group->size);
    for (uint32_t k = 0; k < group->size; k++) mr_message_add(out, group->ranks[k]);
}

void mr_far_write(const mr_world *w, const pending_call *call, mr_buffer *out) {
    const mr_collective_call *ask = &call->ask;
    write_group(w, ask->comm, out);
    mr_message_add(out, ask->what);
    mr_message_add(out, ask->way);
    mr_message_add(out, ask->redop);
    mr_message_add(out, ask->root);
    mr_message_add(out, mr_collective_dtype(ask));
    write_tensor(ask->in, out);
    write_tensor(ask->out, out);
    mr_message_add(out, (uint64_t)call->where.line);
    mr_message_add_text(out, call->where.file);
    mr_message_add_text(out, call->name);
    mr_message_add(out, (uint64_t)call->launched.line);
    mr_message_add_text(out, call->launched.file);
    write_stream(ask->stream, out);
}

/* ---- stand-ins */

static mr_status read_group(mr_world *w, uint32_t from, message *in, mr_comm **out_comm) {
    uint32_t ranks[MR_MEETING_MOST], number = (uint32_t)mr_message_number(in);
    uint64_t size = mr_message_number(in);
    world_group *group;
    *out_comm = NULL;
    for (uint32_t k = 0; k < size && k < MR_MEETING_MOST; k++)
        ranks[k] = (uint32_t)mr_message_number(in);
    MR_TRY(mr_world_find_group(w, number, ranks, (uint32_t)size, from, &group));
    for (uint32_t k = 0; k < size; k++)
        if (ranks[k] == from) *out_comm = group->comms[k];
    return MR_OK;
}

/* An empty view: with real devices its bytes are not needed here. */
static mr_status view_of_nothing(mr_world *w, const mr_caller *caller, mr_dtype dtype,
                                 int64_t count, mr_tensor **out_tensor) {
    int64_t one = 1, stride = 0;
    if (!w->nothing)
        MR_TRY(mr_tensor_create(caller, MR_MEMORY_PAGEABLE, NULL, MR_F64, 1, &one, &w->nothing));
    return mr_tensor_view(caller, w->nothing, dtype, 1, &count, &stride, 0, out_tensor);
}

static mr_status read_tensor(mr_world *w, const mr_caller *caller, message *in, mr_dtype dtype,
                             mr_tensor **out_tensor) {
    uint64_t count = mr_message_number(in);
    int64_t shape = (int64_t)count;
    *out_tensor = NULL;
    if (count == NO_TENSOR || !in->fine) return MR_OK;
    if (w->device) return view_of_nothing(w, caller, dtype, shape, out_tensor);
    return mr_tensor_create(caller, MR_MEMORY_PINNED, NULL, dtype, 1, &shape, out_tensor);
}

static mr_status read_stream(mr_world *w, const mr_caller *caller, uint32_t from, message *in,
                             mr_stream **out_stream) {
    mr_device *device = w->device ? w->device : caller->machine->devices[from];
    uint32_t id = (uint32_t)mr_message_number(in);
    mr_stream_kind kind = (mr_stream_kind)mr_message_number(in);
    bool blocking = mr_message_number(in) != 0;
    int priority = (int)(int64_t)mr_message_number(in);
    mr_stream_options options = {
        .nonblocking = !blocking, .priority = priority, .name = mr_message_text(in)};
    far_stream one = {.rank = from, .id = id};
    if (kind == MR_STREAM_LEGACY) {
        *out_stream = device->legacy;
        return MR_OK;
    }
    for (size_t i = 0; i < w->streams.count; i++) {
        const far_stream *known = &w->streams.items[i];
        if (known->rank != from || known->id != id) continue;
        *out_stream = known->stream;
        return MR_OK;
    }
    MR_TRY(mr_stream_create(caller, device, &options, &one.stream));
    *out_stream = one.stream;
    if (mr_vec_push(&w->streams, one)) return MR_OK;
    mr_stream_release(one.stream);
    return mr_no_memory("for a stream of rank %u", from);
}

static mr_status bad_message(uint32_t from) {
    return mr_fail(MR_CODE_UNKNOWN,
                   "a message of rank %u cannot be read: all ranks must run the same millrace",
                   from);
}

static void read_numbers(message *in, mr_collective_call *ask, mr_dtype *out_dtype) {
    ask->what = (mr_collective)mr_message_number(in);
    ask->way = (mr_peer_way)mr_message_number(in);
    ask->redop = (mr_redop)mr_message_number(in);
    ask->root = (uint32_t)mr_message_number(in);
    *out_dtype = (mr_dtype)mr_message_number(in);
}

static void forget(mr_tensor *t) {
    if (!t) return;
    mr_storage_drop_handle(t->storage);
    mr_tensor_release(t);
}

mr_status mr_far_read(mr_world *w, uint32_t from, message *in, pending_call *out_call) {
    mr_machine *machine = w->c->machine;
    pending_call call = {.host = from + 1, .is_ready = true};
    mr_collective_call *ask = &call.ask;
    mr_caller caller = {.machine = machine, .name = "stand-in"};
    mr_dtype dtype;
    MR_TRY(read_group(w, from, in, &ask->comm));
    read_numbers(in, ask, &dtype);
    if (!in->fine || !ask->comm || dtype >= MR_DTYPE_COUNT) return bad_message(from);
    mr_status status = read_tensor(w, &caller, in, dtype, &ask->in);
    if (!status) status = read_tensor(w, &caller, in, dtype, &ask->out);
    call.where.line = (int)mr_message_number(in);
    const char *file = mr_message_text(in);
    if (file) call.where.file = mr_intern(&machine->files, file, strlen(file), "?");
    const char *name = mr_message_text(in);
    call.name = mr_intern(&machine->files, name ? name : "", name ? strlen(name) : 0, "?");
    caller.where = call.where;
    call.launched.line = (int)mr_message_number(in);
    file = mr_message_text(in);
    if (file) call.launched.file = mr_intern(&machine->files, file, strlen(file), "?");
    if (!status) status = read_stream(w, &caller, from, in, &ask->stream);
    if (!status && !in->fine) status = bad_message(from);
    if (status) {
        forget(ask->in);
        forget(ask->out);
        return status;
    }
    mr_comm_retain(ask->comm);
    mr_stream_retain(ask->stream);
    *out_call = call;
    return MR_OK;
}
