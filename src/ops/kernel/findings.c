/* Findings of a launch: see kernel_findings.h. They are a note of the command's body. A simulator that goes back to a
 * checkpoint drops the notes: such a launch runs on unwatched, since blocks that the watch has seen run again. */
#include "ops/kernel/findings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "model/observer.h"
#include "ops/kernel_memory.h"
#include "ops/kernel/touched.h"
#include "ptx/watch/watch.h"

typedef struct {
    mr_ptx_unset_read what;
    char *text;
} unset_read;

typedef struct {
    const mr_storage *storage;
    uint8_t *bits;
} unset_bits;

typedef struct {
    mr_ptx_watch *watch;
    mr_touched_marks *touched; /* NULL: not wanted */
    MR_VEC(unset_bits) unset;  /* by operand; set up before the first block */
    pthread_mutex_t lock;      /* guards the list: blocks run on several threads */
    MR_VEC(unset_read) unset_reads;
    atomic_bool strayed;
} findings;

/* ---- the note */

static mr_body_note *note_of(const mr_command *command) {
    mr_machine *machine = command->machine;
    for (size_t i = 0; i < machine->bodies.notes.count; i++)
        if (machine->bodies.notes.items[i].command == command)
            return &machine->bodies.notes.items[i];
    return NULL;
}

static findings *findings_of(const mr_command *command) {
    const mr_body_note *note = note_of(command);
    return note ? note->data : NULL;
}

static void drop_note(const mr_command *command) {
    mr_machine *machine = command->machine;
    mr_body_note *note = note_of(command);
    if (!note) return;
    note->destroy(note->data);
    *note = machine->bodies.notes.items[--machine->bodies.notes.count];
}

static void destroy_findings(void *data) {
    findings *f = data;
    mr_ptx_watch_destroy(f->watch);
    mr_touched_marks_destroy(f->touched);
    for (size_t i = 0; i < f->unset.count; i++) free(f->unset.items[i].bits);
    for (size_t i = 0; i < f->unset_reads.count; i++) free(f->unset_reads.items[i].text);
    mr_vec_free(&f->unset);
    mr_vec_free(&f->unset_reads);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static bool knows_storage(const findings *f, const mr_storage *storage) {
    for (size_t i = 0; i < f->unset.count; i++)
        if (f->unset.items[i].storage == storage) return true;
    return false;
}

static void ask_unset(findings *f, const mr_command *command) {
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_storage *storage = command->operands[i].tensor->storage;
        if (knows_storage(f, storage)) continue;
        unset_bits bits = {storage, mr_observers_unset(command->machine, command, storage)};
        if (bits.bits && !mr_vec_push(&f->unset, bits)) free(bits.bits);
    }
}

static findings *make_findings(const mr_command *command) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    findings *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    pthread_mutex_init(&f->lock, NULL);
    f->watch = mr_ptx_watch_create(a->code->ptx, mr_kernel_blocks(a),
                                   a->block[0] * a->block[1] * a->block[2]);
    if (!f->watch) {
        destroy_findings(f);
        return NULL;
    }
    ask_unset(f, command);
    f->touched = mr_touched_marks_create(command, f->watch);
    return f;
}

static void tell_kind(const mr_command *command, mr_finding_kind kind) {
    mr_observers_tell_finding(command->machine, command, &(mr_kernel_finding){.kind = kind});
}

void mr_kernel_findings_begin(const mr_command *command, bool looks) {
    drop_note(command); /* of a run that was given up */
    if (!mr_observers_want_findings(command->machine)) return;
    mr_body_note note = {command, looks ? make_findings(command) : NULL, destroy_findings};
    if (note.data && mr_vec_push(&command->machine->bodies.notes, note)) return;
    if (note.data) destroy_findings(note.data);
    tell_kind(command, MR_FINDING_NOT_LOOKED);
}

/* ---- while blocks run */

uint8_t *mr_kernel_findings_unset(const mr_command *command, const mr_storage *storage) {
    const findings *f = findings_of(command);
    for (size_t i = 0; f && i < f->unset.count; i++)
        if (f->unset.items[i].storage == storage) return f->unset.items[i].bits;
    return NULL;
}

static bool same_place(const ptx_place *a, const ptx_place *b) {
    return a->outer_file == b->outer_file && a->outer_line == b->outer_line &&
           a->outer_column == b->outer_column;
}

/* The first finding of a place and kind of memory is kept. */
static void note_unset_read(void *context, const mr_ptx_unset_read *what) {
    findings *f = findings_of(context);
    if (!f) return;
    pthread_mutex_lock(&f->lock);
    bool is_known = false;
    for (size_t i = 0; i < f->unset_reads.count && !is_known; i++) {
        const mr_ptx_unset_read *known = &f->unset_reads.items[i].what;
        is_known = known->space == what->space &&
                   same_place(&known->instruction->place, &what->instruction->place);
    }
    unset_read read = {*what, is_known ? NULL : strdup(what->text)};
    if (read.text && !mr_vec_push(&f->unset_reads, read)) free(read.text);
    pthread_mutex_unlock(&f->lock);
}

static void note_stray(void *context) {
    findings *f = findings_of(context);
    if (f) atomic_store(&f->strayed, true);
}

void mr_kernel_findings_attach(const mr_command *command, mr_ptx_launch *launch) {
    const findings *f = findings_of(command);
    if (!f) return;
    launch->watch = f->watch;
    launch->unset_read = note_unset_read;
    launch->strayed = note_stray;
}

/* ---- telling */

static mr_kernel_place place_of(const mr_command *command, const ptx_instruction *i) {
    const ptx_tree *tree = mr_ptx_module_tree(mr_kernel_arguments_of(command)->code->ptx);
    const char *file = tree->files[i->place.outer_file];
    return (mr_kernel_place){{mr_intern(&command->machine->files, file, strlen(file), "kernel"),
                              (int)i->place.outer_line},
                             i->place.outer_column};
}

/* Where the bytes lie, in terms of the script. */
static void fill_memory(const mr_command *command, ptx_space space, uint64_t address,
                        uint32_t bytes, mr_kernel_finding *finding) {
    const mr_ptx_kernel *kernel = mr_kernel_arguments_of(command)->kernel;
    if (space == PTX_GLOBAL) finding->storage = mr_kernel_storage_at(command, address);
    if (space == PTX_SHARED) finding->variable = mr_ptx_shared_name(kernel, address);
    finding->first_byte = address - (finding->storage ? finding->storage->address : 0);
    finding->last_byte = finding->first_byte + bytes - 1;
}

static void tell_race(const mr_command *command, const mr_ptx_watch *watch, const ptx_race *race,
                      const mr_ptx_launch *launch) {
    char why[500];
    mr_kernel_finding finding = {
        .kind = MR_FINDING_RACE,
        .first_access = race->first.access,
        .second_access = race->second.access,
        .first = place_of(command, race->first.instruction),
        .second = place_of(command, race->second.instruction),
        .count = race->count,
        .why = mr_ptx_race_text(watch, race, launch, why, sizeof why),
        .advice = race->advice,
    };
    fill_memory(command, race->space, race->address, race->bytes, &finding);
    mr_observers_tell_finding(command->machine, command, &finding);
}

static void tell_unset_read(const mr_command *command, const unset_read *read) {
    mr_kernel_finding finding = {
        .kind = MR_FINDING_UNSET_READ,
        .second_access = MR_READ,
        .first = {command->where, 0},
        .second = place_of(command, read->what.instruction),
        .why = read->text,
        .advice = "write the bytes before they are read, or do not use what was read",
    };
    fill_memory(command, read->what.space, read->what.address, read->what.bytes, &finding);
    mr_observers_tell_finding(command->machine, command, &finding);
}

/* Another thread of the launch writes the bytes, in a race that is reported. So the bytes are not unwritten by
 * mistake. */
static bool is_of_a_race(const findings *f, const unset_read *read) {
    const ptx_place *place = &read->what.instruction->place;
    for (uint32_t i = 0; i < mr_ptx_watch_race_count(f->watch); i++) {
        const ptx_race *race = mr_ptx_watch_race(f->watch, i);
        if (race->space != read->what.space) continue;
        bool reads_first = same_place(&race->first.instruction->place, place) &&
                           (race->second.access & MR_PTX_WRITES);
        bool reads_second = same_place(&race->second.instruction->place, place) &&
                            (race->first.access & MR_PTX_WRITES);
        if (reads_first || reads_second) return true;
    }
    return false;
}

void mr_kernel_findings_tell(const mr_command *command, const mr_ptx_launch *launch, bool is_done) {
    const findings *f = findings_of(command);
    if (!f) return;
    for (uint32_t i = 0; i < mr_ptx_watch_race_count(f->watch); i++)
        tell_race(command, f->watch, mr_ptx_watch_race(f->watch, i), launch);
    for (size_t i = 0; i < f->unset_reads.count; i++)
        if (!is_of_a_race(f, &f->unset_reads.items[i]))
            tell_unset_read(command, &f->unset_reads.items[i]);
    if (f->strayed) tell_kind(command, MR_FINDING_STRAYED);
    if (mr_ptx_watch_stopped(f->watch)) tell_kind(command, MR_FINDING_NOT_LOOKED);
    else {
        if (mr_ptx_watch_order_matters(f->watch)) tell_kind(command, MR_FINDING_ORDER);
        mr_touched_marks_tell(f->touched, command, is_done);
    }
    drop_note(command);
}
