/* sort, argsort, topk: keys from elements, the passes of the sort, results from positions (kernels/sort.cu). */
#include "ops/sort.h"
#include "cuda/sort.h"
#include "ops/line.h"

static mr_cuda_order arguments(const mr_sorting *s) {
    mr_lines lines = mr_lines_of(s->in, s->dim);
    mr_line_strides in = mr_line_strides_of(s->in, s->dim),
                    order = mr_line_strides_of(s->order, s->dim),
                    values = s->values ? mr_line_strides_of(s->values, s->dim) : order;
    mr_cuda_order args = {.in = (const void *)mr_cuda_data(s->in),
                          .values = s->values ? (void *)mr_cuda_data(s->values) : NULL,
                          .order = (int64_t *)mr_cuda_data(s->order),
                          .count = (uint64_t)s->in->numel,
                          .lines = (uint64_t)lines.count,
                          .length = (uint64_t)lines.length,
                          .taken = (uint64_t)s->taken,
                          .step = {in.step, values.step, order.step},
                          .descending = s->descending};
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, lines.ndim, lines.shape);
    mr_cuda_layout_add(&layout, lines.ndim, lines.shape, in.stride);
    mr_cuda_layout_add(&layout, lines.ndim, lines.shape, values.stride);
    mr_cuda_layout_add(&layout, lines.ndim, lines.shape, order.stride);
    mr_cuda_layout_end(&layout, false, &args.kept, args.stride);
    return args;
}

static mr_status sort(const mr_command *command, CUstream stream, const mr_sorting *s,
                      mr_cuda_order *args, cuda_sorting *sorting) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    mr_dtype dtype = (mr_dtype)s->in->dtype;
    int64_t size = (int64_t)mr_dtype_size(dtype);
    CUfunction keys, results;
    MR_CUDA_FIND(keys, command, &kernels->sort_keys[dtype], MODULE_SORT, "sort_keys_%s",
                 mr_cuda_tag(dtype));
    MR_CUDA_FIND(results, command, &kernels->sort_results[__builtin_ctzl((unsigned long)size)],
                 MODULE_SORT, "sort_results_%d", (int)size);
    args->keys = sorting->keys[0];
    args->positions = sorting->positions[0];
    MR_TRY(mr_cuda_enqueue(command, stream, keys, mr_cuda_spread(command, args->count), args));
    MR_TRY(mr_cuda_sort_by_keys(command, stream, sorting, mr_sort_key_bits(dtype)));
    MR_TRY(mr_cuda_sort_by_lines(command, stream, sorting, args->length, args->lines));
    args->positions = sorting->positions[sorting->at];
    return mr_cuda_enqueue(command, stream, results,
                           mr_cuda_spread(command, args->lines * args->taken), args);
}

mr_status mr_cuda_launch_sort(const mr_command *command, CUstream stream) {
    mr_sorting s = mr_sorting_of(command);
    mr_cuda_order args = arguments(&s);
    cuda_sorting sorting;
    MR_TRY(mr_cuda_sorting_begin(command, stream, args.count,
                                 mr_sort_key_bits((mr_dtype)s.in->dtype) > 32, &sorting));
    mr_status status = sort(command, stream, &s, &args, &sorting);
    mr_cuda_sorting_end(stream, &sorting);
    return status;
}
