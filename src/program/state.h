/* The inside of programs, private to this folder: slots for objects, items, and the bytes that they refer to. All
 * references are numbers; nothing points to a machine.
 *
 * The commands are complete. Some calls of a backend change its state but are irrelevant to the checker. Host memory
 * comes and goes, an event is created, a setting changes, or a query says no. They are commands of the trait `ACCOUNT`.
 * Only an observer with `everything` is told of them, and of calls that failed. Such a command is made only if there is
 * a listener, so a call costs one more comparison.
 *
 * An effect that depends on the schedule is not an item. Pending commands hold references, so the schedule decides when
 * the last reference to an event, a stream or host memory is dropped. A program has a separate list of these drops, and
 * an item's number depends only on the script's requests. A host function may use memory at any time. So storages are
 * numbered at the end of the recording (`number.c`), in the order in which the script's own calls use them. Two runs
 * with the same requests up to some item have the same numbers up to there, and the search relies on this.
 *
 * Work of the host. An operation on host tensors is recorded as its row and operands, and is carried out again: under
 * another schedule its inputs may differ. Everything else that the host writes is recorded as bytes. The recorder
 * copies them at the next call, or when the host function returns, because only then the write is over. The values that
 * the host reads are kept as a hash, and as bytes if they are few; the player compares. The actions of a host function
 * are a list of its own, which is carried out when the player's machine runs that function.
 *
 * Inexact recordings. A wait that Ctrl-C ended, a recording on a real GPU, a random chooser that had drawn before the
 * recording began: `mr_program_inexact` gives the reason. A recording may begin in the middle: it first waits for all
 * devices, and the program contains the bytes of earlier memory. Durations are then equal, but points in time are
 * not. */
#ifndef MR_PROGRAM_STATE_H
#define MR_PROGRAM_STATE_H

#include <stdatomic.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "ops/op.h"
#include "ops/params.h"
#include "program/program.h"

#define NO_SLOT UINT32_MAX

/* From an object's id, or the hash of a view, to its slot. */
typedef MR_MAP(uint32_t) slot_map;

/* NO_SLOT: there is none. */
static inline uint32_t mr_slot_find(const slot_map *map, uint64_t key) {
    const uint32_t *slot = mr_map_find(map, key);
    return slot ? *slot : NO_SLOT;
}

/* ---- values.c: bytes */

/* A piece of program->bytes, or as many zeros. */
typedef struct {
    size_t at, size;
    bool zero;
} blob;
#define NO_BLOB ((blob){0})

uint64_t mr_value_hash(uint64_t hash, const void *data, size_t size);
/* For the elements of a view that the CPU can reach, in row-major order. */
uint64_t mr_value_hash_view(const mr_tensor *view);
size_t mr_value_view_bytes(const mr_tensor *view);
void mr_value_gather(const mr_tensor *view, char *out);
void mr_value_scatter(const mr_tensor *view, const char *from);

/* ---- slots for objects */

typedef struct {
    uint32_t id, epoch; /* epochs count from 1, the recording's first */
    mr_stream_kind kind;
    bool blocking;
    bool before; /* it was there before the recording */
    int priority, device;
    uint32_t name; /* text or NO_SLOT */
    mr_site where;
} stream_slot;

typedef struct {
    uint32_t id, epoch;
    bool timing, blocking;
    bool before, recorded; /* `recorded`: before, too, and complete when the recording began */
    int device;            /* of that record */
    uint32_t name;
    mr_site where;
} event_slot;

typedef struct {
    uint64_t id, bytes, made_seq;
    uint32_t epoch;
    mr_memory_kind kind;
    bool blank, transient, before;
    int device;
    uint32_t stream;  /* device memory */
    uint32_t used_by; /* how many streams record_stream names */
    uint32_t name;
    mr_site made;
    blob first;         /* its initial bytes; none: any bytes */
    bool live;          /* at the end of the recording, with these bytes: */
    uint64_t last_hash; /* not in recordings of the explorer, which are not compared */
} storage_slot;

typedef struct {
    mr_tensor view; /* without storage, name, references */
    uint32_t storage, name;
} view_slot;

/* ---- items */

typedef enum {
    CAME_TRUE, /* the observers' `did` */
    SAID_NO,   /* a query */
    FAILED,    /* tried */
} outcome;

/* The kind of an item's `object`. */
typedef enum {
    OBJECT_NONE,    /* none, or as the kind says */
    OBJECT_EVENT,   /* a slot; `other`, where there is one, is a slot, too */
    OBJECT_STORAGE, /* a slot */
    OBJECT_DEVICE,  /* an index; `other`, where there is one, is an index, too */
} object_kind;

typedef struct {
    uint8_t kind;      /* mr_command_id */
    uint8_t outcome;   /* of above */
    uint8_t object_is; /* object_kind */
    bool has_error;    /* with FAILED; with CAME_TRUE: the call succeeded but returned an error */
    bool flag; /* COPY: synchronous; FREE: at once; ALLOC: memory found; HOST_FUNCTION: ran */
    uint8_t direction;      /* COPY */
    uint8_t launch;         /* MR_LAUNCH_* */
    uint8_t rank;           /* the rank that made the call, from 1; 0: none, or one above 255 */
    uint32_t launched;      /* for a graph's launch: its line, in program->launched; or NO_SLOT */
    mr_code code;           /* of the error; FAULT: see value */
    uint32_t error;         /* its text */
    uint32_t stream;        /* slot */
    uint32_t object, other; /* see object_kind. COPY: the device that was current */
    uint32_t first_operand, operand_count;
    uint32_t own_name;
    uint32_t meeting, member;    /* in program->meetings; NO_SLOT: it is in none */
    uint32_t params;             /* with `row` */
    uint32_t inner, inner_count; /* HOST_FUNCTION: its actions, in program->inner */
    const char *name;            /* static, unless own_name */
    const mr_op *row;
    mr_site where;
    uint64_t seq;
    uint64_t time; /* the host's clock after a wait */
    uint64_t value;
    double number;
    uint64_t hash; /* of what the host read */
    union {
        blob arguments; /* with `row`: further arguments, at a multiple of 16 */
        /* HOST_ACCESS without `row`: the bytes that the host wrote, one operand after the other; or read, if they are
         * few */
        blob bytes;
    };
} item; /* there are many */

typedef struct {
    uint32_t view;
    uint8_t access;
} item_operand;

/* An object that is closed or freed in front of item `before`. It is not an item: pending commands hold references, so
 * the schedule decides when the last one is dropped. */
typedef struct {
    mr_command_id kind; /* EVENT_CLOSE, STREAM_DROP or HOST_FREE */
    uint32_t slot;
    size_t before;
} object_drop;

typedef struct {
    char *name;
    int64_t value;
} setting_value;

typedef MR_VEC(item) item_list;

struct mr_program {
    atomic_uint refs;
    /* the initial backend, model and chooser */
    char *backend, *model, *chooser;
    MR_VEC(setting_value) settings;
    MR_VEC(uint64_t) peers; /* by device: bit i: it may reach device i */
    int device_count;
    bool from_the_start, launch_blocking, cut;
    /* the next number, and the last id, at the beginning */
    uint64_t first_seq, first_storage, start_time;
    uint32_t first_epoch;

    MR_VEC(stream_slot) streams;
    MR_VEC(event_slot) events;
    MR_VEC(storage_slot) storages;
    MR_VEC(view_slot) views;
    item_list items, inner;
    MR_VEC(uint8_t) kinds;     /* by item: loops over long programs look at few items */
    bool has_odd;              /* some item is not plain (mr_program_is_plain) */
    MR_VEC(object_drop) drops; /* by `before` */
    MR_VEC(item_operand) operands;
    MR_VEC(mr_site) launched;
    bool retains_arguments; /* an item's arguments are to be released */
    MR_VEC(mr_params) params;
    MR_VEC(mr_meeting *) meetings; /* without commands; a reference each */
    MR_VEC(char *) texts;
    MR_VEC(char) bytes;
    mr_interned files;

    char *inexact;
    uint64_t end_time, end_device_time;
    bool lost;
    mr_code lost_code;
};

/* See mr_program_is_plain. */
static inline bool mr_item_is_plain(const item *it) {
    return it->outcome != FAILED && !it->has_error && it->meeting == NO_SLOT;
}

/* program.c: the item, as others see it. */
mr_program_item mr_program_item_of(const mr_program *program, const item *it);

#define VALUE_KEPT 64 /* bytes of a value that the host read, beyond its hash */

#endif
