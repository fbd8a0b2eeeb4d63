/* The transport by MPI (collective/fabric.h), as a library of its own.
 *
 * Each message is one of MPI's. An empty one says that its sender has closed. Waits inside MPI spin, so only MPI_Init
 * and MPI_Finalize wait there; a rank that waits for others polls. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "collective/fabric.h"

#define TAG      7
#define PATIENCE 5 /* seconds that a failed rank waits for the others */

typedef struct sent sent;
struct sent {
    sent *next;
    MPI_Request request;
    void *bytes;
};

/* MPI is there once in a process. */
static struct {
    mr_fabric base;
    bool is_open, was_open, failed;
    MPI_Comm comm;
    sent *sent;
    bool *gone; /* by rank */
} world;

/* Frees what has been sent. MPI makes progress here. */
static void tidy(void) {
    for (sent **at = &world.sent; *at;) {
        sent *one = *at;
        int is_done = 0;
        MPI_Test(&one->request, &is_done, MPI_STATUS_IGNORE);
        if (!is_done) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        free(one->bytes);
        free(one);
    }
}

static const char *post(uint32_t to, void *bytes, size_t size) {
    sent *one = malloc(sizeof *one);
    if (!one || size > INT_MAX) {
        free(one);
        free(bytes);
        return one ? "MPI sends at most 2 GiB at once" : "no memory to send a message";
    }
    one->bytes = bytes;
    one->next = world.sent;
    world.sent = one;
    MPI_Isend(bytes, (int)size, MPI_BYTE, (int)to, TAG, world.comm, &one->request);
    return NULL;
}

static const char *send_message(mr_fabric *fabric, uint32_t to, void *bytes, size_t size) {
    (void)fabric;
    tidy();
    return post(to, bytes, size);
}

static mr_arrival receive(mr_fabric *fabric, uint32_t from, void **out_bytes, size_t *out_size) {
    MPI_Message message;
    MPI_Status status;
    int is_there = 0, size;
    (void)fabric;
    tidy();
    if (world.gone[from]) return MR_ARRIVAL_GONE;
    MPI_Improbe((int)from, TAG, world.comm, &is_there, &message, &status);
    if (!is_there) return MR_ARRIVAL_NONE;
    MPI_Get_count(&status, MPI_BYTE, &size);
    void *bytes = malloc((size_t)size + 1);
    if (!bytes) {
        fprintf(stderr, "millrace: no memory for a message of %d bytes\n", size);
        MPI_Abort(world.comm, 1);
    }
    MPI_Mrecv(bytes, size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    if (size) {
        *out_bytes = bytes;
        *out_size = (size_t)size;
        return MR_ARRIVAL_MESSAGE;
    }
    free(bytes);
    world.gone[from] = true;
    return MR_ARRIVAL_GONE;
}

static bool all_gone(void) {
    bool all = !world.sent;
    for (uint32_t k = 0; k < world.base.size; k++) {
        void *bytes;
        size_t size;
        if (k == world.base.rank) continue;
        if (receive(&world.base, k, &bytes, &size) == MR_ARRIVAL_MESSAGE) free(bytes);
        all = all && world.gone[k];
    }
    return all;
}

static void close_fabric(mr_fabric *fabric, bool failed) {
    (void)fabric;
    world.failed = world.failed || failed;
    if (!world.is_open) return;
    world.is_open = false;
    for (uint32_t k = 0; k < world.base.size; k++)
        if (k != world.base.rank) post(k, NULL, 0);
    tidy();
}

static void leave(void) {
    const struct timespec pause = {.tv_nsec = 1000000};
    time_t begin = time(NULL);
    close_fabric(&world.base, false);
    while (!all_gone()) {
        if (world.failed && time(NULL) - begin > PATIENCE) {
            fprintf(stderr,
                    "millrace: rank %u has failed, and other ranks did not meet it within %d s: "
                    "all are ended\n",
                    world.base.rank, PATIENCE);
            MPI_Abort(world.comm, 1);
        }
        nanosleep(&pause, NULL);
    }
    MPI_Finalize();
    free(world.gone);
}

static uint32_t find_local_rank(void) {
    MPI_Comm here;
    int rank = 0;
    MPI_Comm_split_type(world.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &rank);
    MPI_Comm_free(&here);
    return (uint32_t)rank;
}

__attribute__((visibility("default"))) mr_fabric_open_function mr_fabric_open;

const char *mr_fabric_open(mr_fabric **out_fabric) {
    int given, rank, size, is_there = 0;
    if (world.was_open) return "another Lua state of this process has joined already";
    MPI_Initialized(&is_there);
    if (is_there) return "something else in this process uses MPI";
    /* Ranks that wait in MPI leave the processor to others, also to their own mpirun. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS)
        return "MPI cannot be started";
    world.was_open = true;
    MPI_Comm_dup(MPI_COMM_WORLD, &world.comm);
    MPI_Comm_rank(world.comm, &rank);
    MPI_Comm_size(world.comm, &size);
    world.gone = calloc((size_t)size, sizeof *world.gone);
    if (!world.gone) return "no memory to join the ranks";
    world.base = (mr_fabric){.version = MR_FABRIC_VERSION,
                             .rank = (uint32_t)rank,
                             .size = (uint32_t)size,
                             .local_rank = find_local_rank(),
                             .send = send_message,
                             .receive = receive,
                             .close = close_fabric};
    world.is_open = true;
    atexit(leave);
    *out_fabric = &world.base;
    return NULL;
}
