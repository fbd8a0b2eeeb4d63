/* The passes of a radix sort, and the memory that they need: see kernels/sort.cu. */
#include "cuda/sort.h"

enum { DIGITS = 256, DIGIT_BITS = 8, ALIGNMENT = 256 };

static uint64_t aligned(uint64_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

mr_status mr_cuda_sorting_begin(const mr_command *command, CUstream stream, uint64_t count,
                                bool wide, cuda_sorting *out) {
    *out = (cuda_sorting){.count = count, .wide = wide};
    if (count > UINT32_MAX)
        return mr_fail(MR_CODE_NOT_SUPPORTED, "%s: a GPU sorts up to 2^32 - 1 elements at once",
                       command->name);
    uint64_t keys = aligned(count * (wide ? 8 : 4)), positions = aligned(count * 4);
    uint64_t tiles = mr_cuda_blocks(count, MR_CUDA_SORT_TILE), counts = aligned(tiles * DIGITS * 4);
    CUdeviceptr at;
    MR_TRY(mr_cuda_borrow(command, stream, 2 * keys + 2 * positions + counts + DIGITS * 4, &at));
    out->memory = at;
    for (int i = 0; i < 2; i++) {
        out->keys[i] = (void *)at, at += keys;
        out->positions[i] = (uint32_t *)at, at += positions;
    }
    out->counts = (uint32_t *)at, at += counts;
    out->totals = (uint32_t *)at;
    return MR_OK;
}

void mr_cuda_sorting_end(CUstream stream, cuda_sorting *sorting) {
    mr_cuda_return(stream, sorting->memory);
    sorting->memory = 0;
}

static mr_status pass(const mr_command *command, CUstream stream, cuda_sorting *s, uint32_t shift,
                      uint32_t line_length) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    const char *tag = s->wide ? "u64" : "u32";
    CUfunction count, scan, move;
    MR_CUDA_FIND(count, command, &kernels->radix_count[s->wide], MODULE_SORT, "radix_count_%s",
                 tag);
    MR_CUDA_FIND(scan, command, &kernels->radix_scan, MODULE_SORT, "radix_scan");
    MR_CUDA_FIND(move, command, &kernels->radix_move[s->wide], MODULE_SORT, "radix_move_%s", tag);
    mr_cuda_radix args = {.keys_in = s->keys[s->at],
                          .keys_out = s->keys[!s->at],
                          .positions_in = s->positions[s->at],
                          .positions_out = s->positions[!s->at],
                          .count = s->count,
                          .counts = s->counts,
                          .totals = s->totals,
                          .tiles = (uint32_t)mr_cuda_blocks(s->count, MR_CUDA_SORT_TILE),
                          .shift = shift,
                          .line_length = line_length};
    MR_TRY(mr_cuda_enqueue(command, stream, count, args.tiles, &args));
    MR_TRY(mr_cuda_enqueue(command, stream, scan, DIGITS, &args));
    MR_TRY(mr_cuda_enqueue(command, stream, move, args.tiles, &args));
    mr_cuda_device_of(command)->machine->submissions += 3;
    s->at = !s->at;
    return MR_OK;
}

mr_status mr_cuda_sort_by_keys(const mr_command *command, CUstream stream, cuda_sorting *sorting,
                               int bits) {
    for (int shift = 0; shift < bits; shift += DIGIT_BITS)
        MR_TRY(pass(command, stream, sorting, (uint32_t)shift, 0));
    return MR_OK;
}

mr_status mr_cuda_sort_by_lines(const mr_command *command, CUstream stream, cuda_sorting *sorting,
                                uint64_t length, uint64_t lines) {
    if (lines <= 1) return MR_OK;
    for (int shift = 0; shift < mr_cuda_bits(lines); shift += DIGIT_BITS)
        MR_TRY(pass(command, stream, sorting, (uint32_t)shift, (uint32_t)length));
    return MR_OK;
}
