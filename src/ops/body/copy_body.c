/* The body of the copy operation: broadcast, converted, any strides. Copies between memories that need
 * none of that are COPY commands and never come here. */
#include "ops/body.h"

#include <string.h>

mr_status mr_copy_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    if (first >= end) return MR_OK;
    mr_input input;
    mr_command_inputs(command, &input);
    const mr_tensor *to = command->operands[0].tensor, *from = input.tensor;
    size_t to_size = mr_dtype_size(to->dtype), from_size = mr_dtype_size(from->dtype);
    const char *data = mr_tensor_data(from);
    bool dense = from->contiguous && from->numel == to->numel;
    if (dense && to->contiguous) {
        mr_convert(to->dtype, (char *)mr_tensor_data(to) + first * (int64_t)to_size, from->dtype,
                   data + first * (int64_t)from_size, end - first);
        return MR_OK;
    }
    mr_walk walk;
    mr_walk_init(&walk, to->ndim, to->shape, 1, &from);
    if (to->contiguous && to->dtype == from->dtype) {
        mr_gather(data, from_size, walk.ndim, walk.shape, walk.stride[0], first, end - first,
                  (char *)mr_tensor_data(to) + first * (int64_t)to_size);
        return MR_OK;
    }
    mr_output out;
    mr_output_init(&out, to, to->dtype);
    mr_block raw;
    for (int64_t i = first; i < end; i += MR_BLOCK) {
        int64_t n = end - i < MR_BLOCK ? end - i : MR_BLOCK;
        const void *x = data + i * (int64_t)from_size;
        if (!dense) {
            mr_gather(data, from_size, walk.ndim, walk.shape, walk.stride[0], i, n, &raw);
            x = &raw;
        }
        mr_convert(to->dtype, mr_output_begin(&out, i), from->dtype, x, n);
        mr_output_end(&out, i, n);
    }
    return MR_OK;
}
