/* Convolutions as matrix products whose right side is never stored: the elements that the taps read come from the
 * source when a tile needs it. ops/network.h says what is summed; mr_cuda_conv is mr_conv as the kernels take it, and
 * args.h lists the kernels that there are. conv_tile.cuh says how a tile is multiplied, conv_taps.cuh what a tap sees.
 *
 * A slab's successor is loaded while it is multiplied. But for TF32, products are fused with their additions and added in
 * the order of the taps, as on the CPU. */
#include "cuda/kernels/conv_taps.cuh"
#include "cuda/kernels/conv_tile.cuh"

/* Taps that are described in shared memory at a time, by one thread each: twice, as the next are described while these
 * are in use. */
enum { DESCRIBED = 128 };

/* ------------------------------------------------------------------------- results */

/* The tile's sums and the bias to the result. */
template <class TILE> MR_DEVICE void write_tile(const mr_cuda_conv &p, const TILE &tile, uint32_t group, uint32_t first_row,
                                                uint32_t first_column) {
    typedef typename TILE::T T;
    constexpr int WIDTH = TILE::WIDTH;
    T bias[TILE::HEIGHT];
#pragma unroll
    for (int i = 0; i < TILE::HEIGHT; i++) {
        uint32_t output = first_row + tile.row(i);
        bias[i] = p.bias && output < p.outputs ? ((const T *)p.bias)[(group * p.outputs + output) * p.bias_stride] : (T)0;
    }
#pragma unroll
    for (int g = 0; g < TILE::GROUPS; g++) {
        uint32_t number = first_column + tile.column(g);
        if (number >= p.positions) continue;
#pragma unroll
        for (int e = 0; e < WIDTH; e++) {
            /* Vectors do not cross lines, and positions are whole vectors. */
            if (e > 0 && (p.vectors || number + e >= p.positions)) break;
            grid_position at = position_at(p, number + e);
            T *out = (T *)p.out + p.out_offset + at.image * p.out_image + group * p.out_group +
                     at.row * p.out_stride[0] + at.column * p.out_stride[1];
#pragma unroll
            for (int i = 0; i < TILE::HEIGHT; i++) {
                uint32_t output = first_row + tile.row(i);
                if (output >= p.outputs) continue;
                if (p.vectors) {
                    vector<T, WIDTH> v;
#pragma unroll
                    for (int w = 0; w < WIDTH; w++) v.v[w] = tile.value(i, g, w) + bias[i];
                    store_vector(out + output * p.out_output, 0, v);
                } else {
                    out[output * p.out_output] = tile.value(i, g, e) + bias[i];
                }
            }
        }
    }
}

/* ------------------------------------------------------------------------- conv2d, conv2d_input */

/* Rows are outputs, columns positions, and the sum goes over the taps. A thread loads one column of the right slab. */
template <class TILE, class TAPS> MR_DEVICE void convolve(const mr_cuda_conv &p) {
    typedef typename TILE::T T;
    typedef typename TAPS::offset offset;
    constexpr int ROWS = TILE::ROWS, COLUMNS = TILE::COLUMNS, DEPTH = TILE::DEPTH, LANES = TILE::LEFT_LANES;
    constexpr int THREADS = TILE::THREADS, RIGHT = COLUMNS * DEPTH / THREADS, LEFT_TAPS = DEPTH / LANES, LEFT_ROWS = ROWS * LANES / THREADS;
    static_assert(COLUMNS <= THREADS && DESCRIBED % DEPTH == 0 && DESCRIBED >= 2 * DEPTH);
    __shared__ __align__(16) T left[2][DEPTH][ROWS + TILE::PAD], right[2][DEPTH][COLUMNS + TILE::PAD];
    __shared__ __align__(16) typename TAPS::tap taps[2 * DESCRIBED];
    __shared__ offset weights_at[2 * DESCRIBED];
    uint32_t number = blockIdx.x % (p.column_tiles * p.row_tiles), group = blockIdx.x / (p.column_tiles * p.row_tiles);
    uint32_t first_row = number / p.column_tiles * ROWS, first_column = number % p.column_tiles * COLUMNS;

    int own_column = threadIdx.x % COLUMNS, own_depth = threadIdx.x / COLUMNS * RIGHT;
    uint32_t position = first_column + own_column;
    TAPS eye(p, (const T *)p.source + group * p.source_group, position_at(p, position), position < p.positions);

    int own_tap = threadIdx.x % LANES, own_row = threadIdx.x / LANES;
    const T *weights = (const T *)p.weights + p.weight_offset + group * p.weight_group +
                       (int64_t)(first_row + own_row) * p.weight_output;
    offset rows_apart = (offset)(THREADS / LANES * p.weight_output);

    auto describe = [&](uint32_t from) {
        uint32_t k = from + threadIdx.x;
        if (THREADS > DESCRIBED && threadIdx.x >= DESCRIBED) return;
        window_tap tap = tap_at(p, k);
        taps[k % (2 * DESCRIBED)] = TAPS::describe(p, tap, k < p.depth);
        weights_at[k % (2 * DESCRIBED)] =
            (offset)(tap.channel * p.weight_channel + tap.a * p.weight_tap[0] + tap.b * p.weight_tap[1]);
    };
    TILE tile;
    T next_left[LEFT_TAPS][LEFT_ROWS], next_right[RIGHT];
    auto load = [&](uint32_t from) {
#pragma unroll
        for (int i = 0; i < RIGHT; i++) next_right[i] = eye.see(taps[(from + own_depth + i) % (2 * DESCRIBED)]);
#pragma unroll
        for (int d = 0; d < LEFT_TAPS; d++) {
            uint32_t k = from + own_tap + d * LANES;
            offset at = weights_at[k % (2 * DESCRIBED)];
#pragma unroll
            for (int i = 0; i < LEFT_ROWS; i++) {
                bool exists = k < p.depth && first_row + own_row + i * (THREADS / LANES) < p.outputs;
                next_left[d][i] = load_if(exists, weights, at + i * rows_apart);
            }
        }
    };
    auto store = [&](int half) {
#pragma unroll
        for (int i = 0; i < RIGHT; i++) right[half][own_depth + i][own_column] = TILE::prepared(next_right[i]);
#pragma unroll
        for (int d = 0; d < LEFT_TAPS; d++)
#pragma unroll
            for (int i = 0; i < LEFT_ROWS; i++)
                left[half][own_tap + d * LANES][own_row + i * (THREADS / LANES)] = TILE::prepared(next_left[d][i]);
    };

    describe(0);
    __syncthreads();
    load(0);
    store(0);
    __syncthreads();
    int half = 0;
    for (uint32_t from = 0; from < p.depth; from += DEPTH, half ^= 1) {
        /* After the last slab there are only zeros. */
        load(from + DEPTH);
        tile.template add<DEPTH>(left[half], right[half]);
        store(half ^ 1);
        /* The other half of the descriptions was last read before the previous barrier. */
        if (from % DESCRIBED == 0) describe(from + DESCRIBED);
        __syncthreads();
    }
    write_tile(p, tile, group, first_row, first_column);
}

/* ------------------------------------------------------------------------- few outputs */

/* Most rows of a tile would be empty: a thread makes all outputs of a group at one position, and
 * reads ahead. */
template <int OUTPUTS> MR_DEVICE void convolve_thin(const mr_cuda_conv &p) {
    typedef near_taps<float> TAPS;
    enum { AHEAD = 16, THREADS = MR_CUDA_CONV_THREADS };
    static_assert(DESCRIBED == THREADS);
    __shared__ __align__(16) TAPS::tap taps[DESCRIBED];
    __shared__ vector<float, OUTPUTS> weights[DESCRIBED];
    uint32_t group = blockIdx.x / p.column_tiles, position = blockIdx.x % p.column_tiles * THREADS + threadIdx.x;
    grid_position at = position_at(p, position);
    TAPS eye(p, (const float *)p.source + group * p.source_group, at, position < p.positions);
    const float *own = (const float *)p.weights + p.weight_offset + group * p.weight_group;
    float sum[OUTPUTS] = {};
    for (uint32_t from = 0; from < p.depth; from += DESCRIBED) {
        uint32_t k = from + threadIdx.x, count = min(p.depth - from, (uint32_t)DESCRIBED);
        window_tap tap = tap_at(p, k);
        int64_t weight = tap.channel * p.weight_channel + tap.a * p.weight_tap[0] + tap.b * p.weight_tap[1];
        __syncthreads();
        taps[threadIdx.x] = TAPS::describe(p, tap, k < p.depth);
#pragma unroll
        for (int o = 0; o < OUTPUTS; o++)
            weights[threadIdx.x].v[o] = k < p.depth && o < p.outputs ? own[weight + o * p.weight_output] : 0.0f;
        __syncthreads();
        for (uint32_t d = 0; d < count; d += AHEAD) {
            float seen[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) seen[i] = eye.see(taps[d + i]);
            __syncwarp(); /* or the compiler saves registers by loading late */
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                vector<float, OUTPUTS> w = weights[d + i];
#pragma unroll
                for (int o = 0; o < OUTPUTS; o++) sum[o] = fused(w.v[o], seen[i], sum[o]);
            }
        }
    }
    if (position >= p.positions) return;
    float *out = (float *)p.out + p.out_offset + at.image * p.out_image + group * p.out_group +
                 at.row * p.out_stride[0] + at.column * p.out_stride[1];
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++) {
        if (o >= p.outputs) continue;
        float bias = p.bias ? ((const float *)p.bias)[(group * p.outputs + o) * p.bias_stride] : 0.0f;
        out[o * p.out_output] = sum[o] + bias;
    }
}

/* ------------------------------------------------------------------------- conv2d_weight */

/* Rows are outputs, columns are taps, and the sum goes over a chunk of positions. DEPTH threads side by side load
 * neighbours of it. */
template <class TILE, class TAPS> MR_DEVICE void convolve_weight(const mr_cuda_conv &p) {
    typedef typename TILE::T T;
    typedef typename TAPS::offset offset;
    constexpr int THREADS = TILE::THREADS, ROWS = TILE::ROWS, COLUMNS = TILE::COLUMNS, DEPTH = 16;
    constexpr int LOADERS = THREADS / DEPTH, LEFT = ROWS / LOADERS, RIGHT = COLUMNS / LOADERS;
    __shared__ __align__(16) T left[2][DEPTH][ROWS + TILE::PAD], right[2][DEPTH][COLUMNS + TILE::PAD];
    __shared__ __align__(16) typename TAPS::tap taps[COLUMNS];
    uint32_t number = blockIdx.x % (p.column_tiles * p.row_tiles), part = blockIdx.x / (p.column_tiles * p.row_tiles);
    uint32_t group = part % p.groups, chunk = part / p.groups;
    uint32_t first_row = number / p.column_tiles * ROWS, first_column = number % p.column_tiles * COLUMNS;
    uint32_t begin = chunk * p.chunk, end = p.positions - begin < p.chunk ? p.positions : begin + p.chunk;
    if (begin >= p.positions) begin = end = 0;

    for (int i = threadIdx.x; i < COLUMNS; i += THREADS) {
        uint32_t k = first_column + i;
        taps[i] = TAPS::describe(p, tap_at(p, k), k < p.depth);
    }
    __syncthreads();

    int own = threadIdx.x % DEPTH, loader = threadIdx.x / DEPTH;
    const T *gradient = (const T *)p.weights + group * p.out_group + (int64_t)(first_row + loader) * p.out_output;
    const T *source = (const T *)p.source + group * p.source_group;
    offset rows_apart = (offset)(LOADERS * p.out_output);
    TILE tile;
    T next_left[LEFT], next_right[RIGHT];
    auto load = [&](uint32_t from) {
        uint32_t position = from + own;
        bool exists = position < end;
        grid_position at = position_at(p, position);
        TAPS eye(p, source, at, exists);
        const T *of_position = gradient + at.image * p.out_image + at.row * p.out_stride[0] + at.column * p.out_stride[1];
#pragma unroll
        for (int i = 0; i < LEFT; i++) {
            bool is_output = exists && first_row + loader + i * LOADERS < p.outputs;
            next_left[i] = load_if(is_output, of_position, i * rows_apart);
        }
#pragma unroll
        for (int i = 0; i < RIGHT; i++) next_right[i] = eye.see(taps[loader + i * LOADERS]);
    };
    auto store = [&](int half) {
#pragma unroll
        for (int i = 0; i < LEFT; i++) left[half][own][loader + i * LOADERS] = TILE::prepared(next_left[i]);
#pragma unroll
        for (int i = 0; i < RIGHT; i++) right[half][own][loader + i * LOADERS] = TILE::prepared(next_right[i]);
    };

    load(begin);
    store(0);
    __syncthreads();
    int half = 0;
    for (uint32_t from = begin; from < end; from += DEPTH, half ^= 1) {
        load(from + DEPTH); /* zeros after the last position */
        tile.template add<DEPTH>(left[half], right[half]);
        store(half ^ 1);
        __syncthreads();
    }

    T *out = (T *)p.out + (int64_t)part * p.outputs * p.depth; /* [chunk][group][output][tap] */
#pragma unroll
    for (int i = 0; i < TILE::HEIGHT; i++)
#pragma unroll
        for (int g = 0; g < TILE::GROUPS; g++)
#pragma unroll
            for (int e = 0; e < TILE::WIDTH; e++) {
                uint32_t output = first_row + tile.row(i), k = first_column + tile.column(g) + e;
                if (output < p.outputs && k < p.depth) out[(int64_t)output * p.depth + k] = tile.value(i, g, e);
            }
}

/* ------------------------------------------------------------------------- the kernels */

#define KERNEL(name, threads, ...)                                                                 \
    static_assert(threads == MR_CUDA_CONV_THREADS, "what family/conv.c starts");                   \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        millrace_conv_##name(const __grid_constant__ mr_cuda_conv p) {                             \
        __VA_ARGS__(p);                                                                            \
    }
#define X(id, name, taps, T, tile, rows, columns, ...)                                             \
    typedef tile##_tile<__VA_ARGS__> tile_of_##name;                                               \
    KERNEL(name, tile_of_##name::THREADS, convolve<tile_of_##name, taps##_taps<T>>)
MR_CUDA_CONV_LIST(X)
#undef X
#define X(id, name, taps, T, tile, rows, columns, ...)                                             \
    typedef tile##_tile<__VA_ARGS__> tile_of_##name;                                               \
    KERNEL(name, tile_of_##name::THREADS, convolve_weight<tile_of_##name, taps##_taps<T>>)
MR_CUDA_CONV_WEIGHT_LIST(X)
#undef X
#define X(id, name, outputs) KERNEL(name, MR_CUDA_CONV_THREADS, convolve_thin<outputs>)
MR_CUDA_CONV_THIN_LIST(X)
#undef X
