/* When commands ran on a GPU. Commands are not kept on CUDA, so what observers are told later is noted here at the
 * submission.
 *
 * The virtual GPU knows when it carried a command out, and tells its observers (`ran`). A GPU has to be asked: the
 * slots `runs_start`, `runs_flush` and `runs_stop` of `model/backend.h`. Without a start, a submission costs one more
 * comparison. `runs.c` notes each command and tells the observers once its times are known. It has two sources for
 * them:
 *
 *   - CUPTI (`cupti.c`), the profiling library of the CUDA toolkit, which is opened at run time like the
 *     driver. The device writes a record of each kernel and copy. CUPTI numbers the calls of the driver and tells
 *     the number when a call begins, and a record has the number of its call; so a record finds its command,
 *     which need not be kept. The timestamps are made by our own clock, so host and devices are on one axis.
 *   - Events (`events.c`), where CUPTI is not there or another tool uses it: a timed event in front of each
 *     command and one after it. The first event is done when the stream gets there, so a beginning is some
 *     microseconds early.
 *
 * With `NVTX_INJECTION64_PATH` in the environment (Nsight Systems sets it) or `MILLRACE_NVTX=1`, each operation and
 * copy is in a range of NVTX that has its name and the script's line (`nvtx.c`). */
#ifndef MR_CUDA_RUNS_RUNS_H
#define MR_CUDA_RUNS_RUNS_H

#include "cuda/state.h"

/* Around the calls of the driver for a command of the trait WORK, with the device current. */
void mr_cuda_run_enter(cuda_runs *runs, const mr_command *command);
void mr_cuda_run_leave(cuda_runs *runs, const mr_command *command, bool taken);
void mr_cuda_runs_forget(cuda_machine *cuda); /* the contexts are about to go, and are idle */
void mr_cuda_runs_close(cuda_machine *cuda);
mr_status mr_cuda_runs_start(mr_machine *machine, const char **out_how);
void mr_cuda_runs_flush(mr_machine *machine);
void mr_cuda_runs_stop(mr_machine *machine);

#endif
