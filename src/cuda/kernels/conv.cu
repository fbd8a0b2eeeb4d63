/* Convolutions as matrix products whose right side nobody writes down: what the taps see is read from the source when a
 * tile needs it. ops/network.h says what is summed; mr_cuda_conv is mr_conv as the kernels take it.
 *
 * A block makes a tile of the result, a thread TM x TN of it, from slabs of DEPTH taps (or positions) in shared memory. A
 * slab's successor is loaded while it is multiplied. Products are fused with their additions and added in the order of
 * the taps, as on the CPU. */
#include "cuda/kernels/device.cuh"

enum { THREADS = MR_CUDA_CONV_THREADS, ACROSS = 16, DOWN = THREADS / ACROSS };

MR_DEVICE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
MR_DEVICE double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

/* The tile that a block makes: TM rows a thread, DOWN threads; TN columns, ACROSS threads. */
template <class T> struct tiling {
    static constexpr int TM = MR_CUDA_CONV_ROWS / (sizeof(T) / 4) / DOWN;
    static constexpr int TN = MR_CUDA_CONV_COLUMNS / (sizeof(T) / 4) / ACROSS;
    static constexpr int ROWS = TM * DOWN, COLUMNS = TN * ACROSS;
};

/* sums += left (DEPTH x ROWS) times right (DEPTH x COLUMNS). A thread's columns are PER neighbours, then ACROSS * PER
 * further: so the threads of a warp read neighbouring vectors. */
template <class T, int DEPTH, int LEFT, int RIGHT>
MR_DEVICE void multiply(const T (*left)[LEFT], const T (*right)[RIGHT],
                        T (&sum)[tiling<T>::TM][tiling<T>::TN]) {
    constexpr int PER = 16 / sizeof(T), TM = tiling<T>::TM, TN = tiling<T>::TN;
    int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS;
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        T a[TM], b[TN];
#pragma unroll
        for (int i = 0; i < TM; i += PER) {
            vector<T, PER> v = load_vector<T, PER>(left[d], (uint64_t)(y * PER + i * DOWN));
#pragma unroll
            for (int e = 0; e < PER; e++) a[i + e] = v.v[e];
        }
#pragma unroll
        for (int j = 0; j < TN; j += PER) {
            vector<T, PER> v = load_vector<T, PER>(right[d], (uint64_t)(x * PER + j * ACROSS));
#pragma unroll
            for (int e = 0; e < PER; e++) b[j + e] = v.v[e];
        }
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++) sum[i][j] = fused(a[i], b[j], sum[i][j]);
    }
}

/* The row or column of the tile at which a thread's sum i is. */
template <class T> MR_DEVICE int place(int thread, int i, int threads) {
    constexpr int PER = 16 / sizeof(T);
    return thread * PER + i / PER * PER * threads + i % PER;
}

MR_DEVICE uint32_t quotient(const mr_cuda_divisor &d, uint32_t n) {
    return (__umulhi(n, d.multiplier) + n) >> d.shift;
}

/* ------------------------------------------------------------------------- conv2d, conv2d_input */

/* A thread loads one column of the right slab: one position of the grid, whose image, row and column it keeps. */
template <class T> MR_DEVICE void convolve(const mr_cuda_conv &p) {
    constexpr int DEPTH = 8, ROWS = tiling<T>::ROWS, COLUMNS = tiling<T>::COLUMNS;
    constexpr int TM = tiling<T>::TM, TN = tiling<T>::TN, PAD = 16 / sizeof(T);
    constexpr int EACH = COLUMNS * DEPTH / THREADS, LEFT = ROWS * DEPTH / THREADS;
    __shared__ __align__(16) T left[2][DEPTH][ROWS + PAD], right[2][DEPTH][COLUMNS];
    uint32_t tile = blockIdx.x % (p.column_tiles * p.row_tiles), group = blockIdx.x / (p.column_tiles * p.row_tiles);
    uint32_t first_row = tile / p.column_tiles * ROWS, first_column = tile % p.column_tiles * COLUMNS;
    const T *weights = (const T *)p.weights + p.weight_offset + group * p.weight_group;

    /* This thread's position, and the first of its taps in each slab. */
    int own_column = threadIdx.x % COLUMNS, own_depth = threadIdx.x / COLUMNS * EACH;
    uint32_t position = first_column + own_column;
    bool exists = position < p.positions;
    uint32_t line = quotient(p.columns, position), column = position - line * p.columns.value;
    uint32_t image = quotient(p.rows, line), row = line - image * p.rows.value;
    int y = (int)row * p.step[0] + p.start[0], x = (int)column * p.step[1] + p.start[1];
    const T *source = (const T *)p.source + image * p.source_image + group * p.source_group +
                      y * p.source_stride[0] + x * p.source_stride[1];

    /* A row of the left slab, and LEFT of its taps. */
    int own_row = threadIdx.x / (DEPTH / LEFT), own_tap = threadIdx.x % (DEPTH / LEFT) * LEFT;
    bool is_output = first_row + own_row < p.outputs;
    const T *weight_row = weights + (int64_t)(first_row + own_row) * p.weight_output;

    T next_left[LEFT], next_right[EACH], sum[TM][TN] = {};
    auto load = [&](uint32_t from) {
#pragma unroll
        for (int i = 0; i < LEFT; i++) {
            uint32_t k = from + own_tap + i, channel = quotient(p.taps, k), tap = k - channel * p.taps.value;
            uint32_t a = quotient(p.tap_columns, tap), b = tap - a * p.tap_columns.value;
            next_left[i] = is_output && k < p.depth
                               ? weight_row[channel * p.weight_channel + a * p.weight_tap[0] + b * p.weight_tap[1]]
                               : (T)0;
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            uint32_t k = from + own_depth + i, channel = quotient(p.taps, k), tap = k - channel * p.taps.value;
            uint32_t a = quotient(p.tap_columns, tap), b = tap - a * p.tap_columns.value;
            int dy = (int)a * p.tap_step[0], dx = (int)b * p.tap_step[1];
            bool inside = exists && k < p.depth && (uint32_t)(y + dy) < p.source_size[0] &&
                          (uint32_t)(x + dx) < p.source_size[1];
            next_right[i] = inside ? source[channel * p.source_channel + dy * p.source_stride[0] + dx * p.source_stride[1]]
                                   : (T)0;
        }
    };
    auto store = [&](int half) {
#pragma unroll
        for (int i = 0; i < LEFT; i++) left[half][own_tap + i][own_row] = next_left[i];
#pragma unroll
        for (int i = 0; i < EACH; i++) right[half][own_depth + i][own_column] = next_right[i];
    };

    int half = 0;
    if (p.depth > 0) {
        load(0);
        store(0);
    }
    __syncthreads();
    for (uint32_t from = 0; from < p.depth; from += DEPTH, half ^= 1) {
        bool more = from + DEPTH < p.depth;
        if (more) load(from + DEPTH);
        multiply<T, DEPTH>(left[half], right[half], sum);
        if (more) store(half ^ 1);
        __syncthreads();
    }

    int thread_x = threadIdx.x % ACROSS, thread_y = threadIdx.x / ACROSS;
#pragma unroll
    for (int j = 0; j < TN; j++) {
        uint32_t to = first_column + place<T>(thread_x, j, ACROSS);
        if (to >= p.positions) continue;
        uint32_t to_line = quotient(p.columns, to), to_column = to - to_line * p.columns.value;
        uint32_t to_image = quotient(p.rows, to_line), to_row = to_line - to_image * p.rows.value;
        T *out = (T *)p.out + p.out_offset + to_image * p.out_image + group * p.out_group +
                 to_row * p.out_stride[0] + to_column * p.out_stride[1];
#pragma unroll
        for (int i = 0; i < TM; i++) {
            uint32_t output = first_row + place<T>(thread_y, i, DOWN);
            if (output >= p.outputs) continue;
            T bias = p.bias ? ((const T *)p.bias)[(group * p.outputs + output) * p.bias_stride] : (T)0;
            out[output * p.out_output] = sum[i][j] + bias;
        }
    }
}

/* ------------------------------------------------------------------------- conv2d_weight */

/* What column `number` of the tile is: a tap of a channel. */
struct seen_tap {
    int64_t offset;
    int dy, dx;
};

/* Rows are outputs, columns are taps, and the sum goes over a chunk of positions. ALONG threads side by side load
 * neighbouring positions. */
template <class T> MR_DEVICE void convolve_weight(const mr_cuda_conv &p) {
    constexpr int DEPTH = 16, ROWS = tiling<T>::ROWS, COLUMNS = tiling<T>::COLUMNS;
    constexpr int TM = tiling<T>::TM, TN = tiling<T>::TN, PAD = 16 / sizeof(T);
    constexpr int LOADERS = THREADS / DEPTH, LEFT = ROWS / LOADERS, RIGHT = COLUMNS / LOADERS;
    __shared__ __align__(16) T left[2][DEPTH][ROWS + PAD], right[2][DEPTH][COLUMNS + PAD];
    __shared__ seen_tap taps[COLUMNS];
    uint32_t tile = blockIdx.x % (p.column_tiles * p.row_tiles), part = blockIdx.x / (p.column_tiles * p.row_tiles);
    uint32_t group = part % p.groups, chunk = part / p.groups;
    uint32_t first_row = tile / p.column_tiles * ROWS, first_column = tile % p.column_tiles * COLUMNS;
    uint32_t begin = chunk * p.chunk, end = p.positions - begin < p.chunk ? p.positions : begin + p.chunk;
    if (begin >= p.positions) begin = end = 0;

    for (int i = threadIdx.x; i < COLUMNS; i += THREADS) {
        uint32_t k = first_column + i, channel = quotient(p.taps, k), tap = k - channel * p.taps.value;
        uint32_t a = quotient(p.tap_columns, tap), b = tap - a * p.tap_columns.value;
        /* A tap that does not exist sees nothing, wherever it looks. */
        int dy = k < p.depth ? (int)a * p.tap_step[0] : INT32_MIN / 2, dx = (int)b * p.tap_step[1];
        taps[i] = {k < p.depth ? channel * p.source_channel + dy * p.source_stride[0] + dx * p.source_stride[1] : 0,
                   dy, dx};
    }
    __syncthreads();

    int own = threadIdx.x % DEPTH, loader = threadIdx.x / DEPTH;
    const T *gradient = (const T *)p.weights + group * p.out_group + first_row * p.out_output;
    const T *source = (const T *)p.source + group * p.source_group;
    T next_left[LEFT], next_right[RIGHT], sum[TM][TN] = {};
    auto load = [&](uint32_t from) {
        uint32_t position = from + own;
        bool exists = position < end;
        uint32_t line = quotient(p.columns, position), column = position - line * p.columns.value;
        uint32_t image = quotient(p.rows, line), row = line - image * p.rows.value;
        int y = (int)row * p.step[0] + p.start[0], x = (int)column * p.step[1] + p.start[1];
        int64_t at = image * p.out_image + row * p.out_stride[0] + column * p.out_stride[1];
        int64_t seen = image * p.source_image + y * p.source_stride[0] + x * p.source_stride[1];
#pragma unroll
        for (int i = 0; i < LEFT; i++) {
            uint32_t output = i * LOADERS + loader;
            next_left[i] = exists && first_row + output < p.outputs ? gradient[at + output * p.out_output] : (T)0;
        }
#pragma unroll
        for (int i = 0; i < RIGHT; i++) {
            const seen_tap &tap = taps[i * LOADERS + loader];
            bool inside = exists && (uint32_t)(y + tap.dy) < p.source_size[0] && (uint32_t)(x + tap.dx) < p.source_size[1];
            next_right[i] = inside ? source[seen + tap.offset] : (T)0;
        }
    };
    auto store = [&](int half) {
#pragma unroll
        for (int i = 0; i < LEFT; i++) left[half][own][i * LOADERS + loader] = next_left[i];
#pragma unroll
        for (int i = 0; i < RIGHT; i++) right[half][own][i * LOADERS + loader] = next_right[i];
    };

    int half = 0;
    if (begin < end) {
        load(begin);
        store(0);
    }
    __syncthreads();
    for (uint32_t from = begin; from < end; from += DEPTH, half ^= 1) {
        bool more = from + DEPTH < end;
        if (more) load(from + DEPTH);
        multiply<T, DEPTH>(left[half], right[half], sum);
        if (more) store(half ^ 1);
        __syncthreads();
    }

    int thread_x = threadIdx.x % ACROSS, thread_y = threadIdx.x / ACROSS;
    T *out = (T *)p.out + (int64_t)part * p.outputs * p.depth; /* [chunk][group][output][tap] */
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) {
            uint32_t output = first_row + place<T>(thread_y, i, DOWN), k = first_column + place<T>(thread_x, j, ACROSS);
            if (output < p.outputs && k < p.depth) out[(int64_t)output * p.depth + k] = sum[i][j];
        }
}

#define CONV(name, T, make)                                                                        \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        millrace_##name(const __grid_constant__ mr_cuda_conv p) {                                  \
        make<T>(p);                                                                                \
    }
CONV(conv_f32, float, convolve)
CONV(conv_f64, double, convolve)
CONV(conv_weight_f32, float, convolve_weight)
CONV(conv_weight_f64, double, convolve_weight)
