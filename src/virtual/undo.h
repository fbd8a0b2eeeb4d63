/* Saves the old contents of memory before it is overwritten, page by page, for checkpoints. Each page is
 * saved once for each checkpoint, however often it is written. So a checkpoint costs nothing when it is
 * made, and later only what has changed since.
 *
 * Any code that is about to change memory of the virtual GPU or of the host calls mr_undo_save first. Host memory is
 * the C library's: mr_undo_allocated and mr_undo_free_later note its allocations and frees.
 *
 * Checkpoints. A search over schedules, or a user who steps back, returns to the same state many times.
 * `mr_simulator.checkpoint` saves the state of the virtual machine, `restore` returns to it; checkpoints form a
 * stack. All records that change while the device moves (queues, edges, pool blocks) are in one *region*
 * (`base/region.h`): a few chunks of memory at fixed addresses. A checkpoint copies the used part of the chunks, and
 * a restore copies it back, so no pointer changes. Tensors are not copied. While there is a checkpoint, code that is
 * about to write memory first keeps the old contents, page by page, each page once per checkpoint (`virtual/undo.h`).
 * So the cost depends on the records and on the bytes written since, not on the amount of memory. Commands need no
 * copy, because they never change; the checkpoint holds a reference to each pending one, and a copy of the failure that
 * no call has raised yet. `scripts/bench/checkpoint.c` measures it. */
#ifndef MR_VIRTUAL_UNDO_H
#define MR_VIRTUAL_UNDO_H

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

typedef enum {
    UNDO_BYTES,
    UNDO_ZEROS, /* nothing but zeros was there, which are not kept */
    UNDO_ALLOCATED,
    UNDO_FREED,
} undo_what;

typedef struct {
    char *at;
    uint32_t size; /* of bytes and zeros */
    undo_what what;
    size_t bytes; /* UNDO_BYTES: the place of the old bytes in undo.bytes */
} undo_entry;

typedef struct {
    uint64_t generation; /* of the newest checkpoint; 0: there is none, and nothing is kept */
    uint64_t generations;
    /* going back changes no allocation of the host's: see mr_simulator.checkpoint */
    bool host_stays;
    bool failed;  /* out of memory, or the limit reached: some overwritten bytes are lost */
    size_t limit; /* of `bytes`; 0: none */
    MR_VEC(undo_entry) entries;
    MR_VEC(char) bytes;
    /* By page, or by the beginning of watched memory: the newest checkpoint for which it was kept. */
    MR_MAP(uint64_t) kept;
} undo;

static inline bool mr_undo_is_on(const undo *u) {
    return u->generation != 0;
}

/* [first, end) is about to change; it is part of memory that is all ours from `low` to `high`. */
void mr_undo_save_on(undo *u, char *low, char *high, char *first, char *end);
static inline void mr_undo_save(undo *u, char *low, char *high, char *first, char *end) {
    if (__builtin_expect(mr_undo_is_on(u), 0)) mr_undo_save_on(u, low, high, first, end);
}

/* `at` was allocated: going back frees it. False: memory is out, and it must not be used. */
bool mr_undo_allocated(undo *u, void *at);
/* Frees `at` once no checkpoint can return to a time when it was in use. */
void mr_undo_free_later(undo *u, void *at);

/* A checkpoint begins: returns its mark. From now on pages are kept for it, under a generation of its own. */
size_t mr_undo_mark(undo *u);
/* Restores the bytes changed since `mark`, which stays the newest one. */
void mr_undo_roll_back(undo *u, size_t mark);
/* The newest checkpoint is gone; `generation` is that of the one below, 0: none is left. */
void mr_undo_pop(undo *u, uint64_t generation);
/* The oldest checkpoints are gone, up to the one of `mark`. Returns by how much the marks of the others go down. */
size_t mr_undo_forget(undo *u, size_t mark);
/* The host memory that it takes. */
size_t mr_undo_bytes(const undo *u);
void mr_undo_free(undo *u);

#endif
