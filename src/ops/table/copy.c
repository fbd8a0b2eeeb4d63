/* Copies: between any two memories, dtypes and layouts (mr_copy), in CUDA's own forms (mr_memcpy,
 * mr_memset), and to the host to be read (mr_item, mr_to_host).
 *
 * One copy engine command copies contiguous bytes. As in PyTorch, conversion and gathering are done on the
 * source's side, into a temporary with the destination's dtype. Only a destination that is not contiguous
 * gets a temporary on its own side. */
#include "ops/ids.h"
#include "ops/table/launch.h"

#include <inttypes.h>

#include "model/capture.h"
#include "model/hosts.h"

mr_status mr_launch_copy(const mr_caller *caller, const char *name, mr_tensor *dst, mr_tensor *src,
                         mr_stream *stream) {
    mr_call call = {.in_place = true};
    mr_launch launch;
    mr_launch_init(&launch, caller, &mr_ops[MR_OP_copy], &call);
    launch.name = name;
    launch.device = stream ? dst->storage->device : NULL;
    launch.stream = stream;
    launch.params.elementwise.dtype = dst->dtype; /* the input is an operand */
    mr_launch_operand(&launch, dst, MR_WRITE);
    mr_launch_operand(&launch, src, MR_READ);
    return mr_launch_go(&launch);
}

static mr_copy_direction direction_of(const mr_tensor *dst, const mr_tensor *src) {
    bool from_host = mr_tensor_on_host(src), to_host = mr_tensor_on_host(dst);
    if (from_host) return to_host ? MR_COPY_H2H : MR_COPY_H2D;
    if (to_host) return MR_COPY_D2H;
    return dst->storage->device == src->storage->device ? MR_COPY_D2D : MR_COPY_PEER;
}

/* The host waits in a copy, or reads or writes memory that the device may be at. */
static bool host_takes_part(const mr_tensor *dst, const mr_tensor *src, bool waits) {
    return waits || dst->storage->kind == MR_MEMORY_PAGEABLE ||
           src->storage->kind == MR_MEMORY_PAGEABLE;
}

static bool is_nothing(const mr_tensor *dst, const mr_tensor *src) {
    return dst->numel == 0 || mr_same_view(dst, src);
}

/* Dense to dense, of equal bytes. */
static mr_status submit_copy(const mr_caller *caller, const char *name, mr_tensor *dst,
                             mr_tensor *src, mr_stream *stream, bool synchronous) {
    mr_command *command;
    MR_TRY(mr_command_create(caller, MR_COMMAND_COPY, stream, name, 2, &command));
    mr_command_set_operand(command, 0, dst, MR_WRITE);
    mr_command_set_operand(command, 1, src, MR_READ);
    command->u.copy.direction = direction_of(dst, src);
    command->u.copy.synchronous = synchronous;
    command->u.copy.current = (int16_t)caller->machine->current_device->index;
    command->u.copy.bytes = (uint64_t)dst->numel * mr_dtype_size(dst->dtype);
    return mr_command_submit(command);
}

/* ------------------------------------------------------------------------- copy_ */

static mr_status check_copy(mr_machine *machine, const mr_tensor *dst, const mr_tensor *src) {
    char name[160];
    if (dst->storage->machine != machine || src->storage->machine != machine)
        return mr_fail(MR_CODE_INVALID_HANDLE, "copy_: the tensor belongs to another machine");
    MR_TRY(mr_tensor_usable(dst));
    MR_TRY(mr_tensor_usable(src));
    if (!mr_same_shape(dst, src)) {
        int ndim;
        int64_t shape[MR_MAX_DIMS];
        MR_TRY(mr_shape_broadcast("copy_", dst->ndim, dst->shape, src->ndim, src->shape, &ndim,
                                  shape));
        bool fits = mr_has_shape(dst, ndim, shape);
        char to[192], from[192];
        if (!fits)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "copy_: shape %s does not broadcast to %s, which is %s",
                           mr_shape_text(src->ndim, src->shape, from, sizeof from),
                           mr_tensor_describe(dst, name, sizeof name),
                           mr_shape_text(dst->ndim, dst->shape, to, sizeof to));
    }
    if (mr_tensor_self_overlaps(dst))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "copy_: several elements of %s share one memory location (it was expanded); "
                       "write to its clone()",
                       mr_tensor_describe(dst, name, sizeof name));
    if (!mr_same_view(dst, src) && mr_tensor_may_overlap(dst, src))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "copy_: source and %s share memory; copy from a clone()",
                       mr_tensor_describe(dst, name, sizeof name));
    return MR_OK;
}

/* Dense, of this dtype and shape, in the memory of `beside`: on `stream`, or pageable. */
static mr_status new_beside(const mr_caller *caller, const mr_tensor *beside, mr_stream *stream,
                            mr_dtype dtype, const mr_tensor *shape, mr_tensor **out_tensor) {
    bool host = mr_tensor_on_host(beside);
    return mr_tensor_create(caller, host ? MR_MEMORY_PAGEABLE : MR_MEMORY_DEVICE,
                            host ? NULL : stream, dtype, shape->ndim, shape->shape, out_tensor);
}

/* Between two memories. `from` and `to` are streams of the source's and the destination's device (NULL:
 * that side is the host); the transfer itself runs on `on`. */
static mr_status copy_across(const mr_caller *caller, mr_tensor *dst, mr_tensor *src,
                             mr_stream *from, mr_stream *to, mr_stream *on) {
    mr_tensor *dense_src = src, *dense_dst = dst;
    mr_status status = MR_OK;
    if (!src->contiguous || src->dtype != dst->dtype || !mr_same_shape(src, dst)) {
        MR_TRY(new_beside(caller, src, from, (mr_dtype)dst->dtype, dst, &dense_src));
        status = mr_launch_copy(caller, "copy_", dense_src, src, from);
    }
    if (!status && !dst->contiguous)
        status = new_beside(caller, dst, to, (mr_dtype)dst->dtype, dst, &dense_dst);
    /* Two devices: the transfer begins when the destination's stream is ready for it, and that stream goes on when it
     * is done. So neither side needs events of its own. */
    if (!status && from && to) status = mr_stream_join(caller, on, to, "copy_");
    if (!status) status = submit_copy(caller, "copy_", dense_dst, dense_src, on, false);
    if (!status && from && to) status = mr_stream_join(caller, to, on, "copy_");
    if (!status && dense_dst != dst) {
        if (!to)
            status = mr_stream_synchronize_as(
                caller, on, "copy_"); /* the host is about to read what was transferred */
        if (!status) status = mr_launch_copy(caller, "copy_", dst, dense_dst, to);
    }
    if (dense_src != src) mr_drop_new(dense_src);
    if (dense_dst && dense_dst != dst) mr_drop_new(dense_dst);
    return status;
}

/* Where memory of a device takes part. `from`, `to` and `on` as for copy_across. */
static mr_status copy_on(const mr_caller *caller, mr_tensor *dst, mr_tensor *src, mr_stream *from,
                         mr_stream *to, mr_stream *on, bool waits) {
    if (on != from && on != to)
        MR_TRY(mr_launch_check_stream(caller->machine, "copy_", from ? src : dst, on));
    if (from) MR_TRY(mr_launch_check_stream(caller->machine, "copy_", src, from));
    if (to) MR_TRY(mr_launch_check_stream(caller->machine, "copy_", dst, to));
    if (is_nothing(dst, src)) return MR_OK;
    const char *name = caller->name ? caller->name : "copy_";
    /* A capture may refuse the wait: before the copy is submitted. */
    if (waits || (!to && !dst->contiguous))
        MR_TRY(mr_capture_ask_host(caller, MR_ASK_STREAM, name, on, NULL, NULL));

    if (direction_of(dst, src) == MR_COPY_D2D) {
        if (dst->contiguous && src->contiguous && dst->dtype == src->dtype &&
            dst->numel == src->numel)
            return submit_copy(caller, "copy_", dst, src, on, false);
        return mr_launch_copy(caller, "copy_", dst, src, on);
    }
    MR_TRY(copy_across(caller, dst, src, from, to, on));
    return waits ? mr_stream_synchronize_as(caller, on, name) : MR_OK;
}

mr_status mr_copy(const mr_caller *caller, mr_tensor *dst, mr_tensor *src, mr_stream *stream,
                  bool non_blocking) {
    MR_TRY(check_copy(caller->machine, dst, src));
    mr_copy_direction direction = direction_of(dst, src);
    bool waits = direction != MR_COPY_D2D && direction != MR_COPY_PEER && !non_blocking;
    if (direction == MR_COPY_H2H)
        return is_nothing(dst, src) ? MR_OK : mr_launch_copy(caller, "copy_", dst, src, NULL);
    if (!is_nothing(dst, src) && host_takes_part(dst, src, waits)) {
        MR_TRY(mr_host_comes(caller));
        MR_TRY(check_copy(caller->machine, dst, src));
    }
    mr_stream *from = NULL, *to = NULL;
    if (!mr_tensor_on_host(src)) from = src->storage->device->current;
    if (!mr_tensor_on_host(dst)) to = dst->storage->device->current;
    if (stream && from && stream->device == from->device) from = stream;
    if (stream && to && stream->device == to->device) to = stream;
    mr_stream *on = stream ? stream : from ? from : to;
    /* A host function that runs in a wait may make another stream current. */
    mr_stream *const held[] = {from ? from : on, to ? to : on};
    for (int i = 0; i < 2; i++) mr_stream_retain(held[i]);
    mr_status status = copy_on(caller, dst, src, from, to, on, waits);
    for (int i = 0; i < 2; i++) mr_stream_release(held[i]);
    return status;
}

/* ------------------------------------------------------------------------- CUDA's own forms */

static mr_status check_dense(mr_machine *machine, const char *name, const mr_tensor *t) {
    if (t->storage->machine != machine)
        return mr_fail(MR_CODE_INVALID_HANDLE, "%s: the tensor belongs to another machine", name);
    MR_TRY(mr_tensor_usable(t));
    if (t->contiguous) return MR_OK;
    char text[160];
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: %s is not contiguous; use its contiguous() copy, or copy_", name,
                   mr_tensor_describe(t, text, sizeof text));
}

/* The stream of CUDA's form: the legacy default stream (R20), or the one given, or the current one. A copy (`b` is
 * there) may be in the stream of any device (R58); a memset is in one of the tensor's device. */
static mr_status find_stream(mr_machine *machine, const mr_tensor *a, const mr_tensor *b,
                             mr_stream *given, bool synchronous, const char *name,
                             mr_stream **out_stream) {
    const mr_tensor *where = !mr_tensor_on_host(a) ? a : b && !mr_tensor_on_host(b) ? b : NULL;
    mr_device *device = where ? where->storage->device : machine->current_device;
    mr_stream *stream = synchronous ? device->legacy : given ? given : device->current;
    *out_stream = stream;
    if (where && !b) return mr_launch_check_stream(machine, name, where, stream);
    MR_TRY(mr_machine_ready(machine));
    return mr_stream_usable(stream);
}

mr_status mr_memcpy(const mr_caller *caller, mr_tensor *dst, mr_tensor *src, mr_stream *stream,
                    bool synchronous) {
    const char *name = synchronous ? "memcpy" : "memcpy_async";
    if (dst->numel && src->numel && host_takes_part(dst, src, synchronous))
        MR_TRY(mr_host_comes(caller));
    MR_TRY(check_dense(caller->machine, name, dst));
    MR_TRY(check_dense(caller->machine, name, src));
    int64_t bytes = dst->numel * (int64_t)mr_dtype_size(dst->dtype);
    int64_t from_bytes = src->numel * (int64_t)mr_dtype_size(src->dtype);
    char a[160], b[160];
    if (bytes != from_bytes)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: %s has %" PRId64 " bytes, but %s has %" PRId64, name,
                       mr_tensor_describe(src, a, sizeof a), from_bytes,
                       mr_tensor_describe(dst, b, sizeof b), bytes);
    if (mr_tensor_may_overlap(dst, src))
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s and %s share memory", name,
                       mr_tensor_describe(src, a, sizeof a), mr_tensor_describe(dst, b, sizeof b));
    mr_stream *on;
    MR_TRY(find_stream(caller->machine, src, dst, stream, synchronous, name, &on));
    if (bytes == 0) return MR_OK;
    return submit_copy(caller, name, dst, src, on, synchronous);
}

mr_status mr_memset(const mr_caller *caller, mr_tensor *t, uint8_t byte, mr_stream *stream,
                    bool synchronous) {
    const char *name = synchronous ? "memset" : "memset_async";
    bool waits = synchronous && mr_tensor_on_host(t); /* R24 */
    if (waits && t->numel) MR_TRY(mr_host_comes(caller));
    MR_TRY(check_dense(caller->machine, name, t));
    if (t->storage->kind == MR_MEMORY_PAGEABLE) {
        char text[160];
        return mr_fail(
            MR_CODE_INVALID_ARGUMENT,
            "%s: %s is in pageable host memory, which the device cannot write; use fill_", name,
            mr_tensor_describe(t, text, sizeof text));
    }
    mr_stream *on;
    MR_TRY(find_stream(caller->machine, t, NULL, stream, synchronous, name, &on));
    if (t->numel == 0) return MR_OK;
    if (waits) MR_TRY(mr_capture_ask_host(caller, MR_ASK_STREAM, name, on, NULL, NULL));
    mr_command *command;
    MR_TRY(mr_command_create(caller, MR_COMMAND_OP, on, name, 1, &command));
    mr_command_set_operand(command, 0, t, MR_WRITE);
    command->u.op.row = &mr_ops[MR_OP_memset];
    mr_params params = {0};
    params.memset.byte = byte;
    mr_params_set(command, &params);
    MR_TRY(mr_command_submit(command));
    return waits ? mr_stream_synchronize_as(caller, on, name) : MR_OK;
}

/* ------------------------------------------------------------------------- reading on the host */

mr_status mr_may_read(const mr_caller *caller, const mr_tensor *t) {
    if (mr_tensor_on_host(t)) return MR_OK;
    const char *name = caller->name ? caller->name : "copy_";
    mr_stream *stream = t->storage->device->current;
    return mr_capture_ask_host(caller, MR_ASK_STREAM, name, stream, NULL, NULL);
}

mr_status mr_to_host(const mr_caller *caller, mr_tensor *t, mr_tensor **out_tensor) {
    *out_tensor = NULL;
    MR_TRY(mr_tensor_usable(t));
    if (mr_tensor_on_host(t)) {
        MR_TRY(mr_host_access(caller, "read", t, MR_READ));
        mr_tensor_retain(t);
        mr_storage_add_handle(t->storage);
        *out_tensor = t;
        return MR_OK;
    }
    MR_TRY(mr_launch_check_stream(caller->machine, "copy_", t, t->storage->device->current));
    mr_tensor *host;
    MR_TRY(mr_tensor_create(caller, MR_MEMORY_PAGEABLE, NULL, (mr_dtype)t->dtype, t->ndim, t->shape,
                            &host));
    host->storage->transient = true;
    mr_status status = mr_copy(caller, host, t, NULL, false);
    if (status) {
        mr_drop_new(host);
        return status;
    }
    mr_host_reads(caller->machine, host);
    *out_tensor = host;
    return MR_OK;
}

mr_status mr_item(const mr_caller *caller, mr_tensor *t, mr_scalar *out_value) {
    MR_TRY(mr_tensor_usable(t));
    if (t->numel != 1) {
        char text[160];
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "item: %s has %" PRId64 " elements, expected one",
                       mr_tensor_describe(t, text, sizeof text), t->numel);
    }
    mr_tensor *host;
    MR_TRY(mr_to_host(caller, t, &host));
    *out_value = mr_dtype_load((mr_dtype)host->dtype, mr_tensor_data(host));
    mr_drop_new(host);
    return MR_OK;
}
