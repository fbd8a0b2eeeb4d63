/* The passes of a radix sort, and the memory that they need: see kernels/sort.cu. */
#include "cuda/launch/sort.h"

enum { ALIGNMENT = 256, SHORT_LIST = 32 /* tiles that one thread goes through */ };

static uint64_t aligned(uint64_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

mr_status mr_cuda_sorting_begin(const mr_command *command, CUstream stream, cuda_sorting *s) {
    enum { UNIT = 16 / sizeof(uint32_t) };
    if (s->length > UINT32_MAX)
        return mr_fail(MR_CODE_NOT_SUPPORTED, "%s: a GPU sorts up to 2^32 - 1 elements at once",
                       command->name);
    s->pitch = (s->length + UNIT - 1) / UNIT * UNIT;
    s->tiles = (uint32_t)mr_cuda_blocks(s->length, MR_CUDA_SORT_TILE);
    uint64_t count = s->lines * s->pitch, keys = aligned(count * (s->wide ? 8 : 4)),
             payload = aligned(count * (uint64_t)s->payload_size),
             counts = aligned(s->lines * s->tiles * MR_CUDA_DIGITS * sizeof(uint32_t)),
             totals = s->lines * MR_CUDA_DIGITS * sizeof(uint32_t);
    CUdeviceptr at;
    MR_TRY(mr_cuda_borrow(command, stream, 2 * keys + 2 * payload + counts + totals, &at));
    s->memory = at;
    for (int i = 0; i < 2; i++) {
        s->keys[i] = (void *)at, at += keys;
        s->payload[i] = (void *)at, at += payload;
    }
    s->counts = (uint32_t *)at, at += counts;
    s->totals = (uint32_t *)at;
    s->first_payload = NULL;
    s->counted = false;
    s->at = 0;
    return MR_OK;
}

void mr_cuda_sorting_end(const mr_command *command, CUstream stream, cuda_sorting *sorting) {
    mr_cuda_return(command, stream, sorting->memory);
    sorting->memory = 0;
}

mr_status mr_cuda_scan_counts(const mr_command *command, CUstream stream, uint64_t lists,
                              uint32_t tiles, uint32_t *counts, uint32_t *totals) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    mr_cuda_radix args = {.counts = counts, .totals = totals, .tiles = tiles, .length = lists};
    CUfunction scan, scan_short;
    MR_CUDA_FIND(scan, command, &kernels->radix_scan, MODULE_SORT, "radix_scan");
    MR_CUDA_FIND(scan_short, command, &kernels->radix_scan_short, MODULE_SORT, "radix_scan_short");
    mr_cuda_device_of(command)->machine->submissions++;
    return tiles <= SHORT_LIST ? mr_cuda_enqueue(command, stream, scan_short,
                                                 mr_cuda_blocks(lists, MR_CUDA_THREADS), &args)
                               : mr_cuda_enqueue(command, stream, scan, lists, &args);
}

static mr_status pass(const mr_command *command, CUstream stream, cuda_sorting *s, uint32_t shift,
                      const void *payload_in) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    const char *tag = s->wide ? "u64" : "u32";
    int kind = s->payload_size == 8 ? 2 : s->wide;
    CUfunction count, move;
    MR_CUDA_FIND(count, command, &kernels->radix_count[s->wide], MODULE_SORT, "radix_count_%s",
                 tag);
    MR_CUDA_FIND(move, command, &kernels->radix_move[kind], MODULE_SORT, "radix_move_%s_%d", tag,
                 s->payload_size);
    mr_cuda_radix args = {.keys_in = s->keys[s->at],
                          .keys_out = s->keys[!s->at],
                          .payload_in = payload_in,
                          .payload_out = s->payload[!s->at],
                          .length = s->length,
                          .pitch = s->pitch,
                          .counts = s->counts,
                          .totals = s->totals,
                          .tiles = s->tiles,
                          .shift = shift};
    if (!s->counted) {
        MR_TRY(mr_cuda_enqueue(command, stream, count, s->lines * s->tiles, &args));
        mr_cuda_device_of(command)->machine->submissions++;
    }
    MR_TRY(mr_cuda_scan_counts(command, stream, s->lines * MR_CUDA_DIGITS, s->tiles, s->counts,
                               s->totals));
    MR_TRY(mr_cuda_enqueue(command, stream, move, s->lines * s->tiles, &args));
    mr_cuda_device_of(command)->machine->submissions++;
    s->counted = false;
    s->at = !s->at;
    return MR_OK;
}

mr_status mr_cuda_sort_by_keys(const mr_command *command, CUstream stream, cuda_sorting *sorting,
                               int first, int end) {
    for (int shift = first; shift < end; shift += MR_CUDA_DIGIT_BITS)
        MR_TRY(pass(command, stream, sorting, (uint32_t)shift,
                    shift == first ? sorting->first_payload : sorting->payload[sorting->at]));
    return MR_OK;
}
