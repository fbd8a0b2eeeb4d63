/* sort, argsort, topk. A block sorts one short line or several. Long lines are sorted by passes over all of their keys
 * (kernels/sort.cu). If few elements are taken of them, these are found first (kernels/select.cu). */
#include "cuda/family/family.h"
#include "cuda/launch/sort.h"
#include "ops/line.h"
#include "ops/sort.h"

enum { MOST_OF_A_GROUP = 256 }; /* lines: their numbers are sorted by one digit */

_Static_assert((int)MR_SORT_LINE == (int)MR_CUDA_SORT_LINE, "one number, here and in the kernels");

static mr_cuda_order arguments(const mr_sorting *s) {
    mr_lines lines = mr_lines_of(s->in, s->dim);
    mr_line_strides in = mr_line_strides_of(s->in, s->dim),
                    order = mr_line_strides_of(s->order, s->dim),
                    values = s->values ? mr_line_strides_of(s->values, s->dim) : order;
    mr_cuda_order args = {.in = (const void *)mr_cuda_data(s->in),
                          .values = s->values ? (void *)mr_cuda_data(s->values) : NULL,
                          .order = (int64_t *)mr_cuda_data(s->order),
                          .lines = (uint64_t)lines.count,
                          .length = (uint64_t)lines.length,
                          .taken = (uint64_t)s->taken,
                          .step = {in.step, values.step, order.step},
                          .descending = s->descending,
                          .bits = (uint32_t)mr_sort_key_bits((mr_dtype)s->in->dtype)};
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, lines.ndim, lines.shape);
    mr_cuda_layout_add(&layout, lines.ndim, lines.shape, in.stride);
    mr_cuda_layout_add(&layout, lines.ndim, lines.shape, values.stride);
    mr_cuda_layout_add(&layout, lines.ndim, lines.shape, order.stride);
    mr_cuda_layout_end(&layout, false, &args.kept, args.stride);
    return args;
}

/* Bools have the keys of u8. */
static mr_dtype key_type(const mr_sorting *s) {
    return s->in->dtype == MR_BOOL ? MR_U8 : (mr_dtype)s->in->dtype;
}

/* Lines that are short enough: as many for a block as fit, unless that leaves multiprocessors without one. */
static mr_status sort_lines(const mr_command *command, CUstream stream, const mr_sorting *s,
                            mr_cuda_order *args) {
    mr_dtype type = key_type(s);
    CUfunction function;
    MR_CUDA_FIND(function, command, &mr_cuda_kernels_of(command)->sort_lines[type], MODULE_SORT,
                 "sort_lines_%s", mr_cuda_tag(type));
    uint64_t group = MR_CUDA_SORT_LINE / args->length,
             even = args->lines / (uint64_t)command->stream->device->properties.sm_count;
    if (group > even) group = even;
    args->group = group < 1 ? 1 : group > MOST_OF_A_GROUP ? MOST_OF_A_GROUP : (uint32_t)group;
    return mr_cuda_enqueue(command, stream, function, mr_cuda_blocks(args->lines, args->group),
                           args);
}

/* ------------------------------------------------------------------------- all of long lines */

static mr_status make_passes(const mr_command *command, CUstream stream, const mr_sorting *s,
                             mr_cuda_order *args, cuda_sorting *sorting) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    mr_dtype type = key_type(s);
    CUfunction keys, results;
    MR_CUDA_FIND(keys, command, &kernels->sort_keys[type], MODULE_SORT, "sort_keys_%s",
                 mr_cuda_tag(type));
    MR_CUDA_FIND(results, command, &kernels->sort_results[type], MODULE_SORT, "sort_results_%s",
                 mr_cuda_tag(type));
    args->keys = sorting->keys[0];
    args->counts = sorting->counts;
    args->pitch = sorting->pitch;
    args->tiles = sorting->tiles;
    MR_TRY(mr_cuda_enqueue(command, stream, keys, args->lines * args->tiles, args));
    mr_cuda_device_of(command)->machine->submissions++;
    sorting->counted = true;
    MR_TRY(mr_cuda_sort_by_keys(command, stream, sorting, 0, (int)args->bits));
    args->keys = sorting->keys[sorting->at];
    args->positions = sorting->payload[sorting->at];
    args->tiles = (uint32_t)mr_cuda_blocks(args->taken, MR_CUDA_SORT_TILE);
    return mr_cuda_enqueue(command, stream, results, args->lines * args->tiles, args);
}

static mr_status sort_all(const mr_command *command, CUstream stream, const mr_sorting *s,
                          mr_cuda_order *args) {
    cuda_sorting sorting = {.lines = args->lines,
                            .length = args->length,
                            .wide = args->bits > 32,
                            .payload_size = sizeof(uint32_t)};
    MR_TRY(mr_cuda_sorting_begin(command, stream, &sorting));
    mr_status status = make_passes(command, stream, s, args, &sorting);
    mr_cuda_sorting_end(command, stream, &sorting);
    return status;
}

/* ------------------------------------------------------------------------- few of long lines */

typedef struct {
    CUfunction count, digit, tally, write;
} selecting;

static mr_status find_selecting(const mr_command *command, mr_dtype type, selecting *out) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    const char *tag = mr_cuda_tag(type);
    MR_CUDA_FIND(out->count, command, &kernels->select_count[type], MODULE_SELECT,
                 "select_count_%s", tag);
    MR_CUDA_FIND(out->tally, command, &kernels->select_tally[type], MODULE_SELECT,
                 "select_tally_%s", tag);
    MR_CUDA_FIND(out->write, command, &kernels->select_write[type], MODULE_SELECT,
                 "select_write_%s", tag);
    MR_CUDA_FIND(out->digit, command, &kernels->select_digit, MODULE_SELECT, "select_digit");
    return MR_OK;
}

/* Finds the positions of the taken elements. */
static mr_status find_taken(const mr_command *command, CUstream stream, mr_dtype type,
                            mr_cuda_select *args) {
    selecting find;
    MR_TRY(find_selecting(command, type, &find));
    uint64_t lines = args->order.lines, blocks = lines * args->order.tiles;
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.MemsetD8Async((CUdeviceptr)args->digits, 0,
                                    lines * MR_CUDA_DIGITS * sizeof(uint32_t), stream),
                "%s", command->name);
    for (int shift = (int)args->order.bits - MR_CUDA_DIGIT_BITS; shift >= 0;
         shift -= MR_CUDA_DIGIT_BITS) {
        args->shift = (uint32_t)shift;
        MR_TRY(mr_cuda_enqueue(command, stream, find.count, blocks, args));
        MR_TRY(mr_cuda_enqueue(command, stream, find.digit, lines, args));
        mr_cuda_device_of(command)->machine->submissions += 2;
    }
    MR_TRY(mr_cuda_enqueue(command, stream, find.tally, blocks, args));
    MR_TRY(mr_cuda_scan_counts(command, stream, 2 * lines, args->order.tiles, args->counts,
                               args->totals));
    mr_cuda_device_of(command)->machine->submissions += 3; /* with the fill and what follows */
    return mr_cuda_enqueue(command, stream, find.write, blocks, args);
}

static mr_status sort_taken(const mr_command *command, CUstream stream, const mr_sorting *s,
                            mr_cuda_order *order) {
    mr_cuda_select args = {.order = *order};
    uint64_t lines = order->lines, tiles = mr_cuda_blocks(order->length, MR_CUDA_SORT_TILE),
             last = lines * sizeof(mr_cuda_last), digits = lines * MR_CUDA_DIGITS,
             counts = lines * 2 * tiles, totals = lines * 2, positions = lines * order->taken;
    CUdeviceptr memory;
    MR_TRY(mr_cuda_borrow(command, stream,
                          last + (digits + counts + totals + positions) * sizeof(uint32_t),
                          &memory));
    args.last = (mr_cuda_last *)memory;
    args.digits = (uint32_t *)(memory + last);
    args.counts = args.digits + digits;
    args.totals = args.counts + counts;
    args.order.positions = args.totals + totals;
    args.order.tiles = (uint32_t)tiles;
    mr_status status = find_taken(command, stream, key_type(s), &args);
    args.order.length = args.order.pitch = order->taken;
    if (!status) status = sort_lines(command, stream, s, &args.order);
    mr_cuda_return(command, stream, memory);
    return status;
}

mr_status mr_cuda_launch_sort(const mr_command *command, CUstream stream) {
    mr_sorting s = mr_sorting_of(command);
    mr_cuda_order args = arguments(&s);
    if (args.lines * args.taken == 0) return MR_OK;
    switch (mr_sort_way_of((int64_t)args.length, (int64_t)args.taken)) {
    case MR_SORT_SHORT: return sort_lines(command, stream, &s, &args);
    case MR_SORT_TAKEN: return sort_taken(command, stream, &s, &args);
    case MR_SORT_ALL: break;
    }
    return sort_all(command, stream, &s, &args);
}
