/* A storage: one allocation of device, pinned or pageable memory.
 *
 * Two counts, because the life of the memory is not the life of the record. `handles` counts the script's tensors. When
 * the last goes, device memory is freed in stream order (R28), even though pending commands still name it.
 * record_stream (R33) prevents exactly this bug. `refs` counts all users of this struct: handles, commands, the
 * checker's reports. Host memory has no stream order: it stays until the last reference goes. */
#ifndef MR_MODEL_STORAGE_H
#define MR_MODEL_STORAGE_H

#include "model/stream.h"

typedef enum {
    MR_MEMORY_DEVICE,
    MR_MEMORY_PINNED,   /* host memory that the device can reach (mapped), R22 */
    MR_MEMORY_PAGEABLE, /* plain host memory */
} mr_memory_kind;

struct mr_storage {
    uint32_t refs;
    uint32_t handles;
    uint32_t epoch;
    /* the rank that made it, from 1 (collective/ranks.h); 0: it was made outside ranks, for all */
    uint16_t rank;
    mr_memory_kind kind;
    bool freed; /* device memory: the free has been submitted, no access is valid */
    bool blank; /* host memory that mr.empty made: its values mean nothing until written */
    /* a temporary for a copy that the host reads at once, without telling observers */
    bool transient;
    bool recorded_free; /* t:free was called by the script (for messages), else the collector */
    bool of_module;     /* a module's variable, or its initial value: the script cannot free it */
    bool shared;        /* code outside of millrace may use it (outside.h) */
    bool free_waits; /* freed by the script while it is lent: the memory goes with the last loan */
    uint32_t loans;  /* to code outside */
    /* the number of times this memory was reused for the next call of a function that is a graph (graph/auto.h);
     * earlier tensors then cannot be used */
    uint32_t generation;
    uint64_t id;
    uint64_t bytes;   /* as asked for; at least 1 is allocated */
    uint64_t address; /* what data_ptr shows; the same on every run of the virtual GPU */
    /* For memory with another owner (a variable of a loaded module, or code outside millrace): its address on the
     * device or, for host memory, on the host. ALLOC and FREE then only begin and end the tensor's life. 0: ordinary
     * memory. */
    uint64_t fixed_address;
    /* the address for the CPU: of host memory, and of all memory of the virtual GPU; NULL for a real GPU's memory */
    void *host;
    mr_machine *machine;
    mr_device *device; /* NULL for host memory */
    mr_stream *stream; /* device memory: the stream that it was allocated on; owned reference */
    MR_VEC(mr_stream *) used_by; /* R33: record_stream; owned references */
    mr_site made, freed_where;
    uint64_t made_seq;
    mr_name *name;      /* of the tensor that was named last, for reports; one reference, or NULL */
    uint64_t version;   /* how many operations that write here were submitted, by device or host */
    const char *writer; /* the operation submitted last that writes here, or NULL */
    mr_name *writer_name; /* the owner of that text; one reference; NULL: it is static */
    mr_site writer_where;
    void *kept; /* until the record goes: see mr_storage_keep */
    void (*release_kept)(void *kept);
    void *graph; /* the capture that owns the memory (capture.h); NULL: the script owns it */
    void *pool;  /* of graphs, which may use the same memory in turn (graph/pool.c); NULL: none */
    uint32_t pool_handles; /* those of the handles that graphs of that pool have */
    uint32_t launched; /* the generation of the graph of the pool that was launched last; 0: none */
    void *impl;        /* the backend's */
    void *observed;    /* the checker's access history */
    mr_storage *older, *newer; /* of all that the machine has */
};

/* Whether another rank made it (collective/ranks.h). */
static inline bool mr_storage_is_foreign(const mr_storage *storage) {
    uint16_t here = storage->machine->rank;
    return storage->rank != here && storage->rank && here;
}

/* The storage at an address, of any device or the host; NULL: none. Takes time for each tensor. */
mr_storage *mr_storage_at(const mr_machine *machine, uint64_t address);

/* Whether other devices than `device` can access the memory. Then its operations are atomic for those only with scope
 * .sys. */
bool mr_storage_is_shared(const mr_storage *storage, const mr_device *device);

/* Device memory is allocated in the order of `stream` (an ALLOC command); for host memory `stream`
 * is NULL. The caller owns one reference and one handle. Contents are undefined. Out of memory: the
 * collect hook is called and the allocation tried again; then an error, everything as before. */
mr_status mr_storage_create(const mr_caller *caller, mr_memory_kind kind, uint64_t bytes,
                            mr_stream *stream, mr_storage **out_storage);

/* The same for existing memory with another owner, at this address; its contents stay. */
mr_status mr_storage_create_at(const mr_caller *caller, mr_memory_kind kind, uint64_t bytes,
                               mr_stream *stream, uint64_t address, mr_storage **out_storage);

/* Keeps `kept`, which the address depends on: `release` gets it when the last reference goes. Once. */
void mr_storage_keep(mr_storage *storage, void *kept, void (*release)(void *kept));

/* For new host memory that a script can read before anything has written it: makes it zero; otherwise each run of the
 * script could read other values. */
void mr_storage_begin_zero(mr_storage *storage);

void mr_storage_retain(mr_storage *storage);
void mr_storage_release(mr_storage *storage); /* accepts NULL */

/* A tensor of the script is made or dropped. The last handle frees device memory in the order of the stream that it was
 * made on, after the used_by streams' work so far (R33). Never fails, never waits: safe in a finalizer. */
void mr_storage_add_handle(mr_storage *storage);
void mr_storage_drop_handle(mr_storage *storage);
/* The same at the script's request: an observer may refuse, and the handle remains. */
mr_status mr_storage_close_handle(const mr_caller *caller, mr_storage *storage);

/* Bytes of all tensors, of host and devices: what mr_machine_memory.limit bounds. */
uint64_t mr_machine_live_bytes(const mr_machine *machine);

typedef enum {
    MR_FREE_OWN_STREAM, /* t:free() */
    MR_FREE_ON_STREAM,  /* t:free{stream=s}: cudaFreeAsync on s */
    MR_FREE_SYNC,       /* t:free{sync=true}: cudaFree: at once, whatever still uses it (R27) */
} mr_free_mode;

/* Frees now. A second free is invalid-argument, as cudaFree's (R27). `stream` only for ON_STREAM. */
mr_status mr_storage_free(const mr_caller *caller, mr_storage *storage, mr_free_mode mode,
                          mr_stream *stream);

/* R33; nothing to do for the stream of allocation. Host memory: accepted, nothing to do. */
mr_status mr_storage_record_stream(mr_storage *storage, mr_stream *stream);
/* The same, asked for by a line of the script: observers are told of it, also when the stream was named before. */
mr_status mr_storage_record_stream_at(mr_storage *storage, mr_stream *stream, mr_site where);

/* NULL, or why its bytes cannot be used: it is freed, or from before a reset. `what` names it in the message. */
mr_status mr_storage_usable(const mr_storage *storage, const char *what);
bool mr_storage_is_lost(const mr_storage *storage); /* a reset took its memory */

/* Call this before the host reads or writes the bytes of pinned or pageable memory at `host`. The observers hear of
 * it. The virtual device moves to the host's present, so the bytes hold what has been written by then, and nothing
 * more. */
mr_status mr_host_access(const mr_caller *caller, const char *name, mr_tensor *tensor,
                         uint8_t access);
/* The same for all operands of one piece of work; `row`, `params` (MR_PARAMS_BYTES of them): of the operation that it
 * is, or NULL. */
mr_status mr_host_accesses(const mr_caller *caller, const char *name, const mr_operand *operands,
                           uint32_t count, const mr_op *row, const void *params);
/* After such an operation: the host has computed on so many bytes, or failed to (borrows `status`). */
void mr_host_worked(mr_machine *machine, uint64_t bytes, mr_status status);
/* The host takes the values of a tensor that was made for that alone (storage->transient). */
void mr_host_reads(mr_machine *machine, mr_tensor *tensor);

#endif
