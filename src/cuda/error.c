/* Errors of the driver: codes, sentences, and which operation failed.
 *
 * The driver does not say which kernel failed: a later call returns the error, and after that every call
 * returns it (R49, R50). So the failed launch is found from the recorded launches: those in streams that
 * were seen to be done since then are excluded. If one is left, it is the one; with launch-blocking there
 * is never more than one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cuda/state.h"
#include "ops/index.h"

static const struct {
    CUresult result;
    mr_code code;
    bool sticky; /* the context can no longer be used */
    const char *text;
} meanings[] = {
    {CUDA_ERROR_INVALID_VALUE, MR_CODE_INVALID_ARGUMENT, false, "the driver rejected an argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, MR_CODE_OUT_OF_MEMORY, false, "out of memory"},
    {CUDA_ERROR_DEINITIALIZED, MR_CODE_UNKNOWN, true, "the driver is shutting down"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, MR_CODE_INVALID_DEVICE, false,
     "the GPU is not available: another process uses it exclusively, or its compute mode does not "
     "allow use"},
    {CUDA_ERROR_NO_DEVICE, MR_CODE_INVALID_DEVICE, false, "there is no GPU"},
    {CUDA_ERROR_INVALID_DEVICE, MR_CODE_INVALID_DEVICE, false, "there is no such GPU"},
    {CUDA_ERROR_INVALID_CONTEXT, MR_CODE_INVALID_DEVICE, true,
     "the device's context was destroyed by other code"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, MR_CODE_LAUNCH_FAILURE, true,
     "the GPU's memory has an error that cannot be corrected"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, MR_CODE_NOT_SUPPORTED, false,
     "the code is for another kind of GPU than this one"},
    {CUDA_ERROR_INVALID_PTX, MR_CODE_INVALID_ARGUMENT, false,
     "the driver's compiler rejects the PTX"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, MR_CODE_NOT_SUPPORTED, false,
     "the driver's compiler for PTX (libnvidia-ptxjitcompiler.so.1) is not there: install all of "
     "the driver"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, MR_CODE_NOT_SUPPORTED, false,
     "the PTX is of a newer version than this driver knows: update the driver, or use an older "
     "compiler"},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, MR_CODE_NOT_SUPPORTED, false,
     "the driver may not compile PTX here: unset CUDA_DISABLE_PTX_JIT"},
    {CUDA_ERROR_NOT_FOUND, MR_CODE_INVALID_ARGUMENT, false, "there is nothing of that name"},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, MR_CODE_LAUNCH_FAILURE, true,
     "the link between GPUs has an error that cannot be corrected"},
    {CUDA_ERROR_INVALID_HANDLE, MR_CODE_INVALID_HANDLE, false,
     "the driver does not know the stream or event"},
    {CUDA_ERROR_NOT_READY, MR_CODE_NOT_READY, false, "not complete"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, MR_CODE_ILLEGAL_ADDRESS, true,
     "an access was outside the memory of all tensors on the device"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, MR_CODE_LAUNCH_OUT_OF_RESOURCES, false,
     "the kernel needs more registers or shared memory than there are"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, MR_CODE_LAUNCH_TIMEOUT, true,
     "the kernel ran longer than the system allows on a GPU with a display"},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, MR_CODE_PEER_ACCESS_ENABLED, false,
     "access is already enabled"},
    {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, MR_CODE_PEER_ACCESS_NOT_ENABLED, false,
     "access is not enabled"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, MR_CODE_INVALID_DEVICE, true,
     "the device's context was destroyed by other code"},
    {CUDA_ERROR_ASSERT, MR_CODE_ASSERT, true, "an assertion in a kernel failed"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, MR_CODE_LAUNCH_FAILURE, true,
     "a kernel's stack is corrupt or too small"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, MR_CODE_LAUNCH_FAILURE, true,
     "a kernel executed an illegal instruction"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, MR_CODE_MISALIGNED_ADDRESS, true,
     "an access was at an address that is not a multiple of the element size"},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, MR_CODE_ILLEGAL_ADDRESS, true,
     "an instruction accessed an address of another kind of memory"},
    {CUDA_ERROR_INVALID_PC, MR_CODE_LAUNCH_FAILURE, true, "a kernel jumped to an invalid address"},
    {CUDA_ERROR_LAUNCH_FAILED, MR_CODE_LAUNCH_FAILURE, true,
     "a kernel failed, or the GPU was lost"},
    {CUDA_ERROR_NOT_PERMITTED, MR_CODE_NOT_PERMITTED, false, "not permitted"},
    {CUDA_ERROR_NOT_SUPPORTED, MR_CODE_NOT_SUPPORTED, false, "not supported on this system"},
    {CUDA_ERROR_UNKNOWN, MR_CODE_UNKNOWN, true, "the driver reports an unknown failure"},
};
#define MEANING_COUNT (sizeof meanings / sizeof *meanings)

/* "CUDA_ERROR_ILLEGAL_ADDRESS" */
static const char *result_name(CUresult result) {
    const char *name = NULL;
    if (!mr_cu.GetErrorName || mr_cu.GetErrorName(result, &name) != CUDA_SUCCESS || !name)
        return "an unknown error";
    return name;
}

/* The text of a result that has no row is the driver's own. */
static mr_status make(CUresult result, bool *out_sticky, const char *format, va_list args) {
    char tried[160];
    const char *text = NULL;
    mr_code code = MR_CODE_UNKNOWN;
    *out_sticky = false;
    if (mr_cuda_is_forked()) return mr_cuda_forked();
    mr_number_formatv(tried, sizeof tried, format, args);
    for (size_t i = 0; i < MEANING_COUNT; i++) {
        if (meanings[i].result != result) continue;
        code = meanings[i].code;
        text = meanings[i].text;
        *out_sticky = meanings[i].sticky;
    }
    if (!text && (mr_cu.GetErrorString(result, &text) != CUDA_SUCCESS || !text))
        text = "the driver gives no reason";
    return mr_fail(code, "%s: %s (%s, %d)", tried, text, result_name(result), (int)result);
}

mr_status mr_cuda_complain(CUresult result, const char *format, ...) {
    va_list args;
    bool sticky;
    va_start(args, format);
    mr_status status = make(result, &sticky, format, args);
    va_end(args);
    return status;
}

/* ---- which operation it was */

static bool may_have_failed(const cuda_trail *trail) {
    return trail->seq && (!trail->stream || trail->seq > trail->stream->done_seq);
}

void mr_cuda_trail_forget(const cuda_stream *stream) {
    for (int i = 0; i < TRAIL_LENGTH; i++) {
        cuda_trail *trail = &stream->device->trail[i];
        if (trail->stream != stream) continue;
        if (!may_have_failed(trail)) trail->seq = 0;
        trail->stream = NULL;
    }
}

void mr_cuda_trail_clear(cuda_device *device) {
    for (int i = 0; i < TRAIL_LENGTH; i++) mr_name_release(device->trail[i].own_name);
    memset(device->trail, 0, sizeof device->trail);
}

/* "`a`, `b` or `c`": the different names among the candidates, or as many as there is room for. */
static void list_names(const cuda_trail **candidates, int count, char *out, size_t size) {
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < count && used < size; i++) {
        bool named = false;
        for (int k = 0; k < i && !named; k++)
            named = strcmp(candidates[k]->name, candidates[i]->name) == 0;
        if (named) continue;
        used += (size_t)snprintf(out + used, size - used, used ? ", `%s`" : "`%s`",
                                 candidates[i]->name);
    }
}

static mr_status with_cause(cuda_device *device, mr_status error) {
    const cuda_trail *candidates[TRAIL_LENGTH];
    char names[160], since[160] = "";
    int count = 0;
    uint64_t first = device->launches > TRAIL_LENGTH ? device->launches - TRAIL_LENGTH : 0;
    for (uint64_t i = first; i < device->launches; i++) {
        const cuda_trail *trail = &device->trail[i % TRAIL_LENGTH];
        if (may_have_failed(trail)) candidates[count++] = trail;
    }
    mr_error *details = mr_error_details(error);
    if (!count || !details) return error;
    const cuda_trail *only = candidates[0];
    if (count == 1) {
        snprintf(details->op, sizeof details->op, "%s", only->name);
        snprintf(details->stream, sizeof details->stream, "%s",
                 only->stream ? only->stream->title : "");
        details->where = only->where;
        return error;
    }
    list_names(candidates, count, names, sizeof names);
    if (only->where.file)
        snprintf(since, sizeof since, ", the first of them from %s:%d", only->where.file,
                 only->where.line);
    mr_status longer =
        mr_fail(error->code,
                "%s; %s%d operations were pending (%s)%s: mr.launch_blocking(true) "
                "tells which one failed",
                error->message, count == TRAIL_LENGTH ? "at least " : "", count, names, since);
    mr_error_destroy(error);
    return longer;
}

static const char *name_or(const mr_name *name, const char *otherwise) {
    return name ? name->text : otherwise;
}

/* NULL: it was no part of a graph. */
static const mr_command *find_node(const cuda_device *device, uint64_t seq) {
    for (const cuda_nodes *n = device->graphs; n; n = n->next)
        if (seq >= n->first && seq - n->first < n->commands.count)
            return n->commands.items[seq - n->first];
    return NULL;
}

/* The kernel's message about an index out of range, and its command; takes `error`. */
static mr_status explain_index(const cuda_device *device, mr_status error) {
    const cuda_indices *indices = device->indices;
    const mr_cuda_complaint *c = indices->complaint;
    const mr_name *index = NULL, *chosen = NULL;
    const cuda_trail *launch = NULL;
    for (int i = 0; i < TRAIL_LENGTH; i++) {
        if (device->trail[i].seq == c->seq) launch = &device->trail[i];
        if (indices->last[i].seq != c->seq) continue;
        index = indices->last[i].index;
        chosen = indices->last[i].chosen;
    }
    const mr_command *node = find_node(device, c->seq);
    if (node) {
        mr_indexing g;
        mr_indexing_of(node, &g);
        index = g.tensor[MR_SIDE_INDEX]->name;
        chosen = g.tensor[MR_SIDE_CHOSEN]->name;
    }
    mr_error_destroy(error);
    error = mr_fail(MR_CODE_ASSERT,
                    "%s: an index is out of range: %s has the value %" PRId64
                    ", but %s has %" PRId64 " elements there: expected 1 to %" PRId64,
                    node     ? node->name
                    : launch ? launch->name
                             : "an operation",
                    name_or(index, "the index"), c->value, name_or(chosen, "the tensor"), c->size,
                    c->size);
    mr_error *details = mr_error_details(error);
    if (node && details) {
        snprintf(details->op, sizeof details->op, "%s", node->name);
        details->where = node->where;
    }
    if (!launch || !details) return error;
    snprintf(details->op, sizeof details->op, "%s", launch->name);
    snprintf(details->stream, sizeof details->stream, "%s",
             launch->stream ? launch->stream->title : "");
    details->where = launch->where;
    return error;
}

mr_status mr_cuda_fail(cuda_device *device, CUresult result, const char *format, ...) {
    mr_machine *machine = device->machine->machine;
    va_list args;
    bool sticky;
    va_start(args, format);
    mr_status status = make(result, &sticky, format, args);
    va_end(args);
    if (!sticky) return status;
    bool told = device->indices && device->indices->complaint->complete;
    status = result == CUDA_ERROR_ASSERT && told ? explain_index(device, status)
                                                 : with_cause(device, status);
    status = mr_machine_lose(machine, status);
    device->machine->abandon_calls(device->machine);
    return status;
}
