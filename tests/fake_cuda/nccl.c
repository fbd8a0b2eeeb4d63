/* The fake driver's NCCL: the functions of the list in cuda/driver.h, in the same library (MILLRACE_LIBNCCL names it,
 * too).
 *
 * The k-th collectives of all ranks of a communicator are one operation. All sends and receives of a group are one,
 * too. Each rank's part is a task of its stream. Tasks wait until those of all ranks have come; then one computes
 * naively, in long double, for all. Ranks that differ in what they ask for would hang or corrupt data with the real
 * NCCL: here the process aborts.
 *
 * Where ranks are processes (ncclCommInitRank), each writes what it gives to a file when its task is the first of
 * its stream. The unique id is the path of the folder. The task goes on when the files of all peers are there. Files
 * stay: tests remove TMPDIR. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

struct ncclComm {
    clique *clique;
    int rank, device;
    uint64_t operations;
    uint64_t *sent, *received; /* by peer; processes only */
};

struct fake_meet {
    fake_meet *next; /* of the clique, while parts are missing */
    clique *clique;
    uint64_t number;
    int refs, missing; /* tasks; ranks whose task has not come */
    bool is_done;
    int count;
    call *calls;
    /* processes only */
    struct ncclComm self; /* the calls' comm, which may go before they are carried out */
    uint64_t *numbers;    /* by call: of its message among those of the pair */
};

struct clique {
    int size, open;
    fake_meet *meets;
    char *folder;    /* of processes; NULL: all ranks are here */
    bool is_aborted; /* what waits is over */
    clique *next;    /* of those of processes, which stay: tasks point to them */
};
static clique *of_processes;
static char last_error[200];

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

/* ---- between processes */

typedef struct {
    int what, dtype, redop, root;
    size_t count;
} what_of_call;

static size_t bytes_given(const call *c, int size) {
    return c->count * size_of(c->dtype) * (c->what == REDUCE_SCATTER ? (size_t)size : 1);
}

static const char *path_of_part(const fake_meet *meet, int i, int rank, char *out, size_t size) {
    const call *c = &meet->calls[i];
    int own = meet->self.rank, from = c->what == SEND ? own : c->root,
        to = c->what == SEND ? c->root : own;
    if (c->what < SEND)
        snprintf(out, size, "%s/%llu.%d", meet->clique->folder, (unsigned long long)meet->number,
                 rank);
    else
        snprintf(out, size, "%s/m%d.%d.%llu", meet->clique->folder, from, to,
                 (unsigned long long)meet->numbers[i]);
    return out;
}

/* A file appears whole. */
static void write_file(const char *path, const void *head, size_t head_size, const void *bytes,
                       size_t size) {
    char draft[400];
    snprintf(draft, sizeof draft, "%s.draft", path);
    FILE *file = fopen(draft, "wb");
    if (!file || fwrite(head, 1, head_size, file) != head_size ||
        fwrite(bytes, 1, size, file) != size || fclose(file) || rename(draft, path))
        abort();
}

static void write_part(const fake_meet *meet, int i) {
    const call *c = &meet->calls[i];
    what_of_call head = {c->what, c->dtype, c->redop, c->root, c->count};
    char path[300];
    if (c->what == RECV) return;
    write_file(path_of_part(meet, i, meet->self.rank, path, sizeof path), &head, sizeof head,
               c->in ? c->in : "", c->in ? bytes_given(c, meet->clique->size) : 0);
}

static bool parts_are_there(const fake_meet *meet) {
    char path[300];
    for (int i = 0; i < meet->count; i++) {
        int first = meet->calls[i].what < SEND ? 0 : meet->self.rank;
        int end = meet->calls[i].what < SEND ? meet->clique->size : first + 1;
        if (meet->calls[i].what == SEND)
            continue; /* as a small message, that needs no receiver to end */
        for (int rank = first; rank < end; rank++)
            if (access(path_of_part(meet, i, rank, path, sizeof path), R_OK)) return false;
    }
    return true;
}

/* What that rank gave to call `i`. */
static void *read_part(const fake_meet *meet, int i, int rank, call *out) {
    char path[300];
    what_of_call head;
    FILE *file = fopen(path_of_part(meet, i, rank, path, sizeof path), "rb");
    if (!file || fread(&head, 1, sizeof head, file) != sizeof head) abort();
    *out = (call){.what = (what)head.what,
                  .count = head.count,
                  .dtype = head.dtype,
                  .redop = head.redop,
                  .root = head.root};
    size_t size = bytes_given(out, meet->clique->size);
    char *bytes = malloc(size + 1);
    if (fread(bytes, 1, size, file) != size) size = 0; /* of a rank that gives nothing */
    fclose(file);
    out->in = bytes;
    return bytes;
}

static void collect_from_processes(const fake_meet *meet) {
    int size = meet->clique->size;
    fake_meet all = {
        .clique = meet->clique, .count = size, .calls = calloc((size_t)size, sizeof *all.calls)};
    struct ncclComm *comms = calloc((size_t)size, sizeof *comms);
    size_t bytes;
    for (int rank = 0; rank < size; rank++) {
        read_part(meet, 0, rank, &all.calls[rank]);
        comms[rank].rank = rank;
        all.calls[rank].comm = &comms[rank];
    }
    check_agreement(&all);
    void *result = result_for(&all, &all.calls[meet->self.rank], &bytes);
    if (result) memcpy(meet->calls[0].out, result, bytes);
    free(result);
    for (int rank = 0; rank < size; rank++) free((void *)all.calls[rank].in);
    free(all.calls);
    free(comms);
}

static void carry_out_process(const fake_meet *meet) {
    if (meet->clique->is_aborted) return;
    if (meet->calls[0].what < SEND) {
        collect_from_processes(meet);
        return;
    }
    for (int i = 0; i < meet->count; i++) {
        call from;
        if (meet->calls[i].what != RECV) continue;
        void *bytes = read_part(meet, i, meet->calls[i].root, &from);
        if (from.count != meet->calls[i].count || from.dtype != meet->calls[i].dtype) abort();
        memcpy(meet->calls[i].out, bytes, from.count * size_of(from.dtype));
        free(bytes);
    }
}

bool fake_meet_come(task *t) {
    if (t->meet->clique->folder) {
        if (!t->has_come && !t->meet->clique->is_aborted)
            for (int i = 0; i < t->meet->count; i++) write_part(t->meet, i);
        t->has_come = true;
        return t->meet->clique->is_aborted || parts_are_there(t->meet);
    }
    if (!t->has_come) t->meet->missing--;
    t->has_come = true;
    return t->meet->missing == 0;
}

void fake_meet_carry_out(task *t) {
    fake_meet *meet = t->meet;
    if (meet->is_done) return;
    meet->is_done = true;
    if (meet->clique->folder) carry_out_process(meet);
    else if (meet->calls[0].what >= SEND) exchange(meet);
    else collect(meet);
}

void fake_meet_release(fake_meet *meet) {
    if (!meet || --meet->refs) return;
    free(meet->calls);
    free(meet->numbers);
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

/* One collective, or all messages of the group from call `first` on. */
static void submit_process(int first) {
    fake_meet *meet = calloc(1, sizeof *meet);
    mr_nccl_comm comm = calls[first].comm;
    meet->clique = comm->clique;
    for (int i = first; i < call_count; i++) {
        if (calls[i].comm != comm ||
            (i > first && !(is_message(&calls[first]) && is_message(&calls[i]))))
            continue;
        add_call(meet, &calls[i]);
        calls[i].comm = NULL;
    }
    meet->self = *comm;
    meet->numbers = calloc((size_t)meet->count, sizeof *meet->numbers);
    if (!is_message(&meet->calls[0])) meet->number = ++comm->operations;
    for (int i = 0; i < meet->count; i++) {
        if (meet->calls[i].what == SEND) meet->numbers[i] = ++comm->sent[meet->calls[i].root];
        if (meet->calls[i].what == RECV) meet->numbers[i] = ++comm->received[meet->calls[i].root];
        meet->calls[i].comm = &meet->self;
    }
    add_task(meet, &meet->calls[0]);
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
        if (calls[i].comm->clique->folder) submit_process(i);
        else if (is_message(&calls[i])) submit_messages(i);
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

mr_nccl_result fake_nccl_GetUniqueId(mr_nccl_id *id) {
    const char *folder = getenv("TMPDIR");
    *id = (mr_nccl_id){{0}};
    snprintf(id->bytes, sizeof id->bytes, "%s/fake_nccl_XXXXXX", folder ? folder : "/tmp");
    return mkdtemp(id->bytes) ? MR_NCCL_SUCCESS : MR_NCCL_INVALID_USAGE;
}

/* NCCL tells computers apart by a hash, which NCCL_HOSTID replaces. */
static void describe_place(char *out, size_t size) {
    const char *host = getenv("NCCL_HOSTID");
    snprintf(out, size, "%s device %d", host ? host : "here", fake_current);
}

static bool read_place(const char *folder, int rank, char *out, size_t size) {
    char path[300];
    snprintf(path, sizeof path, "%s/join.%d", folder, rank);
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    size_t got = fread(out, 1, size - 1, file);
    out[got] = 0;
    fclose(file);
    return true;
}

mr_nccl_result fake_nccl_CommInitRank(mr_nccl_comm *out, int count, mr_nccl_id id, int rank) {
    char path[300], own[200], other[200];
    describe_place(own, sizeof own);
    snprintf(path, sizeof path, "%s/join.%d", id.bytes, rank);
    write_file(path, own, strlen(own), "", 0);
    for (int k = 0; k < count; k++) {
        while (!read_place(id.bytes, k, other, sizeof other)) usleep(200);
        if (k == rank || strcmp(own, other) != 0) continue;
        snprintf(last_error, sizeof last_error,
                 "Duplicate GPU detected : rank %d and rank %d both on CUDA device %d", rank, k,
                 fake_current);
        return MR_NCCL_INVALID_USAGE;
    }
    clique *q = calloc(1, sizeof *q);
    *q = (clique){.size = count, .open = 1, .folder = strdup(id.bytes), .next = of_processes};
    of_processes = q;
    *out = calloc(1, sizeof **out);
    **out = (struct ncclComm){.clique = q,
                              .rank = rank,
                              .device = fake_current,
                              .sent = calloc((size_t)count, sizeof(uint64_t)),
                              .received = calloc((size_t)count, sizeof(uint64_t))};
    fake_CtxSetCurrent(NULL);
    return MR_NCCL_SUCCESS;
}

/* Tasks that are pending point to it, so it waits for them, as the real one does. */
mr_nccl_result fake_nccl_CommDestroy(mr_nccl_comm comm) {
    fake_CtxSetCurrent(&fake_devices[comm->device].context);
    if (fake_devices[comm->device].retained) fake_CtxSynchronize();
    if (--comm->clique->open == 0 && !comm->clique->folder) free(comm->clique);
    free(comm->sent);
    free(comm->received);
    free(comm);
    return MR_NCCL_SUCCESS;
}

mr_nccl_result fake_nccl_CommAbort(mr_nccl_comm comm) {
    if (!comm->clique->folder) return fake_nccl_CommDestroy(comm);
    comm->clique->is_aborted = true;
    free(comm->sent);
    free(comm->received);
    free(comm);
    fake_CtxSetCurrent(NULL);
    return MR_NCCL_SUCCESS;
}

const char *fake_nccl_GetErrorString(mr_nccl_result result) {
    return result == MR_NCCL_UNHANDLED_CUDA_ERROR ? "unhandled cuda error" : "invalid usage";
}

const char *fake_nccl_GetLastError(mr_nccl_comm comm) {
    (void)comm;
    return last_error;
}
