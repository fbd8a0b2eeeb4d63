/* The matrix products. cuBLAS multiplies floats, with a handle and a workspace for each stream. Our own kernels
 * multiply small matrices of floats; a program without large ones never starts the library. They also serve integers,
 * strides that cuBLAS cannot read, and machines without cuBLAS.
 *
 * cuBLAS uses column-major matrices. A row-major matrix is, for cuBLAS, its transpose. So c = a b is
 * computed as c' = b' a': the operands are exchanged, and no data is moved. */
#include "cuda/family/family.h"
#include "cuda/wait/wait.h"

#include <limits.h>

/* One pair of matrices of the batch; strides in elements. A vector on the left is a row, on the right a
 * column. */
typedef struct {
    int64_t m, n, k;
    int64_t a_row, a_column, b_row, b_column;
    mr_dtype dtype;
    CUdeviceptr a, b, c;
    mr_cuda_shape batch;       /* of the output; the innermost first */
    mr_cuda_strides stride[3]; /* over the batch: of the output, a, b */
} product;

/* ------------------------------------------------------------------------- handles */

enum { WORKSPACE = 4 << 20, WORKSPACE_OF_HOPPER = 32 << 20 }; /* as NVIDIA advises */

static size_t workspace_bytes(const mr_command *command) {
    return command->stream->device->properties.compute_major >= 9 ? WORKSPACE_OF_HOPPER : WORKSPACE;
}

static cublasStatus_t create_handle(cuda_kernels *kernels, cublasHandle_t *out_handle) {
    size_t others = kernels->blas_count - kernels->spare_blas.count; /* one place for each handle */
    if (!mr_vec_reserve(&kernels->spare_blas, others + 1)) return CUBLAS_STATUS_ALLOC_FAILED;
    cublasStatus_t status = mr_cublas.Create(out_handle);
    kernels->blas_count += status == CUBLAS_STATUS_SUCCESS;
    return status;
}

static mr_status blas_failed(const mr_command *command, cublasStatus_t status) {
    if (status == CUBLAS_STATUS_ALLOC_FAILED)
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: cuBLAS has no memory to work in", command->name);
    return mr_fail(MR_CODE_UNKNOWN, "%s: cuBLAS failed with status %d", command->name, (int)status);
}

#define BLAS_TRY(call)                                                                             \
    do {                                                                                           \
        cublasStatus_t try_status_ = (call);                                                       \
        if (__builtin_expect(try_status_ != CUBLAS_STATUS_SUCCESS, 0))                             \
            return blas_failed(command, try_status_);                                              \
    } while (0)

/* Setting the stream takes the workspace away, so it is set after. */
static mr_status attach(const mr_command *command, cuda_lane *lane) {
    size_t bytes = workspace_bytes(command);
    if (!lane->workspace) MR_TRY(mr_cuda_borrow(command, lane->stream, bytes, &lane->workspace));
    BLAS_TRY(mr_cublas.SetStream(lane->blas, (cudaStream_t)lane->stream));
    BLAS_TRY(mr_cublas.SetWorkspace(lane->blas, (void *)lane->workspace, bytes));
    lane->attached = true;
    return MR_OK;
}

/* f16 and bf16 are summed in f32 also where cuBLAS would add parts of a sum in the type of the result. */
static mr_status set_math(const mr_command *command, cuda_lane *lane, bool tf32) {
    int mode = tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
    mode |= CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    BLAS_TRY(mr_cublas.SetMathMode(lane->blas, (cublasMath_t)mode));
    lane->tf32 = tf32;
    return MR_OK;
}

static mr_status open_handle(const mr_command *command, cuda_lane *lane) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    cublasHandle_t handle;
    if (kernels->spare_blas.count) handle = mr_vec_pop(&kernels->spare_blas);
    else BLAS_TRY(create_handle(kernels, &handle));
    lane->blas = handle;
    return set_math(command, lane, mr_params_of(command).matmul.tf32);
}

bool mr_cuda_uses_blas(const mr_command *command) {
    return command->kind == MR_COMMAND_OP && command->u.op.row->family->id == MR_FAMILY_MATMUL &&
           mr_dtype_category((mr_dtype)command->operands[0].tensor->dtype) == 2 &&
           !mr_matmul_is_small(command);
}

/* The library may be missing: doctor says why, and our own kernel does the products, slowly. */
static bool has_blas(cuda_kernels *kernels) {
    if (kernels->no_blas) return false;
    mr_status opened = mr_cuda_library_open(MR_CUDA_LIBRARY_BLAS);
    kernels->no_blas = opened != NULL;
    mr_error_destroy(opened);
    return !kernels->no_blas;
}

mr_status mr_cuda_blas_prepare(cuda_device *device, size_t count) {
    cuda_kernels *kernels = device->kernels;
    while (kernels->spare_blas.count < count && has_blas(kernels)) {
        cublasHandle_t handle;
        if (create_handle(kernels, &handle) != CUBLAS_STATUS_SUCCESS)
            return mr_fail(MR_CODE_OUT_OF_MEMORY, "graph: cuBLAS has no memory to work in");
        kernels->spare_blas.items[kernels->spare_blas.count++] = handle;
    }
    return MR_OK;
}

static mr_status handle_of(const mr_command *command, cuda_lane *lane, cublasHandle_t *out_handle) {
    /* It loads each of its kernels at the first use, which waits for callbacks, which wait for us. */
    MR_TRY(mr_cuda_may_wait(mr_cuda_device_of(command), command->name));
    if (__builtin_expect(!lane->blas, 0)) MR_TRY(open_handle(command, lane));
    if (__builtin_expect(!lane->attached, 0)) MR_TRY(attach(command, lane));
    bool tf32 = mr_params_of(command).matmul.tf32;
    if (__builtin_expect(lane->tf32 != tf32, 0)) MR_TRY(set_math(command, lane, tf32));
    *out_handle = lane->blas;
    return MR_OK;
}

/* ------------------------------------------------------------------------- operands */

static void read_operands(const mr_command *command, product *p) {
    const mr_tensor *out = command->operands[0].tensor, *a = command->operands[1].tensor,
                    *b = command->operands[2].tensor;
    *p = (product){.m = 1,
                   .n = 1,
                   .k = a->shape[a->ndim - 1],
                   .a_column = a->stride[a->ndim - 1],
                   .dtype = (mr_dtype)out->dtype,
                   .a = mr_cuda_data(a),
                   .b = mr_cuda_data(b),
                   .c = mr_cuda_data(out)};
    if (a->ndim > 1) {
        p->m = a->shape[a->ndim - 2];
        p->a_row = a->stride[a->ndim - 2];
    }
    if (b->ndim > 1) {
        p->b_row = b->stride[b->ndim - 2];
        p->n = b->shape[b->ndim - 1];
        p->b_column = b->stride[b->ndim - 1];
    } else {
        p->b_row = b->stride[0];
    }
    int matrix_dims = (a->ndim > 1) + (b->ndim > 1), batch_dims = out->ndim - matrix_dims;
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, batch_dims, out->shape);
    mr_cuda_layout_add(&layout, batch_dims, out->shape, out->stride);
    mr_cuda_layout_add(&layout, a->ndim > 2 ? a->ndim - 2 : 0, a->shape, a->stride);
    mr_cuda_layout_add(&layout, b->ndim > 2 ? b->ndim - 2 : 0, b->shape, b->stride);
    mr_cuda_layout_end(&layout, false, &p->batch, p->stride);
    /* Many left matrices with one right one are a tall left matrix. */
    if (p->batch.ndim == 1 && p->stride[2].stride[0] == 0 && p->batch.size[0] > 1 && p->m > 0 &&
        (p->m == 1 || p->stride[1].stride[0] == p->m * p->a_row)) {
        if (p->m == 1) p->a_row = p->stride[1].stride[0];
        p->m *= p->batch.size[0];
        p->batch.size[0] = 1;
    }
    /* The stride of a dim of size 1 is never used; give it the value that suits cuBLAS. */
    if (p->k == 1) p->a_column = 1;
    if (p->n == 1) p->b_column = 1;
    if (p->m == 1) p->a_row = p->k > 0 ? p->k : 1;
    if (p->k == 1) p->b_row = p->n > 0 ? p->n : 1;
}

/* How cuBLAS can read a matrix of rows x columns, if it can: CUBLAS_OP_N is by rows, as ours lie. */
static bool readable(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                     cublasOperation_t *out_operation, int64_t *out_leading) {
    if (column_stride == 1 && row_stride >= (columns > 1 ? columns : 1)) {
        *out_operation = CUBLAS_OP_N;
        *out_leading = row_stride;
    } else if (row_stride == 1 && column_stride >= (rows > 1 ? rows : 1)) {
        *out_operation = CUBLAS_OP_T;
        *out_leading = column_stride;
    } else {
        return false;
    }
    return *out_leading <= INT_MAX;
}

/* ------------------------------------------------------------------------- one vector */

static cublasOperation_t other(cublasOperation_t operation) {
    return operation == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/* y = matrix x, the matrix of rows x columns readable as `operation` says. */
static mr_status matrix_vector(const mr_command *command, cublasHandle_t handle, mr_dtype dtype,
                               int64_t rows, int64_t columns, CUdeviceptr matrix,
                               cublasOperation_t operation, int64_t leading, CUdeviceptr x,
                               int64_t step, CUdeviceptr y) {
    static const float one_f32 = 1, zero_f32 = 0;
    static const double one_f64 = 1, zero_f64 = 0;
    /* The matrix as cuBLAS sees it lies transposed. */
    bool plain = operation == CUBLAS_OP_N;
    int stored_rows = (int)(plain ? columns : rows), stored_columns = (int)(plain ? rows : columns);
    if (dtype == MR_F32)
        BLAS_TRY(mr_cublas.Sgemv(handle, other(operation), stored_rows, stored_columns, &one_f32,
                                 (const float *)matrix, (int)leading, (const float *)x, (int)step,
                                 &zero_f32, (float *)y, 1));
    else
        BLAS_TRY(mr_cublas.Dgemv(handle, other(operation), stored_rows, stored_columns, &one_f64,
                                 (const double *)matrix, (int)leading, (const double *)x, (int)step,
                                 &zero_f64, (double *)y, 1));
    return MR_OK;
}

/* The result of a dot product is wanted where the other results are: on the device. */
static mr_status dot(const mr_command *command, cublasHandle_t handle, const product *p) {
    int k = (int)p->k, step_a = (int)p->a_column, step_b = (int)p->b_row;
    BLAS_TRY(mr_cublas.SetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
    cublasStatus_t status = p->dtype == MR_F32
                                ? mr_cublas.Sdot(handle, k, (const float *)p->a, step_a,
                                                 (const float *)p->b, step_b, (float *)p->c)
                                : mr_cublas.Ddot(handle, k, (const double *)p->a, step_a,
                                                 (const double *)p->b, step_b, (double *)p->c);
    BLAS_TRY(mr_cublas.SetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
    BLAS_TRY(status);
    return MR_OK;
}

static bool is_step(int64_t stride) {
    return stride > 0 && stride <= INT_MAX;
}

/* ------------------------------------------------------------------------- matrices */

typedef struct {
    cublasOperation_t a, b;
    int64_t lda, ldb;
} reading;

/* Products of f16 or bf16, summed in f32. */
static mr_status multiply_halves(const mr_command *command, cublasHandle_t handle, const product *p,
                                 const reading *r, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c) {
    static const float one = 1, zero = 0;
    cudaDataType type = p->dtype == MR_F16 ? CUDA_R_16F : CUDA_R_16BF;
    int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)r->lda, ldb = (int)r->ldb,
        count = (int)p->batch.size[0];
    if (count == 1)
        BLAS_TRY(mr_cublas.GemmEx(handle, r->b, r->a, n, m, k, &one, (const void *)b, type, ldb,
                                  (const void *)a, type, lda, &zero, (void *)c, type, n,
                                  CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    else
        BLAS_TRY(mr_cublas.GemmStridedBatchedEx(
            handle, r->b, r->a, n, m, k, &one, (const void *)b, type, ldb, p->stride[2].stride[0],
            (const void *)a, type, lda, p->stride[1].stride[0], &zero, (void *)c, type, n,
            (long long)p->m * p->n, count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    return MR_OK;
}

/* The matrices number `at` in all batch dims but the innermost, and all of that one. */
static mr_status multiply(const mr_command *command, cublasHandle_t handle, const product *p,
                          const reading *r, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c) {
    static const float one_f32 = 1, zero_f32 = 0;
    static const double one_f64 = 1, zero_f64 = 0;
    if (mr_dtype_is_half(p->dtype)) return multiply_halves(command, handle, p, r, a, b, c);
    int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)r->lda, ldb = (int)r->ldb,
        count = (int)p->batch.size[0];
    long long step_a = p->stride[1].stride[0], step_b = p->stride[2].stride[0],
              step_c = (long long)p->m * p->n;
    if (p->dtype == MR_F32 && count == 1)
        BLAS_TRY(mr_cublas.Sgemm(handle, r->b, r->a, n, m, k, &one_f32, (const float *)b, ldb,
                                 (const float *)a, lda, &zero_f32, (float *)c, n));
    else if (p->dtype == MR_F32)
        BLAS_TRY(mr_cublas.SgemmStridedBatched(handle, r->b, r->a, n, m, k, &one_f32,
                                               (const float *)b, ldb, step_b, (const float *)a, lda,
                                               step_a, &zero_f32, (float *)c, n, step_c, count));
    else if (count == 1)
        BLAS_TRY(mr_cublas.Dgemm(handle, r->b, r->a, n, m, k, &one_f64, (const double *)b, ldb,
                                 (const double *)a, lda, &zero_f64, (double *)c, n));
    else
        BLAS_TRY(mr_cublas.DgemmStridedBatched(
            handle, r->b, r->a, n, m, k, &one_f64, (const double *)b, ldb, step_b,
            (const double *)a, lda, step_a, &zero_f64, (double *)c, n, step_c, count));
    return MR_OK;
}

static mr_status multiply_all(const mr_command *command, cublasHandle_t handle, const product *p,
                              const reading *r) {
    int64_t size = (int64_t)mr_dtype_size(p->dtype), index[MR_CUDA_DIMS] = {0};
    for (;;) {
        int64_t a = 0, b = 0, c = 0;
        for (uint32_t d = 1; d < p->batch.ndim; d++) {
            c += index[d] * p->stride[0].stride[d];
            a += index[d] * p->stride[1].stride[d];
            b += index[d] * p->stride[2].stride[d];
        }
        MR_TRY(multiply(command, handle, p, r, p->a + (CUdeviceptr)(a * size),
                        p->b + (CUdeviceptr)(b * size), p->c + (CUdeviceptr)(c * size)));
        uint32_t d = 1;
        while (d < p->batch.ndim && ++index[d] == p->batch.size[d]) index[d++] = 0;
        if (d >= p->batch.ndim) return MR_OK;
    }
}

/* Sets *out_done to false where cuBLAS cannot do it. */
static mr_status by_blas(const mr_command *command, CUstream stream, const product *p,
                         bool *out_done) {
    *out_done = false;
    if (mr_dtype_category(p->dtype) != 2 || p->k == 0 || p->m > INT_MAX || p->n > INT_MAX ||
        p->k > INT_MAX)
        return MR_OK;
    /* Vectors of halves are matrices with one row or column: cuBLAS has no other functions for them. */
    bool single = p->batch.ndim == 1 && p->batch.size[0] == 1 && !mr_dtype_is_half(p->dtype);
    reading r = {CUBLAS_OP_N, CUBLAS_OP_N, 1, 1};
    bool a_readable = readable(p->m, p->k, p->a_row, p->a_column, &r.a, &r.lda);
    bool b_readable = readable(p->k, p->n, p->b_row, p->b_column, &r.b, &r.ldb);
    bool is_dot = single && p->m == 1 && p->n == 1 && is_step(p->a_column) && is_step(p->b_row);
    bool column = single && p->n == 1 && a_readable && is_step(p->b_row);
    bool row = single && p->m == 1 && b_readable && is_step(p->a_column);
    if (!is_dot && !column && !row && !(a_readable && b_readable)) return MR_OK;
    if (p->batch.size[0] > INT_MAX || !has_blas(mr_cuda_kernels_of(command))) return MR_OK;
    cuda_lane *lane;
    cublasHandle_t handle = NULL;
    MR_TRY(mr_cuda_lane(command, stream, &lane));
    MR_TRY(handle_of(command, lane, &handle));
    *out_done = true;
    if (is_dot) return dot(command, handle, p);
    if (column)
        return matrix_vector(command, handle, p->dtype, p->m, p->k, p->a, r.a, r.lda, p->b,
                             p->b_row, p->c);
    if (row) /* the transposed matrix times the row as a column */
        return matrix_vector(command, handle, p->dtype, p->n, p->k, p->b, other(r.b), r.ldb, p->a,
                             p->a_column, p->c);
    return multiply_all(command, handle, p, &r);
}

/* ------------------------------------------------------------------------- our own kernels */

static mr_status by_kernel(const mr_command *command, CUstream stream, const product *p,
                           bool small) {
    enum { MOST_BATCHES = 65535 }; /* of a grid's second dim */
    uint64_t tile = small ? MR_CUDA_SMALL_TILE : MR_CUDA_TILE;
    mr_cuda_product args = {.a = (const void *)p->a,
                            .b = (const void *)p->b,
                            .c = (void *)p->c,
                            .m = p->m,
                            .n = p->n,
                            .k = p->k,
                            .a_row = p->a_row,
                            .a_column = p->a_column,
                            .b_row = p->b_row,
                            .b_column = p->b_column,
                            .row_tiles = (uint32_t)mr_cuda_blocks((uint64_t)p->m, tile),
                            .column_tiles = (uint32_t)mr_cuda_blocks((uint64_t)p->n, tile),
                            .batch = p->batch,
                            .a_batch = p->stride[1],
                            .b_batch = p->stride[2]};
    uint64_t batches = 1, tiles = (uint64_t)args.row_tiles * args.column_tiles;
    for (uint32_t d = 0; d < p->batch.ndim; d++) batches *= (uint64_t)p->batch.size[d];
    if (tiles > INT32_MAX)
        return mr_fail(MR_CODE_INVALID_CONFIGURATION, "%s: too large for one kernel",
                       command->name);
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    CUfunction function, *slot = &(small ? kernels->small_product : kernels->product)[p->dtype];
    MR_CUDA_FIND(function, command, slot, MODULE_PRODUCT, "%sproduct_%s", small ? "small_" : "",
                 mr_cuda_tag(p->dtype));
    void *list[] = {&args};
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.LaunchKernel(function, (unsigned)tiles,
                                   (unsigned)(batches < MOST_BATCHES ? batches : MOST_BATCHES), 1,
                                   MR_CUDA_THREADS, 1, 1, 0, stream, list, NULL),
                "%s", command->name);
    return MR_OK;
}

mr_status mr_cuda_launch_matmul(const mr_command *command, CUstream stream) {
    product p;
    bool small = mr_matmul_is_small(command), done = false;
    read_operands(command, &p);
    if (!small) MR_TRY(by_blas(command, stream, &p, &done));
    return done ? MR_OK : by_kernel(command, stream, &p, small);
}
