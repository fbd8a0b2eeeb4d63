#include "collective/transport.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collective/slots.h"

#define MODULE "millrace-mpi.so"
#define SLOT   "millrace-mpi-slot"

/* ---- who started it */

static bool read_number(const char *name, uint32_t *out) {
    const char *text = getenv(name);
    char *end;
    if (!text || !*text) return false;
    unsigned long value = strtoul(text, &end, 10);
    if (*end || value > UINT32_MAX) return false;
    *out = (uint32_t)value;
    return true;
}

/* Checks for mpirun first: it may run inside another launcher, and torchrun may run inside srun. */
mr_started mr_started_find(void) {
    static const struct {
        const char *by, *rank, *size, *local_rank;
    } known[] = {
        {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
        {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
        {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
        {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        mr_started launch = {.by = known[i].by};
        if (!read_number(known[i].rank, &launch.rank)) continue;
        if (!read_number(known[i].size, &launch.size) || launch.rank >= launch.size) continue;
        read_number(known[i].local_rank, &launch.local_rank);
        return launch.size > 1 ? launch : (mr_started){0};
    }
    return (mr_started){0};
}

/* ---- the module */

/* The folder of the file that contains this code; "": unknown. */
static void find_own_folder(char *out, size_t size) {
    Dl_info info;
    char path[PATH_MAX] = "";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (dladdr(MODULE, &info) && info.dli_fname && strstr(info.dli_fname, ".so"))
        snprintf(path, sizeof path, "%s", info.dli_fname);
    else if (length < 0) *path = 0;
    else path[length] = 0;
    char *slash = strrchr(path, '/');
    if (slash) *slash = 0;
    snprintf(out, size, "%s", slash ? path : "");
}

/* Beside this program in its build folder, or in PREFIX/lib/millrace, with the program in PREFIX/bin or the Lua module
 * in PREFIX/lib/lua/5.4. */
static bool find_module(char *out, size_t size) {
    static const char *const places[] = {"%s/" MODULE, "%s/../lib/millrace/" MODULE,
                                         "%s/../../millrace/" MODULE};
    char folder[PATH_MAX];
    const char *named = getenv("MILLRACE_MPI");
    if (named && *named) {
        snprintf(out, size, "%s", named);
        return access(out, R_OK) == 0;
    }
    find_own_folder(folder, sizeof folder);
    for (size_t i = 0; *folder && i < sizeof places / sizeof *places; i++) {
        const char *rest = places[i] + 2;
        snprintf(out, size, "%s%s", folder, rest);
        if (access(out, R_OK) == 0) return true;
    }
    return false;
}

static mr_status refuse(const mr_started *launch, const char *why) {
    return mr_fail(MR_CODE_NOT_SUPPORTED, "%s has started this process as rank %u of %u, and %s",
                   launch->by, launch->rank, launch->size, why);
}

static mr_status check_world(const mr_started *launch, mr_fabric *fabric) {
    char text[200];
    if (fabric->rank == launch->rank && fabric->size == launch->size) return MR_OK;
    snprintf(text, sizeof text,
             "MPI says rank %u of %u: start the ranks with mpirun, or with srun --mpi=pmix",
             fabric->rank, fabric->size);
    fabric->close(fabric, false);
    return refuse(launch, text);
}

/* Beside the module. */
static mr_status take_slot(const mr_started *launch, const char *module, double timeout) {
    char program[PATH_MAX + sizeof SLOT], why[PATH_MAX + 200];
    const char *slash = strrchr(module, '/');
    int folder = slash ? (int)(slash - module) : 1;
    snprintf(program, sizeof program, "%.*s/" SLOT, folder, slash ? module : ".");
    if (access(program, X_OK) != 0) {
        snprintf(why, sizeof why, "there is no %s: run make again", program);
        return refuse(launch, why);
    }
    return mr_slots_take(launch, program, timeout, why, sizeof why) ? MR_OK : refuse(launch, why);
}

/* Prepares the environment that MPI needs before it is opened. Scripts of srun often set torchrun's variables. */
static mr_status prepare(const mr_started *launch, const char *module, double timeout) {
    bool is_known = getenv("PMIX_NAMESPACE") != NULL;
    if (strcmp(launch->by, "torchrun") == 0 && (!is_known || getenv("TORCHELASTIC_RUN_ID")))
        return take_slot(launch, module, timeout);
    if (strcmp(launch->by, "srun") == 0 && !is_known)
        return refuse(launch, "MPI does not know it: use srun --mpi=pmix (srun --mpi=list shows "
                              "what your Slurm supports), or mpirun");
    return MR_OK;
}

mr_status mr_transport_open(const mr_started *launch, double timeout, mr_fabric **out_fabric) {
    char path[PATH_MAX], text[PATH_MAX + 200];
    if (!find_module(path, sizeof path))
        return refuse(launch, "this build has no MPI (there is no " MODULE "): install "
                              "libopenmpi-dev and openmpi-bin, and run make again; or use "
                              "millrace --ranks N");
    MR_TRY(prepare(launch, path, timeout));
    /* Open MPI's own plugins look for its names. It is never unloaded. */
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    mr_fabric_open_function *open =
        library ? (mr_fabric_open_function *)dlsym(library, "mr_fabric_open") : NULL;
    if (!open) {
        snprintf(text, sizeof text, "%s cannot be opened: %s", path, dlerror());
        return refuse(launch, text);
    }
    const char *why = open(out_fabric);
    if (why) return refuse(launch, why);
    if ((*out_fabric)->version == MR_FABRIC_VERSION) return check_world(launch, *out_fabric);
    snprintf(text, sizeof text, "%s is of another version: build it again", path);
    return refuse(launch, text);
}

/* ---- doctor */

static bool find_program(const char *name, char *out, size_t size) {
    const char *path = getenv("PATH");
    for (; path && *path; path += *path == ':') {
        size_t length = strcspn(path, ":");
        snprintf(out, size, "%.*s/%s", (int)length, path, name);
        if (access(out, X_OK) == 0) return true;
        path += length;
    }
    return false;
}

void mr_transport_describe(void (*say)(const char *what, const char *text)) {
    char module[PATH_MAX], program[PATH_MAX], text[3 * PATH_MAX];
    bool has_module = find_module(module, sizeof module);
    bool has_program = find_program("mpirun", program, sizeof program);
    if (has_module && has_program) snprintf(text, sizeof text, "%s, with %s", module, program);
    else if (has_module)
        snprintf(text, sizeof text, "%s, but there is no mpirun: install openmpi-bin", module);
    else
        snprintf(text, sizeof text,
                 "none (there is no " MODULE "): ranks run in one process, by --ranks");
    say("MPI", text);
}
