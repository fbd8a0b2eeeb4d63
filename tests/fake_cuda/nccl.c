/* The fake driver's NCCL: the functions of the list in cuda/driver.h, in the same library (MILLRACE_LIBNCCL names it, too).
 *
 * The k-th collectives of all ranks of a communicator are one operation, and so are all sends and receives of a group.
 * Each rank's part is a task of its stream. Tasks wait until those of all ranks have come; then one computes naively, in long
 * double, for all. Ranks that differ in what they ask for would hang or corrupt data with the real NCCL: here the process aborts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "fake.h"

#define X(name, symbol, parameters) mr_nccl_result fake_nccl_##name parameters __asm__(symbol);
MR_CUDA_NCCL_LIST(X)
#undef X
const char *fake_nccl_GetErrorString(mr_nccl_result result) __asm__("ncclGetErrorString");
const char *fake_nccl_GetLastError(mr_nccl_comm comm) __asm__("ncclGetLastError");

#define X(name, symbol, parameters) (void *)fake_nccl_##name,
__attribute__((used)) static void *const all_are_there[] = {
    MR_CUDA_NCCL_LIST(X)(void *) fake_nccl_GetErrorString, (void *)fake_nccl_GetLastError};
#undef X

typedef enum { ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, SEND, RECV } what;

typedef struct clique clique;

typedef struct {
    what what;
    const void *in;
    void *out;
    size_t count;
    int dtype, redop, root;
    mr_nccl_comm comm;
    CUstream stream;
} call;

struct fake_meet {
    fake_meet *next; /* of the clique, while parts are missing */
    clique *clique;
    uint64_t number;
    int refs, missing; /* tasks; ranks whose task has not come */
    bool is_done;
    int count;
    call *calls;
};

struct clique {
    int size, open;
    fake_meet *meets;
};

struct ncclComm {
    clique *clique;
    int rank, device;
    uint64_t operations;
};

static int depth;
static call *calls; /* of the group */
static int call_count;

/* ---- values */

static size_t size_of(int dtype) {
    switch (dtype) {
    case 1: return 1;
    case 2:
    case 7: return 4;
    case 6:
    case 9: return 2;
    default: return 8;
    }
}

static long double load(int dtype, const void *from, size_t i) {
    switch (dtype) {
    case 1: return ((const uint8_t *)from)[i];
    case 2: return ((const int32_t *)from)[i];
    case 4: return ((const int64_t *)from)[i];
    case 6: return mr_f32_from_f16(((const uint16_t *)from)[i]);
    case 7: return ((const float *)from)[i];
    case 8: return ((const double *)from)[i];
    case 9: return mr_f32_from_bf16(((const uint16_t *)from)[i]);
    default: abort();
    }
}

static void store(int dtype, void *to, size_t i, long double value) {
    switch (dtype) {
    case 1: ((uint8_t *)to)[i] = (uint8_t)(int64_t)value; return;
    case 2: ((int32_t *)to)[i] = (int32_t)(int64_t)value; return;
    case 4: ((int64_t *)to)[i] = (int64_t)value; return;
    case 6: ((uint16_t *)to)[i] = mr_f16_from_f64((double)value); return;
    case 7: ((float *)to)[i] = (float)value; return;
    case 8: ((double *)to)[i] = (double)value; return;
    case 9: ((uint16_t *)to)[i] = mr_bf16_from_f64((double)value); return;
    default: abort();
    }
}

static long double combine(int redop, long double a, long double b) {
    switch (redop) {
    case 1: return a * b;
    case 2: return a > b ? a : b;
    case 3: return a < b ? a : b;
    default: return a + b;
    }
}

/* ---- operations */

static const call *of_rank(const fake_meet *meet, int rank) {
    for (int i = 0; i < meet->count; i++)
        if (meet->calls[i].comm->rank == rank) return &meet->calls[i];
    abort();
}

static void check_agreement(const fake_meet *meet) {
    for (int i = 1; i < meet->count; i++) {
        const call *a = &meet->calls[0], *b = &meet->calls[i];
        if (a->what != b->what || a->count != b->count || a->dtype != b->dtype ||
            a->redop != b->redop || a->root != b->root) {
            fprintf(stderr, "fake NCCL: the ranks' calls differ\n");
            abort();
        }
    }
}

/* What all ranks reduce to, elements `first` to `first + count`. */
static void reduce(const fake_meet *meet, size_t first, size_t count, void *to) {
    int size = meet->clique->size, dtype = meet->calls[0].dtype, redop = meet->calls[0].redop;
    for (size_t i = 0; i < count; i++) {
        long double value = load(dtype, of_rank(meet, 0)->in, first + i);
        for (int rank = 1; rank < size; rank++)
            value = combine(redop, value, load(dtype, of_rank(meet, rank)->in, first + i));
        store(dtype, to, i, redop == 4 ? value / size : value);
    }
}

/* What the rank gets. NULL: nothing. Owned by the caller. */
static void *result_for(const fake_meet *meet, const call *c, size_t *out_bytes) {
    size_t bytes = c->count * size_of(c->dtype), size = (size_t)meet->clique->size;
    size_t rank = (size_t)c->comm->rank;
    *out_bytes = c->what == ALL_GATHER ? bytes * size : bytes;
    char *result = malloc(*out_bytes + 1);
    switch (c->what) {
    case REDUCE:
        if (c->comm->rank != c->root) break;
        reduce(meet, 0, c->count, result);
        return result;
    case ALL_REDUCE: reduce(meet, 0, c->count, result); return result;
    case REDUCE_SCATTER: reduce(meet, rank * c->count, c->count, result); return result;
    case BROADCAST: memcpy(result, of_rank(meet, c->root)->in, bytes); return result;
    case ALL_GATHER:
        for (size_t k = 0; k < size; k++)
            memcpy(result + k * bytes, of_rank(meet, (int)k)->in, bytes);
        return result;
    case SEND:
    case RECV: break;
    }
    free(result);
    return NULL;
}

/* The n-th send from a rank to another goes to the n-th receive of that one. */
static void exchange(const fake_meet *meet) {
    for (int i = 0; i < meet->count; i++) {
        const call *from = &meet->calls[i];
        int nth = 0;
        if (from->what != SEND) continue;
        for (int k = 0; k < i; k++)
            nth += meet->calls[k].what == SEND && meet->calls[k].comm == from->comm &&
                   meet->calls[k].root == from->root;
        for (int k = 0; k < meet->count; k++) {
            const call *to = &meet->calls[k];
            if (to->what != RECV || to->comm->rank != from->root || to->root != from->comm->rank ||
                nth-- != 0)
                continue;
            if (to->count != from->count || to->dtype != from->dtype) abort();
            memmove(to->out, from->in, from->count * size_of(from->dtype));
        }
    }
}

static void collect(const fake_meet *meet) {
    void **results = calloc((size_t)meet->count, sizeof *results);
    size_t *bytes = calloc((size_t)meet->count, sizeof *bytes);
    check_agreement(meet);
    for (int i = 0; i < meet->count; i++) results[i] = result_for(meet, &meet->calls[i], &bytes[i]);
    for (int i = 0; i < meet->count; i++) {
        if (results[i]) memcpy(meet->calls[i].out, results[i], bytes[i]);
        free(results[i]);
    }
    free(results);
    free(bytes);
}

bool fake_meet_come(task *t) {
    if (!t->has_come) t->meet->missing--;
    t->has_come = true;
    return t->meet->missing == 0;
}

void fake_meet_carry_out(task *t) {
    fake_meet *meet = t->meet;
    if (meet->is_done) return;
    meet->is_done = true;
    if (meet->calls[0].what >= SEND) exchange(meet);
    else collect(meet);
}

void fake_meet_release(fake_meet *meet) {
    if (!meet || --meet->refs) return;
    free(meet->calls);
    free(meet);
}

/* ---- groups */

static void add_task(fake_meet *meet, const call *c) {
    int current = fake_current;
    fake_current = c->comm->device;
    task *t = fake_add(fake_stream_of(c->stream), TASK_MEET);
    t->meet = meet;
    meet->refs++;
    fake_current = current;
}

static void add_call(fake_meet *meet, const call *c) {
    meet->calls = realloc(meet->calls, (size_t)(meet->count + 1) * sizeof *meet->calls);
    meet->calls[meet->count++] = *c;
}

static void submit_collective(const call *c) {
    clique *q = c->comm->clique;
    uint64_t number = ++c->comm->operations;
    fake_meet **at = &q->meets;
    while (*at && (*at)->number != number) at = &(*at)->next;
    if (!*at) {
        *at = calloc(1, sizeof **at);
        **at = (fake_meet){.clique = q, .number = number, .missing = q->size};
    }
    fake_meet *meet = *at;
    add_call(meet, c);
    add_task(meet, c);
    if (meet->count == q->size) *at = meet->next;
}

static bool is_message(const call *c) {
    return c->what >= SEND;
}

/* All messages of the group in one clique, from call `first` on. */
static void submit_messages(int first) {
    fake_meet *meet = calloc(1, sizeof *meet);
    meet->clique = calls[first].comm->clique;
    for (int i = first; i < call_count; i++)
        if (calls[i].comm && is_message(&calls[i]) && calls[i].comm->clique == meet->clique)
            add_call(meet, &calls[i]);
    for (int i = 0; i < meet->count; i++) {
        bool is_known = false;
        for (int k = 0; k < i; k++) is_known |= meet->calls[k].comm == meet->calls[i].comm;
        if (is_known) continue;
        meet->missing++;
        add_task(meet, &meet->calls[i]);
    }
    for (int i = first; i < call_count; i++)
        if (calls[i].comm && is_message(&calls[i]) && calls[i].comm->clique == meet->clique)
            calls[i].comm = NULL;
}

static mr_nccl_result add(call c) {
    if (!c.comm || (c.in == c.out && c.in == NULL && c.count)) return MR_NCCL_INVALID_ARGUMENT;
    calls = realloc(calls, (size_t)(call_count + 1) * sizeof *calls);
    calls[call_count++] = c;
    return depth ? MR_NCCL_SUCCESS
                 : MR_NCCL_INVALID_USAGE; /* one thread with several ranks needs a group */
}

mr_nccl_result fake_nccl_GroupStart(void) {
    depth++;
    return MR_NCCL_SUCCESS;
}

mr_nccl_result fake_nccl_GroupEnd(void) {
    if (depth == 0) return MR_NCCL_INVALID_USAGE;
    if (--depth) return MR_NCCL_SUCCESS;
    pthread_mutex_lock(&fake_lock);
    for (int i = 0; i < call_count; i++) {
        if (!calls[i].comm) continue;
        if (is_message(&calls[i])) submit_messages(i);
        else submit_collective(&calls[i]);
    }
    call_count = 0;
    fake_move();
    pthread_mutex_unlock(&fake_lock);
    return fake_number_of("FAKE_NCCL_FAILS", 0) ? MR_NCCL_UNHANDLED_CUDA_ERROR : MR_NCCL_SUCCESS;
}

/* ---- calls */

mr_nccl_result fake_nccl_AllReduce(const void *in, void *out, size_t count, int dtype, int redop,
                                   mr_nccl_comm comm, CUstream stream) {
    return add((call){ALL_REDUCE, in, out, count, dtype, redop, 0, comm, stream});
}

mr_nccl_result fake_nccl_Broadcast(const void *in, void *out, size_t count, int dtype, int root,
                                   mr_nccl_comm comm, CUstream stream) {
    return add((call){BROADCAST, in, out, count, dtype, 0, root, comm, stream});
}

mr_nccl_result fake_nccl_Reduce(const void *in, void *out, size_t count, int dtype, int redop,
                                int root, mr_nccl_comm comm, CUstream stream) {
    return add((call){REDUCE, in, out, count, dtype, redop, root, comm, stream});
}

mr_nccl_result fake_nccl_AllGather(const void *in, void *out, size_t count, int dtype,
                                   mr_nccl_comm comm, CUstream stream) {
    return add((call){ALL_GATHER, in, out, count, dtype, 0, 0, comm, stream});
}

mr_nccl_result fake_nccl_ReduceScatter(const void *in, void *out, size_t count, int dtype,
                                       int redop, mr_nccl_comm comm, CUstream stream) {
    return add((call){REDUCE_SCATTER, in, out, count, dtype, redop, 0, comm, stream});
}

mr_nccl_result fake_nccl_Send(const void *in, size_t count, int dtype, int peer, mr_nccl_comm comm,
                              CUstream stream) {
    return add((call){SEND, in, NULL, count, dtype, 0, peer, comm, stream});
}

mr_nccl_result fake_nccl_Recv(void *out, size_t count, int dtype, int peer, mr_nccl_comm comm,
                              CUstream stream) {
    return add((call){RECV, NULL, out, count, dtype, 0, peer, comm, stream});
}

/* ---- communicators */

mr_nccl_result fake_nccl_GetVersion(int *version) {
    *version = 22800;
    return MR_NCCL_SUCCESS;
}

mr_nccl_result fake_nccl_CommInitAll(mr_nccl_comm *comms, int count, const int *devices) {
    clique *q = calloc(1, sizeof *q);
    *q = (clique){.size = count, .open = count};
    for (int k = 0; k < count; k++) {
        comms[k] = calloc(1, sizeof *comms[k]);
        *comms[k] = (struct ncclComm){.clique = q, .rank = k, .device = devices[k]};
        fake_CtxSetCurrent(NULL); /* callers must not rely on the current context */
    }
    return MR_NCCL_SUCCESS;
}

/* Tasks that are pending point to it, so it waits for them, as the real one does. */
mr_nccl_result fake_nccl_CommDestroy(mr_nccl_comm comm) {
    fake_CtxSetCurrent(&fake_devices[comm->device].context);
    if (fake_devices[comm->device].retained) fake_CtxSynchronize();
    if (--comm->clique->open == 0) free(comm->clique);
    free(comm);
    return MR_NCCL_SUCCESS;
}

mr_nccl_result fake_nccl_CommAbort(mr_nccl_comm comm) {
    return fake_nccl_CommDestroy(comm);
}

const char *fake_nccl_GetErrorString(mr_nccl_result result) {
    return result == MR_NCCL_UNHANDLED_CUDA_ERROR ? "unhandled cuda error" : "invalid usage";
}

const char *fake_nccl_GetLastError(mr_nccl_comm comm) {
    (void)comm;
    return "";
}
