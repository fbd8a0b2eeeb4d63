/* The recorder, private to this folder. record.c observes the machine and makes the items; objects.c numbers the
 * objects that they refer to; captures.c copies what the host has written. */
#ifndef MR_PROGRAM_RECORDER_H
#define MR_PROGRAM_RECORDER_H

#include "program/state.h"

/* Bytes that the host is writing, or may be. */
typedef struct {
    const mr_storage *storage;
    uint32_t slot;  /* all of a new storage; or NO_SLOT: */
    mr_tensor view; /* bytes that item `at` of `inner` or of the items writes */
    bool inner;
    size_t at;
} capture;

struct mr_recorder {
    mr_observer observer;
    mr_machine *machine;
    mr_program *program;
    slot_map streams, events, storages, views;
    slot_map functions;         /* seq of a host function's command: its item */
    MR_VEC(mr_storage *) alive; /* by slot; NULL: destroyed */
    MR_VEC(uint32_t) numbers;   /* by slot: see number.c; NO_SLOT: none yet */
    uint32_t next_number;
    MR_VEC(capture) captures;
    size_t most_items;
    const char *file, *own_file; /* of the last place, and the program's text for it */
    bool is_explored;            /* by its chooser */
    bool failed;                 /* memory was out */
    bool full;                   /* no more items */
};

/* objects.c. Without memory, each sets `failed` and returns NO_SLOT, NULL or NO_BLOB. */
char *mr_record_copy_text(mr_recorder *r, const char *text); /* the caller owns it */
uint32_t mr_record_text(mr_recorder *r, const char *text);
uint32_t mr_record_name(mr_recorder *r, const mr_name *name);
mr_site mr_record_site(mr_recorder *r, mr_site where);
/* The program is not exact, for this reason: the first one counts. */
void mr_record_inexact(mr_recorder *r, const char *reason, mr_site where);
/* Room for `size` more bytes. */
char *mr_record_bytes(mr_recorder *r, size_t size, blob *out);
blob mr_record_storage_bytes(mr_recorder *r, const mr_storage *storage);
/* The object's slot, which is made at its first use. `created`: by the present command, so it did not exist when the
 * recording began. A NULL stream has none. */
uint32_t mr_record_stream(mr_recorder *r, const mr_stream *stream, bool created);
uint32_t mr_record_event(mr_recorder *r, const mr_event *event, bool created);
uint32_t mr_record_storage(mr_recorder *r, mr_storage *storage, bool created);
uint32_t mr_record_view(mr_recorder *r, const mr_tensor *t);

/* number.c. Called for each item outside host functions; at the end storages are numbered by these calls. */
void mr_record_meet(mr_recorder *r, const item *it);
void mr_record_number(mr_recorder *r);

/* captures.c */
/* The host writes these bytes until the next call to the recorder. */
void mr_record_capture(mr_recorder *r, capture c);
/* Copies the captured bytes. `command`: the one told now, or NULL. */
void mr_record_flush(mr_recorder *r, const mr_command *command);

#endif
