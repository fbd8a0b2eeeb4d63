/* The CUDA libraries, opened at run time: one binary starts with and without a GPU.
 *
 * Each library is a list of the functions that we call, as name, symbol and parameters. The lists make the tables of
 * function pointers below, the look-up of the symbols, and the check that the tests' driver (tests/fake_cuda) has
 * exactly these. A versioned symbol (`_v2`) is the form with the parameters of its row; an unversioned symbol is the
 * form of the oldest supported driver. Nothing is linked: only types come from the toolkit's headers.
 *
 * To call a function of a further library: a row in MR_CUDA_LIBRARY_LIST, a list, a table. */
#ifndef MR_CUDA_DRIVER_H
#define MR_CUDA_DRIVER_H

#include <cublas_v2.h>
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* The toolkit may have been installed without its profiling library's headers. */
#if __has_include(<cupti.h>)
#include <cupti.h>
#define MR_CUDA_HAS_CUPTI 1
#else
#define MR_CUDA_HAS_CUPTI 0
#endif

#include "base/status.h"

/* id, name in messages, the variable of the environment that gives its path, the names that are tried in this order. A
 * name with a slash is a place outside the usual search path. */
#define MR_CUDA_LIBRARY_LIST(X)                                                                    \
    X(DRIVER, "the NVIDIA driver", "MILLRACE_LIBCUDA",                                             \
      "libcuda.so.1\0/usr/lib/wsl/lib/libcuda.so.1\0/usr/local/nvidia/lib64/libcuda.so.1\0")       \
    X(BLAS, "cuBLAS", "MILLRACE_LIBCUBLAS",                                                        \
      "libcublas.so.13\0libcublas.so.12\0libcublas.so\0"                                           \
      "/usr/local/cuda/lib64/libcublas.so.13\0/usr/local/cuda/lib64/libcublas.so.12\0")            \
    X(NCCL, "NCCL", "MILLRACE_LIBNCCL", "libnccl.so.2\0libnccl.so\0")                              \
    MR_CUDA_CUPTI_ROW(X)

/* Its records are those of the toolkit of the build: another major version may have others. */
#if MR_CUDA_HAS_CUPTI
#if CUPTI_API_VERSION >= 130000
#define MR_CUDA_CUPTI_FILE   "libcupti.so.13"
#define MR_CUDA_CUPTI_OLDEST 130000
#define MR_CUDA_CUPTI_NEWEST 139999
#else
#define MR_CUDA_CUPTI_FILE   "libcupti.so.12"
#define MR_CUDA_CUPTI_OLDEST 19 /* of CUDA 12.0 */
#define MR_CUDA_CUPTI_NEWEST 129999
#endif
#define MR_CUDA_CUPTI_ROW(X)                                                                       \
    X(CUPTI, "CUPTI", "MILLRACE_LIBCUPTI",                                                         \
      MR_CUDA_CUPTI_FILE "\0/usr/local/cuda/extras/CUPTI/lib64/" MR_CUDA_CUPTI_FILE                \
                         "\0/usr/local/cuda/lib64/" MR_CUDA_CUPTI_FILE                             \
                         "\0/usr/local/cuda/targets/x86_64-linux/lib/" MR_CUDA_CUPTI_FILE          \
                         "\0/usr/local/cuda/targets/sbsa-linux/lib/" MR_CUDA_CUPTI_FILE "\0")
#else
#define MR_CUDA_CUPTI_ROW(X)
#endif

typedef enum {
#define X(id, title, variable, names) MR_CUDA_LIBRARY_##id,
    MR_CUDA_LIBRARY_LIST(X)
#undef X
        MR_CUDA_LIBRARY_COUNT
} mr_cuda_library;

/* ---- libcuda: X(name, symbol, parameters) */

#define MR_CUDA_DRIVER_LIST(X)                                                                     \
    X(Init, "cuInit", (unsigned flags))                                                            \
    X(DriverGetVersion, "cuDriverGetVersion", (int *version))                                      \
    X(GetErrorName, "cuGetErrorName", (CUresult result, const char **name))                        \
    X(GetErrorString, "cuGetErrorString", (CUresult result, const char **text))                    \
    X(DeviceGetCount, "cuDeviceGetCount", (int *count))                                            \
    X(DeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                  \
    X(DeviceGetName, "cuDeviceGetName", (char *name, int size, CUdevice device))                   \
    X(DeviceGetAttribute, "cuDeviceGetAttribute",                                                  \
      (int *value, CUdevice_attribute attribute, CUdevice device))                                 \
    X(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, CUdevice device))                    \
    X(DeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int *can, CUdevice device, CUdevice peer))    \
    X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext * context, CUdevice device))  \
    X(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))                  \
    X(DevicePrimaryCtxReset, "cuDevicePrimaryCtxReset_v2", (CUdevice device))                      \
    X(CtxSetCurrent, "cuCtxSetCurrent", (CUcontext context))                                       \
    X(CtxGetCurrent, "cuCtxGetCurrent", (CUcontext * context))                                     \
    X(CtxGetDevice, "cuCtxGetDevice", (CUdevice * device))                                         \
    X(StreamGetCtx, "cuStreamGetCtx", (CUstream stream, CUcontext * context))                      \
    X(StreamGetFlags, "cuStreamGetFlags", (CUstream stream, unsigned *flags))                      \
    X(StreamGetPriority, "cuStreamGetPriority", (CUstream stream, int *priority))                  \
    X(StreamIsCapturing, "cuStreamIsCapturing", (CUstream stream, CUstreamCaptureStatus * status)) \
    X(PointerGetAttribute, "cuPointerGetAttribute",                                                \
      (void *value, CUpointer_attribute attribute, CUdeviceptr address))                           \
    X(MemAlloc, "cuMemAlloc_v2", (CUdeviceptr * address, size_t bytes))                            \
    X(MemGetAddressRange, "cuMemGetAddressRange_v2",                                               \
      (CUdeviceptr * first, size_t * bytes, CUdeviceptr address))                                  \
    X(IpcGetMemHandle, "cuIpcGetMemHandle", (CUipcMemHandle * handle, CUdeviceptr address))        \
    X(IpcOpenMemHandle, "cuIpcOpenMemHandle_v2",                                                   \
      (CUdeviceptr * address, CUipcMemHandle handle, unsigned flags))                              \
    X(IpcCloseMemHandle, "cuIpcCloseMemHandle", (CUdeviceptr address))                             \
    X(IpcGetEventHandle, "cuIpcGetEventHandle", (CUipcEventHandle * handle, CUevent event))        \
    X(IpcOpenEventHandle, "cuIpcOpenEventHandle", (CUevent * event, CUipcEventHandle handle))      \
    X(StreamSynchronize, "cuStreamSynchronize", (CUstream))                                        \
    X(CtxSynchronize, "cuCtxSynchronize", (void))                                                  \
    X(CtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", (int *least, int *greatest))       \
    X(CtxEnablePeerAccess, "cuCtxEnablePeerAccess", (CUcontext peer, unsigned flags))              \
    X(StreamCreateWithPriority, "cuStreamCreateWithPriority",                                      \
      (CUstream * stream, unsigned flags, int priority))                                           \
    X(StreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                                      \
    X(StreamQuery, "cuStreamQuery", (CUstream stream))                                             \
    X(StreamWaitEvent, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned flags))      \
    X(EventCreate, "cuEventCreate", (CUevent * event, unsigned flags))                             \
    X(EventDestroy, "cuEventDestroy_v2", (CUevent event))                                          \
    X(EventRecord, "cuEventRecord", (CUevent event, CUstream stream))                              \
    X(EventRecordWithFlags, "cuEventRecordWithFlags",                                              \
      (CUevent event, CUstream stream, unsigned flags))                                            \
    X(EventSynchronize, "cuEventSynchronize", (CUevent event))                                     \
    X(EventQuery, "cuEventQuery", (CUevent event))                                                 \
    X(EventElapsedTime, "cuEventElapsedTime", (float *milliseconds, CUevent from, CUevent to))     \
    X(StreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream stream, CUstreamCaptureMode mode))  \
    X(StreamEndCapture, "cuStreamEndCapture", (CUstream stream, CUgraph * graph))                  \
    X(GraphInstantiate, "cuGraphInstantiateWithFlags",                                             \
      (CUgraphExec * executable, CUgraph graph, unsigned long long flags))                         \
    X(GraphExecUpdate, "cuGraphExecUpdate_v2",                                                     \
      (CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo * info))                 \
    X(GraphLaunch, "cuGraphLaunch", (CUgraphExec executable, CUstream stream))                     \
    X(GraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec executable))                            \
    X(GraphDestroy, "cuGraphDestroy", (CUgraph graph))                                             \
    X(LaunchHostFunc, "cuLaunchHostFunc", (CUstream stream, CUhostFn call, void *context))         \
    X(StreamBatchMemOp, "cuStreamBatchMemOp_v2",                                                   \
      (CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations, unsigned flags))     \
    X(LaunchKernel, "cuLaunchKernel",                                                              \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,                 \
       void **parameters, void **extra))                                                           \
    X(LaunchCooperativeKernel, "cuLaunchCooperativeKernel",                                        \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,                 \
       void **parameters))                                                                         \
    X(ModuleLoadData, "cuModuleLoadData", (CUmodule * module, const void *image))                  \
    X(ModuleLoadDataEx, "cuModuleLoadDataEx",                                                      \
      (CUmodule * module, const void *image, unsigned option_count, CUjit_option *options,         \
       void **values))                                                                             \
    X(ModuleUnload, "cuModuleUnload", (CUmodule module))                                           \
    X(ModuleGetFunction, "cuModuleGetFunction",                                                    \
      (CUfunction * function, CUmodule module, const char *name))                                  \
    X(ModuleGetGlobal, "cuModuleGetGlobal_v2",                                                     \
      (CUdeviceptr * address, size_t * bytes, CUmodule module, const char *name))                  \
    X(FuncSetAttribute, "cuFuncSetAttribute",                                                      \
      (CUfunction function, CUfunction_attribute attribute, int value))                            \
    X(FuncGetAttribute, "cuFuncGetAttribute",                                                      \
      (int *value, CUfunction_attribute attribute, CUfunction function))                           \
    X(OccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",    \
      (int *blocks, CUfunction function, int block_size, size_t shared_bytes))                     \
    X(MemPoolCreate, "cuMemPoolCreate", (CUmemoryPool * pool, const CUmemPoolProps *properties))   \
    X(MemPoolDestroy, "cuMemPoolDestroy", (CUmemoryPool pool))                                     \
    X(MemPoolSetAttribute, "cuMemPoolSetAttribute",                                                \
      (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))                             \
    X(MemPoolGetAttribute, "cuMemPoolGetAttribute",                                                \
      (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))                             \
    X(MemPoolSetAccess, "cuMemPoolSetAccess",                                                      \
      (CUmemoryPool pool, const CUmemAccessDesc *access, size_t count))                            \
    X(MemPoolTrimTo, "cuMemPoolTrimTo", (CUmemoryPool pool, size_t bytes_to_keep))                 \
    X(MemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",                                            \
      (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream))                   \
    X(MemFree, "cuMemFree_v2", (CUdeviceptr address))                                              \
    X(MemFreeAsync, "cuMemFreeAsync", (CUdeviceptr address, CUstream stream))                      \
    X(MemGetInfo, "cuMemGetInfo_v2", (size_t * free, size_t * total))                              \
    X(MemHostRegister, "cuMemHostRegister_v2", (void *host, size_t bytes, unsigned flags))         \
    X(MemHostUnregister, "cuMemHostUnregister", (void *host))                                      \
    X(MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                                     \
      (CUdeviceptr * address, void *host, unsigned flags))                                         \
    X(MemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr to, const void *from, size_t bytes))             \
    X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                     \
      (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                           \
    X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                     \
      (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                                 \
    X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                     \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                           \
    X(MemcpyPeerAsync, "cuMemcpyPeerAsync",                                                        \
      (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,             \
       size_t bytes, CUstream stream))                                                             \
    X(MemsetD8Async, "cuMemsetD8Async",                                                            \
      (CUdeviceptr to, unsigned char byte, size_t count, CUstream stream))

typedef struct {
#define X(name, symbol, parameters) CUresult(CUDAAPI *name) parameters;
    MR_CUDA_DRIVER_LIST(X)
#undef X
} mr_cuda_driver_table;

/* ---- libcublas */

#define MR_CUDA_BLAS_LIST(X)                                                                       \
    X(Create, "cublasCreate_v2", (cublasHandle_t * handle))                                        \
    X(Destroy, "cublasDestroy_v2", (cublasHandle_t handle))                                        \
    X(GetProperty, "cublasGetProperty", (libraryPropertyType property, int *value))                \
    X(SetStream, "cublasSetStream_v2", (cublasHandle_t handle, cudaStream_t stream))               \
    X(SetWorkspace, "cublasSetWorkspace_v2",                                                       \
      (cublasHandle_t handle, void *workspace, size_t bytes))                                      \
    X(SetMathMode, "cublasSetMathMode", (cublasHandle_t handle, cublasMath_t mode))                \
    X(SetPointerMode, "cublasSetPointerMode_v2",                                                   \
      (cublasHandle_t handle, cublasPointerMode_t mode))                                           \
    X(Sdot, "cublasSdot_v2",                                                                       \
      (cublasHandle_t handle, int n, const float *x, int incx, const float *y, int incy,           \
       float *result))                                                                             \
    X(Ddot, "cublasDdot_v2",                                                                       \
      (cublasHandle_t handle, int n, const double *x, int incx, const double *y, int incy,         \
       double *result))                                                                            \
    X(Sgemv, "cublasSgemv_v2",                                                                     \
      (cublasHandle_t handle, cublasOperation_t operation, int m, int n, const float *alpha,       \
       const float *a, int lda, const float *x, int incx, const float *beta, float *y, int incy))  \
    X(Dgemv, "cublasDgemv_v2",                                                                     \
      (cublasHandle_t handle, cublasOperation_t operation, int m, int n, const double *alpha,      \
       const double *a, int lda, const double *x, int incx, const double *beta, double *y,         \
       int incy))                                                                                  \
    X(Sgemm, "cublasSgemm_v2",                                                                     \
      (cublasHandle_t handle, cublasOperation_t operation_a, cublasOperation_t operation_b, int m, \
       int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb,         \
       const float *beta, float *c, int ldc))                                                      \
    X(Dgemm, "cublasDgemm_v2",                                                                     \
      (cublasHandle_t handle, cublasOperation_t operation_a, cublasOperation_t operation_b, int m, \
       int n, int k, const double *alpha, const double *a, int lda, const double *b, int ldb,      \
       const double *beta, double *c, int ldc))                                                    \
    X(SgemmStridedBatched, "cublasSgemmStridedBatched",                                            \
      (cublasHandle_t handle, cublasOperation_t operation_a, cublasOperation_t operation_b, int m, \
       int n, int k, const float *alpha, const float *a, int lda, long long step_a,                \
       const float *b, int ldb, long long step_b, const float *beta, float *c, int ldc,            \
       long long step_c, int count))                                                               \
    X(GemmEx, "cublasGemmEx",                                                                      \
      (cublasHandle_t handle, cublasOperation_t operation_a, cublasOperation_t operation_b, int m, \
       int n, int k, const void *alpha, const void *a, cudaDataType a_type, int lda,               \
       const void *b, cudaDataType b_type, int ldb, const void *beta, void *c,                     \
       cudaDataType c_type, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm))     \
    X(GemmStridedBatchedEx, "cublasGemmStridedBatchedEx",                                          \
      (cublasHandle_t handle, cublasOperation_t operation_a, cublasOperation_t operation_b, int m, \
       int n, int k, const void *alpha, const void *a, cudaDataType a_type, int lda,               \
       long long int stride_a, const void *b, cudaDataType b_type, int ldb,                        \
       long long int stride_b, const void *beta, void *c, cudaDataType c_type, int ldc,            \
       long long int stride_c, int count, cublasComputeType_t compute,                             \
       cublasGemmAlgo_t algorithm))                                                                \
    X(DgemmStridedBatched, "cublasDgemmStridedBatched",                                            \
      (cublasHandle_t handle, cublasOperation_t operation_a, cublasOperation_t operation_b, int m, \
       int n, int k, const double *alpha, const double *a, int lda, long long step_a,              \
       const double *b, int ldb, long long step_b, const double *beta, double *c, int ldc,         \
       long long step_c, int count))

typedef struct {
#define X(name, symbol, parameters) cublasStatus_t(CUBLASWINAPI *name) parameters;
    MR_CUDA_BLAS_LIST(X)
#undef X
} mr_cuda_blas_table;

/* ---- libnccl, whose header the toolkit does not have: NCCL's documentation gives these types and values. */

typedef struct ncclComm *mr_nccl_comm;
typedef struct {
    char bytes[128];
} mr_nccl_id;

typedef enum {
    MR_NCCL_SUCCESS = 0,
    MR_NCCL_UNHANDLED_CUDA_ERROR = 1,
    MR_NCCL_INVALID_ARGUMENT = 4,
    MR_NCCL_INVALID_USAGE = 5
} mr_nccl_result;

#define MR_NCCL_DTYPE_LIST(X)                                                                      \
    X(U8, 1) X(I32, 2) X(I64, 4) X(F16, 6) X(F32, 7) X(F64, 8) X(BF16, 9) X(BOOL, 1)
#define MR_NCCL_REDOP_LIST(X) X(SUM, 0) X(PROD, 1) X(MAX, 2) X(MIN, 3) X(AVG, 4)

#define MR_CUDA_NCCL_LIST(X)                                                                       \
    X(GetVersion, "ncclGetVersion", (int *version))                                                \
    X(CommInitAll, "ncclCommInitAll", (mr_nccl_comm * comms, int count, const int *devices))       \
    X(GetUniqueId, "ncclGetUniqueId", (mr_nccl_id * id))                                           \
    X(CommInitRank, "ncclCommInitRank", (mr_nccl_comm * comm, int count, mr_nccl_id id, int rank)) \
    X(CommDestroy, "ncclCommDestroy", (mr_nccl_comm comm))                                         \
    X(CommAbort, "ncclCommAbort", (mr_nccl_comm comm))                                             \
    X(GroupStart, "ncclGroupStart", (void))                                                        \
    X(GroupEnd, "ncclGroupEnd", (void))                                                            \
    X(AllReduce, "ncclAllReduce",                                                                  \
      (const void *in, void *out, size_t count, int dtype, int redop, mr_nccl_comm comm,           \
       CUstream stream))                                                                           \
    X(Broadcast, "ncclBroadcast",                                                                  \
      (const void *in, void *out, size_t count, int dtype, int root, mr_nccl_comm comm,            \
       CUstream stream))                                                                           \
    X(Reduce, "ncclReduce",                                                                        \
      (const void *in, void *out, size_t count, int dtype, int redop, int root, mr_nccl_comm comm, \
       CUstream stream))                                                                           \
    X(AllGather, "ncclAllGather",                                                                  \
      (const void *in, void *out, size_t count, int dtype, mr_nccl_comm comm, CUstream stream))    \
    X(ReduceScatter, "ncclReduceScatter",                                                          \
      (const void *in, void *out, size_t count, int dtype, int redop, mr_nccl_comm comm,           \
       CUstream stream))                                                                           \
    X(Send, "ncclSend",                                                                            \
      (const void *in, size_t count, int dtype, int peer, mr_nccl_comm comm, CUstream stream))     \
    X(Recv, "ncclRecv",                                                                            \
      (void *out, size_t count, int dtype, int peer, mr_nccl_comm comm, CUstream stream))

/* Two more, whose results are texts. */
typedef struct {
#define X(name, symbol, parameters) mr_nccl_result(*name) parameters;
    MR_CUDA_NCCL_LIST(X)
#undef X
    const char *(*GetErrorString)(mr_nccl_result result);
    const char *(*GetLastError)(mr_nccl_comm comm);
} mr_cuda_nccl_table;

/* ---- libcupti */

#if MR_CUDA_HAS_CUPTI
#define MR_CUDA_CUPTI_LIST(X)                                                                      \
    X(GetVersion, "cuptiGetVersion", (uint32_t * version))                                         \
    X(Subscribe, "cuptiSubscribe",                                                                 \
      (CUpti_SubscriberHandle * subscriber, CUpti_CallbackFunc callback, void *context))           \
    X(Unsubscribe, "cuptiUnsubscribe", (CUpti_SubscriberHandle subscriber))                        \
    X(EnableCallback, "cuptiEnableCallback",                                                       \
      (uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,            \
       CUpti_CallbackId id))                                                                       \
    X(ActivityRegisterTimestampCallback, "cuptiActivityRegisterTimestampCallback",                 \
      (CUpti_TimestampCallbackFunc timestamp))                                                     \
    X(ActivityRegisterCallbacks, "cuptiActivityRegisterCallbacks",                                 \
      (CUpti_BuffersCallbackRequestFunc give, CUpti_BuffersCallbackCompleteFunc take))             \
    X(ActivityEnable, "cuptiActivityEnable", (CUpti_ActivityKind kind))                            \
    X(ActivityDisable, "cuptiActivityDisable", (CUpti_ActivityKind kind))                          \
    X(ActivityGetNextRecord, "cuptiActivityGetNextRecord",                                         \
      (uint8_t * buffer, size_t valid, CUpti_Activity * *record))                                  \
    X(ActivityFlushAll, "cuptiActivityFlushAll", (uint32_t flag))                                  \
    X(Finalize, "cuptiFinalize", (void))

typedef struct {
#define X(name, symbol, parameters) CUptiResult(CUPTIAPI *name) parameters;
    MR_CUDA_CUPTI_LIST(X)
#undef X
} mr_cuda_cupti_table;
#endif

/* ---- opening */

/* Valid once mr_cuda_library_open has succeeded for the library: mr_cu.StreamQuery(stream). */
extern mr_cuda_driver_table mr_cu __attribute__((visibility("hidden")));
extern mr_cuda_blas_table mr_cublas __attribute__((visibility("hidden")));
extern mr_cuda_nccl_table mr_nccl __attribute__((visibility("hidden")));
#if MR_CUDA_HAS_CUPTI
extern mr_cuda_cupti_table mr_cupti __attribute__((visibility("hidden")));
#endif

/* Opens a library and finds all its functions (library.c). Idempotent, for any thread; a failure is repeated at each
 * call. NOT_SUPPORTED: the text names the places searched and the missing function. */
mr_status mr_cuda_library_open(mr_cuda_library library);

/* The file that was found, NULL if none. */
const char *mr_cuda_library_path(mr_cuda_library library);

/* Opens the driver, checks its version and starts it. Idempotent like mr_cuda_library_open. */
mr_status mr_cuda_driver_start(void);

/* Modules are loaded with all their kernels; else, by the user's wish, each kernel at its first use. */
bool mr_cuda_loads_eagerly(void);

int mr_cuda_driver_version(void); /* 13000 for CUDA 13.0; 0 before the start */

#endif
