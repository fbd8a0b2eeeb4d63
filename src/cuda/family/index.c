/* Rows whose elements an index chooses. An index out of range fails an assertion in the kernel. Before that, the
 * kernel writes the index to pinned memory; error.c makes a sentence of it. */
#include "cuda/family/family.h"
#include "cuda/launch/sort.h"
#include "cuda/wait/wait.h"
#include "ops/index.h"

#include <stdlib.h>

static void close_indices(cuda_device *device) {
    cuda_indices *indices = device->indices;
    for (int i = 0; i < TRAIL_LENGTH; i++) {
        mr_name_release(indices->last[i].index);
        mr_name_release(indices->last[i].chosen);
    }
    mr_cuda_pinned_give(device->machine, indices->block);
    free(indices);
    device->indices = NULL;
}

static mr_status find_indices(const mr_command *command, cuda_indices **out_indices) {
    cuda_device *device = mr_cuda_device_of(command);
    *out_indices = device->indices;
    if (device->indices) return MR_OK;
    cuda_indices *indices = calloc(1, sizeof *indices);
    if (!indices) return mr_no_memory("for %s", command->name);
    cuda_pinned_block block;
    mr_status status = mr_cuda_pinned_take(device->machine, sizeof(mr_cuda_complaint), &block);
    if (status) {
        free(indices);
        return status;
    }
    indices->block = block.block;
    indices->complaint = block.host;
    indices->device = block.device;
    indices->close = close_indices;
    *indices->complaint = (mr_cuda_complaint){0};
    device->indices = *out_indices = indices;
    return MR_OK;
}

static void remember(cuda_indices *indices, uint64_t seq, const mr_indexing *g) {
    int i = (int)(indices->launches++ % TRAIL_LENGTH);
    mr_name_release(indices->last[i].index);
    mr_name_release(indices->last[i].chosen);
    indices->last[i].seq = seq;
    indices->last[i].index = mr_name_retain(g->tensor[MR_SIDE_INDEX]->name);
    indices->last[i].chosen = mr_name_retain(g->tensor[MR_SIDE_CHOSEN]->name);
}

/* ------------------------------------------------------------------------- arguments */

static mr_cuda_index arguments(const mr_command *command, const cuda_indices *indices,
                               const mr_indexing *g) {
    const mr_tensor *plain = g->tensor[MR_SIDE_PLAIN], *chosen = g->tensor[MR_SIDE_CHOSEN];
    mr_cuda_index args = {.plain = plain ? (void *)mr_cuda_data(plain) : NULL,
                          .index = (const void *)mr_cuda_data(g->tensor[MR_SIDE_INDEX]),
                          .chosen = (void *)mr_cuda_data(chosen),
                          .step = g->step,
                          .size = g->size,
                          .wide = g->tensor[MR_SIDE_INDEX]->dtype == MR_I64,
                          .complaint = (mr_cuda_complaint *)indices->device,
                          .seq = command->seq};
    const mr_index_body *body = command->u.op.row->body;
    args.flat = body->flat;
    if (!plain)
        mr_dtype_store((mr_dtype)chosen->dtype, &args.number, mr_params_of(command).index.number);
    return args;
}

/* The shape of positions or lines; `sort`: in any order. */
static void lay_out(const mr_indexing *g, bool sort, mr_cuda_index *args) {
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, g->ndim, g->shape);
    args->count = 1;
    for (int d = 0; d < g->ndim; d++) args->count *= (uint64_t)g->shape[d];
    for (int side = 0; side < MR_SIDES; side++)
        mr_cuda_layout_add(&layout, g->ndim, g->shape, g->stride[side]);
    mr_cuda_layout_end(&layout, sort, &args->shape, args->stride);
}

/* ------------------------------------------------------------------------- picking */

/* If the elements of a run are neighbours on both sides, and the index stands still: as many of them as 16 bytes hold
 * count as one. */
static int64_t widen(mr_indexing *g, int64_t size) {
    int64_t length = 16 / size;
    int last = g->ndim - 1;
    const int sides[] = {MR_SIDE_PLAIN, MR_SIDE_CHOSEN};
    bool fits = g->stride[MR_SIDE_INDEX][last] == 0 && g->shape[last] % length == 0 &&
                g->step % length == 0;
    for (int i = 0; i < 2 && fits; i++) {
        const int64_t *stride = g->stride[sides[i]];
        fits = stride[last] == 1 && mr_cuda_aligned(mr_cuda_data(g->tensor[sides[i]]));
        for (int d = 0; d < last && fits; d++) fits = g->shape[d] == 1 || stride[d] % length == 0;
    }
    if (!fits) return size;
    g->shape[last] /= length;
    g->step /= length;
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < last; d++) g->stride[sides[i]][d] /= length;
    return 16;
}

static mr_status pick(const mr_command *command, CUstream stream, mr_indexing *g,
                      const cuda_indices *indices) {
    int64_t size = widen(g, (int64_t)mr_dtype_size((mr_dtype)g->tensor[MR_SIDE_PLAIN]->dtype));
    mr_cuda_index args = arguments(command, indices, g);
    lay_out(g, true, &args);
    CUfunction function;
    MR_CUDA_FIND(function, command, &mr_cuda_kernels_of(command)->pick[__builtin_ctzl(size)],
                 MODULE_INDEX, "pick_%d", (int)size);
    return mr_cuda_enqueue(command, stream, function, mr_cuda_blocks(args.count, MR_CUDA_STRIDED),
                           &args);
}

/* ------------------------------------------------------------------------- setting, adding */

enum { SHORT = 64, MANY_LINES = 1 << 16 }; /* where a thread for each line is better than a sort */

/* The geometry without the dim of the index: the lines. */
static void take_along(mr_indexing *g, mr_cuda_index *args) {
    args->length = g->shape[g->along];
    for (int side = 0; side < MR_SIDES; side++) {
        args->along[side] = g->stride[side][g->along];
        g->stride[side][g->along] = 0;
    }
    g->shape[g->along] = 1;
}

/* "add_f32", "set_4" */
static mr_status find_place(const mr_command *command, const mr_indexing *g, int form,
                            CUfunction *out_function) {
    static const char *const forms[] = {"lines", "u32", "u64"};
    const mr_index_body *body = command->u.op.row->body;
    mr_dtype dtype = (mr_dtype)g->tensor[MR_SIDE_CHOSEN]->dtype;
    CUfunction *slot =
        &mr_cuda_kernels_of(command)->place[body->action == MR_INDEX_ADD][dtype][form];
    if (body->action == MR_INDEX_ADD)
        MR_CUDA_FIND(*out_function, command, slot, MODULE_INDEX, "add_%s_%s", mr_cuda_tag(dtype),
                     forms[form]);
    else
        MR_CUDA_FIND(*out_function, command, slot, MODULE_INDEX, "set_%d_%s",
                     (int)mr_dtype_size(dtype), forms[form]);
    return MR_OK;
}

static mr_status place_lines(const mr_command *command, CUstream stream, const mr_indexing *g,
                             mr_cuda_index *args) {
    CUfunction function;
    MR_TRY(find_place(command, g, 0, &function));
    return mr_cuda_enqueue(command, stream, function, mr_cuda_blocks(args->count, MR_CUDA_THREADS),
                           args);
}

static mr_status sort_and_place(const mr_command *command, CUstream stream, cuda_sorting *sorting,
                                CUfunction keys, CUfunction place, mr_cuda_index_keys *args,
                                uint64_t choices) {
    args->keys = sorting->keys[0];
    MR_TRY(mr_cuda_enqueue(command, stream, keys, mr_cuda_spread(command, sorting->length), args));
    MR_TRY(mr_cuda_sort_by_keys(command, stream, sorting, 0, mr_cuda_bits(choices)));
    args->keys = sorting->keys[sorting->at];
    args->positions = sorting->payload[sorting->at];
    uint64_t threads = args->index.flat ? sorting->length * args->index.count : sorting->length;
    return mr_cuda_enqueue(command, stream, place, mr_cuda_spread(command, threads), args);
}

static mr_status place_sorted(const mr_command *command, CUstream stream, const mr_indexing *g,
                              const mr_cuda_index *index) {
    mr_cuda_index_keys args = {.index = *index};
    uint64_t lines = index->flat ? 1 : index->count, choices = lines * (uint64_t)index->size;
    bool wide = choices > UINT32_MAX;
    CUfunction keys, place;
    MR_CUDA_FIND(keys, command, &mr_cuda_kernels_of(command)->index_keys[wide], MODULE_INDEX,
                 "index_keys_%s", wide ? "u64" : "u32");
    MR_TRY(find_place(command, g, wide ? 2 : 1, &place));
    cuda_sorting sorting = {.lines = 1,
                            .length = lines * (uint64_t)index->length,
                            .wide = wide,
                            .payload_size = sizeof(uint32_t)};
    MR_TRY(mr_cuda_sorting_begin(command, stream, &sorting));
    mr_status status = sort_and_place(command, stream, &sorting, keys, place, &args, choices);
    mr_cuda_sorting_end(command, stream, &sorting);
    return status;
}

/* ------------------------------------------------------------------------- many additions */

/* So many additions for each bin, or each element that it has, are worth the look at all elements. */
enum { MANY = 1 << 14, MOST_BITS = 28, ELEMENTS_AN_ADDITION = 4 };

static bool fits_bins(const mr_indexing *g, const mr_cuda_index *args) {
    const mr_tensor *chosen = g->tensor[MR_SIDE_CHOSEN];
    double lines = (double)args->count, size = (double)args->size;
    uint64_t additions = args->count * (uint64_t)args->length;
    return args->plain && chosen->numel > 0 && (!args->flat || args->count == 1) &&
           additions >= MANY && additions <= UINT32_MAX &&
           lines * size <= (double)(1u << MOST_BITS) &&
           lines * size <= (double)additions * ELEMENTS_AN_ADDITION;
}

/* The elements of the plain side lie as the sort carries them. */
static bool are_carried(const mr_cuda_index *args, size_t size) {
    bool in_line = args->along[MR_SIDE_PLAIN] == 1 || args->length == 1;
    bool between = args->count == 1 ||
                   (args->shape.ndim == 1 && args->stride[MR_SIDE_PLAIN].stride[0] == args->length);
    return size >= 4 && in_line && between;
}

static mr_status sort_into_bins(const mr_command *command, CUstream stream, const mr_indexing *g,
                                cuda_sorting *sorting, mr_cuda_bins *args) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    mr_dtype dtype = (mr_dtype)g->tensor[MR_SIDE_CHOSEN]->dtype;
    size_t size = mr_dtype_size(dtype);
    uint64_t choices = args->index.count * (uint64_t)args->index.size;
    int bits = mr_cuda_bits(choices);
    CUfunction keys, add;
    MR_CUDA_FIND(keys, command, &kernels->bins_keys[__builtin_ctzl(size)], MODULE_BINS,
                 "bins_keys_%d", (int)size);
    MR_CUDA_FIND(add, command, &kernels->add_bins[dtype], MODULE_BINS, "add_%s_bins",
                 mr_cuda_tag(dtype));
    bool carried = are_carried(&args->index, size);
    sorting->first_payload = carried ? args->index.plain : sorting->payload[0];
    args->keys = sorting->keys[0];
    args->payload = carried ? NULL : sorting->payload[0];
    args->counts = sorting->counts;
    args->tiles = sorting->tiles;
    MR_TRY(mr_cuda_enqueue(command, stream, keys, sorting->tiles, args));
    mr_cuda_device_of(command)->machine->submissions++;
    sorting->counted = true;
    if (bits <= (int)args->shift) bits = (int)args->shift + 1;
    MR_TRY(mr_cuda_sort_by_keys(command, stream, sorting, (int)args->shift, bits));
    args->keys = sorting->keys[sorting->at];
    args->payload = sorting->payload[sorting->at];
    return mr_cuda_enqueue(command, stream, add, mr_cuda_blocks(choices, 1ull << args->shift),
                           args);
}

static mr_status add_bins(const mr_command *command, CUstream stream, const mr_indexing *g,
                          const mr_cuda_index *index) {
    int carrier = mr_dtype_size((mr_dtype)g->tensor[MR_SIDE_CHOSEN]->dtype) == 8 ? 8 : 4;
    int most = mr_cuda_bits(MR_CUDA_BIN_BYTES / (uint64_t)carrier),
        all = mr_cuda_bits(index->count * (uint64_t)index->size);
    mr_cuda_bins args = {.index = *index, .count = index->count * (uint64_t)index->length};
    int least =
        all - MR_CUDA_DIGIT_BITS; /* as many bins as one pass makes, for all of the device */
    args.shift = (uint32_t)(least > most ? most : least < 0 ? 0 : least);
    cuda_sorting sorting = {.lines = 1, .length = args.count, .payload_size = carrier};
    MR_TRY(mr_cuda_sorting_begin(command, stream, &sorting));
    mr_status status = sort_into_bins(command, stream, g, &sorting, &args);
    mr_cuda_sorting_end(command, stream, &sorting);
    return status;
}

mr_status mr_cuda_launch_index(const mr_command *command, CUstream stream) {
    const mr_index_body *body = command->u.op.row->body;
    cuda_indices *indices;
    mr_indexing g;
    MR_TRY(find_indices(command, &indices));
    mr_indexing_of(command, &g);
    remember(indices, command->seq, &g);
    if (body->action == MR_INDEX_PICK) return pick(command, stream, &g, indices);
    mr_cuda_index args = arguments(command, indices, &g);
    take_along(&g, &args);
    lay_out(&g, false, &args);
    /* A thread with a line would round after each addition. */
    bool in_f32 =
        body->action == MR_INDEX_ADD && mr_dtype_is_half((mr_dtype)g.tensor[MR_SIDE_CHOSEN]->dtype);
    uint64_t positions = (uint64_t)args.length * args.count;
    if (body->action == MR_INDEX_ADD && fits_bins(&g, &args))
        return add_bins(command, stream, &g, &args);
    bool threads = !in_f32 && (args.length <= SHORT || positions > UINT32_MAX ||
                               (!args.flat && args.count >= MANY_LINES));
    return threads ? place_lines(command, stream, &g, &args)
                   : place_sorted(command, stream, &g, &args);
}
