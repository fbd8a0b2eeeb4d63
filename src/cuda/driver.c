/* Starts the driver, and says in a sentence why it does not start. */
#include "cuda/driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/state.h"

/* CUDA often finds no GPU because CUDA_VISIBLE_DEVICES hides it. */
static mr_status no_device(void) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && !visible[0])
        return mr_fail(MR_CODE_INVALID_DEVICE,
                       "CUDA_VISIBLE_DEVICES is empty, which hides every GPU: unset it");
    if (visible)
        return mr_fail(MR_CODE_INVALID_DEVICE,
                       "CUDA_VISIBLE_DEVICES is `%s`, and there is no such GPU: unset it, or name "
                       "one that `nvidia-smi -L` lists",
                       visible);
    return mr_fail(
        MR_CODE_INVALID_DEVICE,
        "the NVIDIA driver is installed, but it finds no GPU: see what `nvidia-smi` says");
}

static mr_status cannot_start(CUresult result) {
    switch (result) {
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE: return no_device();
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "the NVIDIA driver in the kernel and libcuda.so.1 have different versions: "
                       "restart the computer after an update of the driver");
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "the compatibility package of CUDA does not work with this GPU: remove its "
                       "folder from LD_LIBRARY_PATH");
    case CUDA_ERROR_SYSTEM_NOT_READY:
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "the GPUs of this system are not ready: start the NVIDIA fabric manager");
    case CUDA_ERROR_STUB_LIBRARY:
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "%s is the toolkit's stub and not a driver: remove its folder from "
                       "LD_LIBRARY_PATH",
                       mr_cuda_library_path(MR_CUDA_LIBRARY_DRIVER));
    default: return mr_cuda_complain(result, "the NVIDIA driver does not start");
    }
}

static bool eager;

/* With this setting all kernels are loaded together with their module, before anything runs. By default CUDA loads a
 * kernel at its first launch, and that load waits for the device, so two streams would not overlap at their first
 * launches. The setting makes the start about ten milliseconds longer. A value that the user has set is kept. */
static void load_eagerly(void) {
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    eager = strcmp(getenv("CUDA_MODULE_LOADING"), "EAGER") == 0;
}

bool mr_cuda_loads_eagerly(void) {
    return eager;
}

/* Called once in a process, because setenv is not safe while another thread calls getenv. */
static void prepare(void) {
    load_eagerly();
    mr_cuda_watch_forks();
}

mr_status mr_cuda_driver_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (mr_cuda_is_forked()) return mr_cuda_forked();
    MR_TRY(mr_cuda_library_open(MR_CUDA_LIBRARY_DRIVER));
    pthread_once(&once, prepare);
    CUresult result = mr_cu.Init(0);
    if (result != CUDA_SUCCESS) return cannot_start(result);
    int count = 0;
    result = mr_cu.DeviceGetCount(&count);
    if (result != CUDA_SUCCESS) return cannot_start(result);
    return count ? MR_OK : no_device();
}
