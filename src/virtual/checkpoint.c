/* Checkpoints: save the state of the machine as bytes, and restore it.
 *
 * A copy is made of four parts: the changing half of struct vgpu, the occupied bins of the pools, the state of the
 * chooser, and the region. Everything else lies in the region, at addresses that stay. Memory is not copied: undo.c
 * keeps the bytes that are overwritten from now on.
 *
 * The easiest to break are the references that pending works own outside the region: to their command, to a staged
 * source, to the scratch of a half-run body. A checkpoint owns one of each too. Restoring releases those of works that
 * are pending now, and takes new ones for works that are pending again. */
#include <stdlib.h>
#include <string.h>

#include "model/given.h"
#include "model/history.h"
#include "model/observer.h"
#include "ops/op.h"
#include "virtual/state.h"

typedef struct {
    work *work;
    const mr_command *command;
    staged *staged;
    void *scratch; /* a copy of the body's; owned */
    size_t scratch_bytes;
} kept_work;

typedef MR_VEC(kept_work) kept_works;

struct mr_checkpoint {
    mr_checkpoint *below;
    vgpu *gpu; /* NULL: it cannot be restored any more */
    uint64_t generation;
    size_t undo_mark;
    uint64_t runs_told; /* to observers */
    char *bytes;
    size_t capacity;
    kept_works works, leaving;      /* `leaving` is only used while it is restored */
    mr_status deferred_error, lost; /* copies of the machine's; owned, or NULL */
};

/* ---- the four parts */

#define ALIGNED(size) (((size) + 15) & ~(size_t)15)
#define CHANGING      offsetof(vgpu, set)

static size_t chooser_size(const mr_chooser *chooser) {
    return chooser->saved_size ? chooser->saved_size(chooser) : 0;
}

static size_t bins_size(const bins *list) {
    size_t count = 0;
    for (int i = 0; i < BIN_COUNT / 64; i++)
        count += (size_t)__builtin_popcountll(list->occupied[i]);
    return sizeof list->occupied + count * sizeof *list->first;
}

static char *save_bins(const bins *list, char *out) {
    memcpy(out, list->occupied, sizeof list->occupied);
    out += sizeof list->occupied;
    for (int bin = 0; (bin = mr_bins_next(list, bin)) >= 0; bin++) {
        memcpy(out, &list->first[bin], sizeof *list->first);
        out += sizeof *list->first;
    }
    return out;
}

static const char *load_bins(bins *list, const char *in) {
    memcpy(list->occupied, in, sizeof list->occupied);
    in += sizeof list->occupied;
    for (int bin = 0; (bin = mr_bins_next(list, bin)) >= 0; bin++) {
        memcpy(&list->first[bin], in, sizeof *list->first);
        in += sizeof *list->first;
    }
    return in;
}

static size_t pools_size(const vgpu *gpu) {
    size_t size = 0;
    for (int i = 0; i < gpu->device_count; i++) {
        const pool_space *space = gpu->devices[i].pool.space;
        size += bins_size(&space->unreserved) + bins_size(&space->free) +
                bins_size(&space->cached) + bins_size(&space->pending);
    }
    return size;
}

static char *save_pools(const vgpu *gpu, char *out) {
    for (int i = 0; i < gpu->device_count; i++) {
        const pool_space *space = gpu->devices[i].pool.space;
        out = save_bins(&space->unreserved, out);
        out = save_bins(&space->free, out);
        out = save_bins(&space->cached, out);
        out = save_bins(&space->pending, out);
    }
    return out;
}

static const char *load_pools(vgpu *gpu, const char *in) {
    for (int i = 0; i < gpu->device_count; i++) {
        pool_space *space = gpu->devices[i].pool.space;
        in = load_bins(&space->unreserved, in);
        in = load_bins(&space->free, in);
        in = load_bins(&space->cached, in);
        in = load_bins(&space->pending, in);
    }
    return in;
}

static void hide_free_objects(const vgpu *gpu) {
    mr_slab_hide_free(&gpu->queues);
    mr_slab_hide_free(&gpu->works);
    mr_slab_hide_free(&gpu->edges);
    mr_slab_hide_free(&gpu->marks);
    mr_slab_hide_free(&gpu->bodies);
    mr_slab_hide_free(&gpu->chunks);
    mr_slab_hide_free(&gpu->caches);
    mr_slab_hide_free(&gpu->meet_slab);
    for (int i = 0; i < gpu->device_count; i++) mr_slab_hide_free(&gpu->devices[i].pool.blocks);
}

static bool save_state(mr_checkpoint *c) {
    vgpu *gpu = c->gpu;
    size_t chooser = ALIGNED(chooser_size(gpu->chooser)), changing = sizeof *gpu - CHANGING;
    size_t size =
        ALIGNED(changing) + ALIGNED(pools_size(gpu)) + chooser + mr_region_size(&gpu->region);
    if (c->capacity < size) {
        free(c->bytes);
        c->bytes = malloc(size);
        c->capacity = c->bytes ? size : 0;
        if (!c->bytes) return false;
    }
    char *out = c->bytes;
    memcpy(out, (const char *)gpu + CHANGING, changing);
    out += ALIGNED(changing);
    char *end = save_pools(gpu, out);
    out += ALIGNED((size_t)(end - out));
    if (chooser) gpu->chooser->save(gpu->chooser, out);
    mr_region_save(&gpu->region, out + chooser);
    hide_free_objects(gpu);
    return true;
}

/* The host's allocations are not taken back with it (machine->steps.host_stays): their account remains as it is. */
static void keep_host_account(vgpu *gpu, uint64_t of_host, uint64_t next_address) {
    gpu->backing.used += of_host - gpu->backing.of_host;
    gpu->backing.of_host = of_host;
    gpu->next_host_address = next_address;
}

/* The region comes first: where the pools are is in it. The chooser's size is the rest. */
static void load_state(const mr_checkpoint *c) {
    vgpu *gpu = c->gpu;
    uint64_t of_host = gpu->backing.of_host, next_address = gpu->next_host_address;
    mr_chooser *chooser = gpu->chooser;
    size_t changing = sizeof *gpu - CHANGING;
    memcpy((char *)gpu + CHANGING, c->bytes, changing);
    const char *in = c->bytes + ALIGNED(changing);
    const char *end = load_pools(gpu, in);
    in += ALIGNED((size_t)(end - in));
    if (chooser->load) {
        chooser->load(chooser, in);
        in += ALIGNED(chooser_size(chooser)); /* as large as when it was saved */
    }
    mr_region_load(&gpu->region, in);
    hide_free_objects(gpu);
    if (gpu->undo.host_stays) keep_host_account(gpu, of_host, next_address);
}

/* ---- what pending works own */

static void forget(kept_works *list) {
    for (size_t i = 0; i < list->count; i++) {
        kept_work *kept = &list->items[i];
        free(kept->scratch);
        mr_virtual_staged_release(kept->staged);
        mr_command_release(kept->command);
    }
    list->count = 0;
}

static bool keep_work(kept_works *list, work *w) {
    kept_work kept = {.work = w, .command = w->command, .staged = w->staged};
    if (!mr_vec_reserve_one(list)) return false;
    kept.scratch_bytes = (size_t)mr_virtual_scratch_bytes(w);
    if (kept.scratch_bytes) {
        kept.scratch = malloc(kept.scratch_bytes);
        if (!kept.scratch) return false;
        memcpy(kept.scratch, w->body->scratch, kept.scratch_bytes);
    }
    if (kept.staged) kept.staged->refs++;
    mr_command_retain(kept.command);
    mr_vec_push(list, kept);
    return true;
}

static bool keep_works(mr_checkpoint *c) {
    for (work *w = c->gpu->oldest; w; w = w->newer)
        if (!keep_work(&c->works, w)) {
            forget(&c->works);
            return false;
        }
    return true;
}

/* Collects the references of all pending works, to release them later: a release may run the model's code. */
static bool take_leave(mr_checkpoint *c) {
    for (work *w = c->gpu->oldest; w; w = w->newer) {
        bool half_run = mr_virtual_scratch_bytes(w) > 0;
        kept_work kept = {.command = w->command,
                          .staged = w->staged,
                          .scratch = half_run ? w->body->scratch : NULL};
        if (!mr_vec_push(&c->leaving, kept)) {
            c->leaving.count = 0;
            return false;
        }
    }
    return true;
}

/* Allocates the scratch of the restored works, before any change. */
static bool make_scratch(mr_checkpoint *c, void **out_scratch) {
    for (size_t i = 0; i < c->works.count; i++) {
        size_t bytes = c->works.items[i].scratch_bytes;
        out_scratch[i] = NULL;
        if (bytes) out_scratch[i] = mr_op_state_alloc((int64_t)bytes);
        if (!bytes || out_scratch[i]) continue;
        while (i) free(out_scratch[--i]);
        return false;
    }
    return true;
}

static void bring_back(mr_checkpoint *c, void **scratch) {
    for (size_t i = 0; i < c->works.count; i++) {
        const kept_work *kept = &c->works.items[i];
        mr_command_retain(kept->command);
        if (kept->staged) kept->staged->refs++;
        if (!kept->scratch_bytes) continue;
        memcpy(scratch[i], kept->scratch, kept->scratch_bytes);
        kept->work->body->scratch = scratch[i];
    }
}

/* ---- the failure that no call has raised yet */

/* False: no memory. */
static bool copy_error(const mr_error *error, mr_status *out_copy) {
    *out_copy = error ? mr_error_copy(error) : MR_OK;
    return !error || mr_error_details(*out_copy);
}

/* Takes `error`. Otherwise an error of an undone schedule would be raised in the next one. */
static void set_deferred_error(mr_machine *machine, mr_status error) {
    mr_error_destroy(machine->deferred_error);
    machine->deferred_error = error;
}

/* ---- memory */

void mr_virtual_host_writes(mr_machine *machine, const mr_operand *operands, uint32_t count) {
    vgpu *gpu = vgpu_of(machine);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t first, end;
        if (!(operands[i].access & MR_WRITE)) continue;
        mr_tensor_extent(operands[i].tensor, &first, &end);
        mr_virtual_before_write(gpu, operands[i].tensor->storage, first, end);
    }
}

/* ---- the stack */

/* Events and streams that the host has closed while there were checkpoints. */
static void let_go(vgpu *gpu) {
    for (size_t i = 0; i < gpu->let_go.count; i++) {
        closed_object object = gpu->let_go.items[i];
        if (object.mark) mr_virtual_mark_drop(gpu, object.mark);
        else mr_virtual_queue_close(object.queue);
    }
    gpu->let_go.count = 0;
}

bool mr_virtual_let_go_later(vgpu *gpu, closed_object object) {
    if (!mr_undo_is_on(&gpu->undo) || !gpu->undo.host_stays) return false;
    if (mr_vec_push(&gpu->let_go, object)) return true;
    mr_virtual_checkpoints_void(gpu); /* no memory: then nothing can go back */
    return false;
}

static void drop_kept(mr_checkpoint *c) {
    forget(&c->works);
    mr_error_destroy(c->deferred_error);
    mr_error_destroy(c->lost);
    c->deferred_error = c->lost = MR_OK;
}

static void release(mr_checkpoint *c) {
    drop_kept(c);
    mr_vec_free(&c->works);
    mr_vec_free(&c->leaving);
    free(c->bytes);
    free(c);
}

static size_t bytes_of(const mr_checkpoint *c) {
    size_t bytes = sizeof *c + c->capacity + c->works.count * sizeof *c->works.items;
    for (size_t i = 0; i < c->works.count; i++) bytes += c->works.items[i].scratch_bytes;
    return bytes;
}

/* Its memory is kept for the next one, which explorers make at once. */
static void retire(vgpu *gpu, mr_checkpoint *c) {
    gpu->checkpoint_bytes -= bytes_of(c);
    drop_kept(c);
    if (gpu->spare_checkpoint) release(c);
    else gpu->spare_checkpoint = c;
}

/* The newest one goes. */
static void pop(vgpu *gpu) {
    mr_checkpoint *c = gpu->newest_checkpoint;
    gpu->newest_checkpoint = c->below;
    mr_undo_pop(&gpu->undo, c->below ? c->below->generation : 0);
    gpu->machine->steps.watches_writes = gpu->newest_checkpoint != NULL;
    retire(gpu, c);
    if (!gpu->newest_checkpoint) let_go(gpu);
}

void mr_virtual_checkpoints_void(vgpu *gpu) {
    while (gpu->newest_checkpoint) {
        mr_checkpoint *c = gpu->newest_checkpoint;
        gpu->newest_checkpoint = c->below;
        drop_kept(c);
        c->gpu = NULL; /* its owner drops it */
    }
    mr_undo_pop(&gpu->undo, 0);
    gpu->checkpoint_bytes = 0;
    gpu->machine->steps.watches_writes = false;
    let_go(gpu);
    if (gpu->spare_checkpoint) release(gpu->spare_checkpoint);
    gpu->spare_checkpoint = NULL;
}

static mr_status refuse(const mr_machine *machine, const char *what) {
    if (machine->host_function.running)
        return mr_fail(MR_CODE_NOT_PERMITTED, "%s: not permitted inside a host function", what);
    return MR_OK;
}

static mr_status no_memory(const char *what) {
    return mr_no_memory("for the state of the machine: %s", what);
}

static mr_status make(mr_machine *machine, bool host_stays, mr_checkpoint **out_checkpoint) {
    vgpu *gpu = vgpu_of(machine);
    *out_checkpoint = NULL;
    MR_TRY(refuse(machine, "checkpoint"));
    if (machine->lost && host_stays) return mr_error_copy(machine->lost);
    mr_checkpoint *c = gpu->spare_checkpoint;
    gpu->spare_checkpoint = NULL;
    if (!c) c = calloc(1, sizeof *c);
    if (!c) return no_memory("checkpoint");
    c->gpu = gpu;
    if (!keep_works(c) || !copy_error(machine->deferred_error, &c->deferred_error) ||
        !copy_error(machine->lost, &c->lost) || !save_state(c)) {
        release(c);
        return no_memory("checkpoint");
    }
    c->below = gpu->newest_checkpoint;
    c->undo_mark = mr_undo_mark(&gpu->undo);
    gpu->undo.host_stays = host_stays;
    gpu->undo.limit = host_stays ? machine->steps.limit : 0;
    gpu->checkpoint_bytes += bytes_of(c);
    c->generation = gpu->undo.generation;
    c->runs_told = machine->observing.runs_told;
    gpu->newest_checkpoint = c;
    machine->steps.watches_writes = true;
    *out_checkpoint = c;
    return MR_OK;
}

/* Not on top of a history's checkpoints: the end of the history would drop this one, too. */
mr_status mr_virtual_checkpoint(mr_machine *machine, mr_checkpoint **out_checkpoint) {
    mr_history_end(machine, "checkpoint", (mr_site){0});
    return make(machine, false, out_checkpoint);
}

mr_status mr_virtual_checkpoint_step(mr_machine *machine, mr_checkpoint **out_checkpoint) {
    return make(machine, true, out_checkpoint);
}

mr_status mr_virtual_restore(mr_machine *machine, mr_checkpoint *c) {
    vgpu *gpu = vgpu_of(machine);
    MR_TRY(refuse(machine, "restore"));
    if (!c->gpu || gpu->undo.failed)
        return mr_fail(MR_CODE_NOT_PERMITTED, "restore: the checkpoint is no longer valid: %s",
                       c->gpu
                           ? "memory was too short to keep the overwritten contents"
                           : "the chooser, the device model or the memory was replaced after it");
    void *few[16], **scratch = c->works.count > 16 ? malloc(c->works.count * sizeof *scratch) : few;
    mr_status deferred = MR_OK, lost = MR_OK;
    bool ready = scratch && copy_error(c->deferred_error, &deferred) &&
                 copy_error(c->lost, &lost) && take_leave(c) && make_scratch(c, scratch);
    if (ready) {
        while (gpu->newest_checkpoint != c) pop(gpu);
        mr_undo_roll_back(&gpu->undo, c->undo_mark);
        load_state(c);
        bring_back(c, scratch);
        mr_error_destroy(machine->lost);
        machine->lost = lost;
        set_deferred_error(machine, deferred);
        forget(&c->leaving);
        mr_machine_drop_body_notes(machine);
        mr_observers_went_back(machine, c->runs_told);
    }
    c->leaving.count = 0;
    if (!ready) {
        mr_error_destroy(deferred);
        mr_error_destroy(lost);
    }
    if (scratch != few) free(scratch);
    return ready ? MR_OK : no_memory("restore");
}

void mr_virtual_checkpoint_drop(mr_machine *machine, mr_checkpoint *c) {
    vgpu *gpu = vgpu_of(machine);
    if (!c) return;
    if (!c->gpu) {
        release(c);
        return;
    }
    while (gpu->newest_checkpoint != c) pop(gpu);
    pop(gpu);
}

void mr_virtual_checkpoint_forget(mr_machine *machine, mr_checkpoint *keep) {
    vgpu *gpu = vgpu_of(machine);
    mr_checkpoint *old = keep->below;
    if (!keep->gpu || !old) return;
    keep->below = NULL;
    size_t down = mr_undo_forget(&gpu->undo, keep->undo_mark);
    for (mr_checkpoint *c = gpu->newest_checkpoint; c; c = c->below) c->undo_mark -= down;
    while (old) {
        mr_checkpoint *below = old->below;
        retire(gpu, old);
        old = below;
    }
}

size_t mr_virtual_checkpoint_bytes(mr_machine *machine) {
    const vgpu *gpu = vgpu_of(machine);
    if (gpu->undo.failed) return SIZE_MAX;
    return gpu->checkpoint_bytes + mr_undo_bytes(&gpu->undo);
}
