/* The matrix product. An item is a row of the output, over all matrices of a batch. Floats go to CBLAS when it can read
 * the operands where they are with their strides. Everything else (integers, odd strides, small products, no library)
 * goes to a loop of our own over packed panels. f16 and bf16 are made f32 block by block, and each result is rounded
 * once. */
#include "ops/blas.h"
#include "ops/body.h"

#include <limits.h>
#include <stdlib.h>

enum { SMALL = 16 * 16 * 16 }; /* multiply-adds for which opening a library is not worth it */

/* One pair of matrices of the batch; strides in elements. A vector on the left is a row, on the right
 * a column. */
typedef struct {
    int64_t m, n, k;
    int64_t a_row, a_column, b_row, b_column;
    bool adds; /* adds to the old values of the output */
} product;

static product product_of(const mr_tensor *a, const mr_tensor *b) {
    product p = {.m = 1, .n = 1, .k = a->shape[a->ndim - 1], .a_column = a->stride[a->ndim - 1]};
    if (a->ndim > 1) {
        p.m = a->shape[a->ndim - 2];
        p.a_row = a->stride[a->ndim - 2];
    }
    if (b->ndim > 1) {
        p.b_row = b->stride[b->ndim - 2];
        p.n = b->shape[b->ndim - 1];
        p.b_column = b->stride[b->ndim - 1];
    } else {
        p.b_row = b->stride[0];
    }
    /* The stride of a dim of size 1 is never used; give it the value that suits CBLAS. */
    if (p.k == 1) p.a_column = 1;
    if (p.n == 1) p.b_column = 1;
    if (p.m == 1) p.a_row = p.k > 0 ? p.k : 1;
    if (p.k == 1) p.b_row = p.n > 0 ? p.n : 1;
    return p;
}

/* Where matrix number `batch` of an operand begins; dims before the last two, broadcast to the output's. */
static int64_t batch_offset(const mr_tensor *t, const mr_tensor *out, int out_matrix_dims,
                            int64_t batch) {
    int own_dims = t->ndim > 2 ? t->ndim - 2 : 0, out_dims = out->ndim - out_matrix_dims;
    int64_t offset = 0;
    for (int d = out_dims; d-- > 0;) {
        int64_t index = batch % out->shape[d];
        batch /= out->shape[d];
        int own = d - (out_dims - own_dims);
        if (own >= 0 && t->shape[own] != 1) offset += index * t->stride[own];
    }
    return offset;
}

/* ------------------------------------------------------------------------- our own loop */

/* For each panel of COLUMNS columns and DEPTH of the inner dim: the panel of b is packed, then used for
 * all rows, ROWS at a time. An element is summed in the same order whatever rows it is computed with,
 * so slicing cannot be seen. */
enum { ROWS = 4, COLUMNS = 16, DEPTH = 256 };

#define PRODUCT_LOOP(T, tag)                                                                       \
    MR_CLONES static void multiply_##tag(const product *p, int64_t rows, const T *a, const T *b,   \
                                         T *c) {                                                   \
        T panel[DEPTH][COLUMNS];                                                                   \
        for (int64_t j = 0; j < p->n; j += COLUMNS) {                                              \
            int64_t width = p->n - j < COLUMNS ? p->n - j : COLUMNS;                               \
            for (int64_t l = 0; l < p->k || l == 0; l += DEPTH) {                                  \
                int64_t depth = p->k - l < DEPTH ? p->k - l : DEPTH;                               \
                for (int64_t d = 0; d < depth; d++)                                                \
                    for (int64_t w = 0; w < COLUMNS; w++)                                          \
                        panel[d][w] =                                                              \
                            w < width ? b[(l + d) * p->b_row + (j + w) * p->b_column] : 0;         \
                for (int64_t i = 0; i < rows; i += ROWS) {                                         \
                    int64_t height = rows - i < ROWS ? rows - i : ROWS;                            \
                    T sum[ROWS][COLUMNS] = {{0}};                                                  \
                    const T *left = a + i * p->a_row + l * p->a_column;                            \
                    for (int64_t d = 0; d < depth; d++) {                                          \
                        for (int r = 0; r < ROWS; r++) {                                           \
                            T x = left[(r < height ? r : 0) * p->a_row + d * p->a_column];         \
                            for (int w = 0; w < COLUMNS; w++)                                      \
                                sum[r][w] = (T)(sum[r][w] + x * panel[d][w]);                      \
                        }                                                                          \
                    }                                                                              \
                    for (int64_t r = 0; r < height; r++) {                                         \
                        T *to = c + (i + r) * p->n + j;                                            \
                        for (int64_t w = 0; w < width; w++)                                        \
                            to[w] = (T)(l == 0 && !p->adds ? sum[r][w] : to[w] + sum[r][w]);       \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
/* Integers as unsigned ones, which wrap; their product in int could overflow for none of these types. */
PRODUCT_LOOP(uint8_t, u8)
PRODUCT_LOOP(uint32_t, i32)
PRODUCT_LOOP(uint64_t, i64)
PRODUCT_LOOP(float, f32)
PRODUCT_LOOP(double, f64)

/* ------------------------------------------------------------------------- CBLAS */

/* How CBLAS can read a matrix of rows x columns, if it can. */
static bool blas_layout(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                        int *out_transpose, int *out_leading) {
    if (column_stride == 1 && row_stride >= (columns > 1 ? columns : 1) && row_stride <= INT_MAX) {
        *out_transpose = MR_BLAS_PLAIN;
        *out_leading = (int)row_stride;
        return true;
    }
    if (row_stride == 1 && column_stride >= (rows > 1 ? rows : 1) && column_stride <= INT_MAX) {
        *out_transpose = MR_BLAS_TRANSPOSED;
        *out_leading = (int)column_stride;
        return true;
    }
    return false;
}

/* Whether it is worth it, and its numbers fit. */
static bool is_for_blas(const product *p) {
    if (p->k == 0 || p->m > INT_MAX || p->n > INT_MAX || p->k > INT_MAX) return false;
    return (double)p->m * (double)p->n * (double)p->k > SMALL;
}

static bool multiply_by_blas(const product *p, mr_dtype dtype, int64_t rows, const void *a,
                             const void *b, void *c) {
    int transpose_a, transpose_b, lda, ldb;
    if (!is_for_blas(p)) return false;
    if (!blas_layout(p->m, p->k, p->a_row, p->a_column, &transpose_a, &lda)) return false;
    bool vector = p->n == 1 && p->b_row > 0 && p->b_row <= INT_MAX;
    if (!vector && !blas_layout(p->k, p->n, p->b_row, p->b_column, &transpose_b, &ldb))
        return false;
    const mr_blas *blas = mr_blas_open();
    if (!blas) return false;
    mr_blas_enter();
    int m = (int)rows, n = (int)p->n, k = (int)p->k;
    if (vector) {
        /* CBLAS counts the rows and columns of the matrix as it lies, before transposing. */
        int stored_rows = transpose_a == MR_BLAS_PLAIN ? m : k,
            stored_columns = transpose_a == MR_BLAS_PLAIN ? k : m;
        if (dtype == MR_F32)
            blas->sgemv(MR_BLAS_ROW_MAJOR, transpose_a, stored_rows, stored_columns, 1, a, lda, b,
                        (int)p->b_row, 0, c, 1);
        else
            blas->dgemv(MR_BLAS_ROW_MAJOR, transpose_a, stored_rows, stored_columns, 1, a, lda, b,
                        (int)p->b_row, 0, c, 1);
    } else if (dtype == MR_F32) {
        blas->sgemm(MR_BLAS_ROW_MAJOR, transpose_a, transpose_b, m, n, k, 1, a, lda, b, ldb, 0, c,
                    n);
    } else {
        blas->dgemm(MR_BLAS_ROW_MAJOR, transpose_a, transpose_b, m, n, k, 1, a, lda, b, ldb, 0, c,
                    n);
    }
    mr_blas_leave();
    return true;
}

/* ------------------------------------------------------------------------- halves */

/* The parts that are f32 at a time: of the left matrix, of the right one, and their product. */
enum { HALF_ROWS = 256, HALF_COLUMNS = 512, HALF_DEPTH = 256 };

typedef struct {
    float a[HALF_ROWS * HALF_DEPTH], b[HALF_DEPTH * HALF_COLUMNS], c[HALF_ROWS * HALF_COLUMNS];
} half_blocks;

/* A part of a matrix with these strides as a dense matrix of f32. */
static void widen_part(mr_dtype from, const uint16_t *data, int64_t row, int64_t column,
                       int64_t rows, int64_t columns, float *to) {
    int64_t shape[2] = {rows, columns}, stride[2] = {row, column};
    mr_block block;
    if (column == 1) {
        for (int64_t r = 0; r < rows; r++)
            mr_convert(MR_F32, to + r * columns, from, data + r * row, columns);
        return;
    }
    for (int64_t i = 0; i < rows * columns; i += MR_BLOCK) {
        int64_t n = rows * columns - i < MR_BLOCK ? rows * columns - i : MR_BLOCK;
        mr_gather(data, sizeof *data, 2, shape, stride, i, n, &block);
        mr_convert(MR_F32, to + i, from, &block, n);
    }
}

/* One block of the result in f32: sums along the inner dim come in the same order whatever rows are computed
 * together. */
static void multiply_part(const product *p, mr_dtype dtype, int64_t rows, int64_t columns,
                          const uint16_t *a, const uint16_t *b, bool by_blas, half_blocks *w) {
    const mr_blas *blas = by_blas ? mr_blas_open() : NULL;
    for (int64_t l = 0; l < p->k || l == 0; l += HALF_DEPTH) {
        int64_t depth = p->k - l < HALF_DEPTH ? p->k - l : HALF_DEPTH;
        widen_part(dtype, a + l * p->a_column, p->a_row, p->a_column, rows, depth, w->a);
        widen_part(dtype, b + l * p->b_row, p->b_row, p->b_column, depth, columns, w->b);
        if (blas) {
            mr_blas_enter();
            blas->sgemm(MR_BLAS_ROW_MAJOR, MR_BLAS_PLAIN, MR_BLAS_PLAIN, (int)rows, (int)columns,
                        (int)depth, 1, w->a, (int)depth, w->b, (int)columns, l > 0, w->c,
                        (int)columns);
            mr_blas_leave();
        } else {
            product part = {.m = rows,
                            .n = columns,
                            .k = depth,
                            .a_row = depth,
                            .a_column = 1,
                            .b_row = columns,
                            .b_column = 1,
                            .adds = l > 0};
            multiply_f32(&part, rows, w->a, w->b, w->c);
        }
    }
}

static mr_status multiply_halves(const product *p, mr_dtype dtype, int64_t rows, const uint16_t *a,
                                 const uint16_t *b, uint16_t *c) {
    half_blocks *w = malloc(sizeof *w);
    if (!w)
        return mr_fail(MR_CODE_OUT_OF_MEMORY,
                       "matmul: the host has no memory for %zu bytes of f32 blocks", sizeof *w);
    bool by_blas = is_for_blas(p);
    for (int64_t i = 0; i < rows; i += HALF_ROWS) {
        int64_t height = rows - i < HALF_ROWS ? rows - i : HALF_ROWS;
        for (int64_t j = 0; j < p->n; j += HALF_COLUMNS) {
            int64_t width = p->n - j < HALF_COLUMNS ? p->n - j : HALF_COLUMNS;
            multiply_part(p, dtype, height, width, a + i * p->a_row, b + j * p->b_column, by_blas,
                          w);
            for (int64_t r = 0; r < height; r++)
                mr_convert(dtype, c + (i + r) * p->n + j, MR_F32, w->c + r * width, width);
        }
    }
    free(w);
    return MR_OK;
}

/* ------------------------------------------------------------------------- the command */

int64_t mr_matmul_items(const mr_command *command) {
    const mr_tensor *out = command->operands[0].tensor, *b = command->operands[2].tensor;
    int64_t n = b->ndim > 1 ? b->shape[b->ndim - 1] : 1;
    return n > 0 ? out->numel / n : 0;
}

mr_status mr_matmul_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    const mr_tensor *out = command->operands[0].tensor, *a = command->operands[1].tensor,
                    *b = command->operands[2].tensor;
    product p = product_of(a, b);
    int matrix_dims = (a->ndim > 1) + (b->ndim > 1);
    mr_dtype dtype = (mr_dtype)out->dtype;
    int64_t size = (int64_t)mr_dtype_size(dtype);
    for (int64_t item = first; item < end;) {
        int64_t batch = item / p.m, row = item % p.m, rows = p.m - row;
        if (rows > end - item) rows = end - item;
        const char *a_data = mr_tensor_data(a), *b_data = mr_tensor_data(b);
        a_data += (batch_offset(a, out, matrix_dims, batch) + row * p.a_row) * size;
        b_data += batch_offset(b, out, matrix_dims, batch) * size;
        void *c = (char *)mr_tensor_data(out) + item * p.n * size;
        const void *x = a_data, *y = b_data;
        item += rows;
        switch (dtype) {
        case MR_F32:
            if (!multiply_by_blas(&p, dtype, rows, x, y, c)) multiply_f32(&p, rows, x, y, c);
            break;
        case MR_F64:
            if (!multiply_by_blas(&p, dtype, rows, x, y, c)) multiply_f64(&p, rows, x, y, c);
            break;
        case MR_I32: multiply_i32(&p, rows, x, y, c); break;
        case MR_I64: multiply_i64(&p, rows, x, y, c); break;
        case MR_F16:
        case MR_BF16: MR_TRY(multiply_halves(&p, dtype, rows, x, y, c)); break;
        default: multiply_u8(&p, rows, x, y, c); break;
        }
    }
    return MR_OK;
}

/* CBLAS has threads of its own. The check opens the library, so only large products make it. */
bool mr_matmul_brings_threads(const mr_command *command) {
    return mr_dtype_category(command->operands[0].tensor->dtype) == 2 && mr_blas_open();
}

/* ------------------------------------------------------------------------- on a GPU */

/* Measured on an H200: products are launched as often as the host can. Those of 128 x 128 x 128 take 5.9 us with the
 * kernel for small ones and 8.4 us with cuBLAS. Those of 192 x 192 x 192 take 9.0 and 8.3 us. */
bool mr_matmul_is_small(const mr_command *command) {
    enum { LONGEST = 256, MOST = 128 * 128 * 128 };
    const mr_tensor *out = command->operands[0].tensor;
    product p = product_of(command->operands[1].tensor, command->operands[2].tensor);
    if (mr_dtype_category((mr_dtype)out->dtype) != 2) return false;
    return p.m <= LONGEST && p.n <= LONGEST && p.k <= LONGEST && out->numel <= MOST &&
           out->numel * p.k <= MOST;
}

bool mr_matmul_by_library(const mr_command *command) {
    return mr_dtype_category((mr_dtype)command->operands[0].tensor->dtype) == 2 &&
           !mr_matmul_is_small(command);
}

static double tiles_of(int64_t length, int64_t tile) {
    return (double)((length + tile - 1) / tile);
}

void mr_matmul_cost(const mr_command *command, mr_cost *out_cost) {
    enum { LARGE_TILE = 128, SMALL_TILE = 64, SMALLEST_TILE = 16, FEW = 128, THREADS = 256 };
    enum { WAITING = 12 }; /* the small kernel's time that it reckons for one part */
    bool is_small = mr_matmul_is_small(command);
    const mr_tensor *out = command->operands[0].tensor, *a = command->operands[1].tensor,
                    *b = command->operands[2].tensor;
    product p = product_of(a, b);
    double size = (double)mr_dtype_size(out->dtype), matrix = (double)p.m * (double)p.n;
    double batch = matrix > 0 ? (double)out->numel / matrix : 0;
    /* Libraries take smaller tiles where large ones would leave most of a device idle. */
    double tiles = batch * tiles_of(p.m, LARGE_TILE) * tiles_of(p.n, LARGE_TILE);
    if (tiles < FEW) tiles = batch * tiles_of(p.m, LARGE_TILE) * tiles_of(p.n, SMALL_TILE);
    if (is_small) tiles = batch * tiles_of(p.m, SMALLEST_TILE) * tiles_of(p.n, SMALLEST_TILE);
    *out_cost =
        (mr_cost){.flops = 2 * (double)out->numel * (double)p.k * (is_small ? WAITING : 1),
                  .bytes = ((double)out->numel + (double)a->numel + (double)b->numel) * size,
                  .blocks = tiles < 1            ? 1
                            : tiles < UINT32_MAX ? (uint32_t)tiles
                                                 : UINT32_MAX,
                  .threads = THREADS};
}
