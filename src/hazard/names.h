/* Names of streams, events, memory and places for the user, and expressions that a script can use. */
#ifndef MR_HAZARD_NAMES_H
#define MR_HAZARD_NAMES_H

#include "hazard/log.h"
#include "hazard/order.h"
#include "hazard/reports.h"

typedef struct {
    const char *prompt; /* how names of entries of a prompt begin, or NULL */
    const char *script; /* the file that is run, or NULL; its folder has that many bytes */
    size_t folder_size; /* with the '/' */
} names_part;

#define NAME_SIZE 64
/* The stream's name in texts. */
void mr_hazard_stream_text(const checker *c, const actor *a, char *out, size_t size);
/* An expression that leads to it at that place: a variable, or the function of a default stream.
 * mr.current_stream() leads to it right in front of the call of the pair's second (`pair` may be NULL). False: there is
 * none. */
bool mr_hazard_stream_code(const checker *c, const found_pair *pair, const actor *a,
                           const mr_script_spot *spot, char *out, size_t size);
#define MR_HAZARD_CURRENT "mr.current_stream()"
/* The same of a stream that may have been closed since that place. */
bool mr_hazard_closed_code(const checker *c, const actor *a, const mr_script_spot *spot, char *out,
                           size_t size);
/* The current stream at a place right before pair->second_where, of the host whose names are asked for (hooks.as_host);
 * NULL: it has no device. */
const mr_stream *mr_hazard_current_before(const checker *c, const found_pair *pair);
/* Whether that host is a rank and the device is its own. Then a line without the device's number is right for all
 * ranks. */
bool mr_hazard_is_own_device(const checker *c, int device);
/* The same of an event. */
const char *mr_hazard_event_text(const log_line *line, char *out, size_t size);
bool mr_hazard_event_code(const checker *c, uint32_t id, const mr_script_spot *spot, char *out,
                          size_t size);
/* An expression for the work of a collective that has this event. */
bool mr_hazard_work_code(const checker *c, const mr_event *event, const mr_script_spot *spot,
                         char *out, size_t size);
/* "f32[100]": the tensor that the second accesses; "" for a free. */
const char *mr_hazard_signature(const found_pair *pair, char *out, size_t size);
void mr_hazard_tensor_text(const checker *c, const found_pair *pair, char *out, size_t size);
bool mr_hazard_tensor_code(const checker *c, const found_pair *pair, const mr_script_spot *spot,
                           char *out, size_t size);
/* "race.lua:3"; without the room for it, "...ce.lua:3". With PLACE_SIZE bytes it is always whole. */
#define PLACE_SIZE (MR_LONGEST_NAME + 16)
const char *mr_hazard_place(mr_site where, char *out, size_t size);
/* Whether `end` is the file's name, or its last part after a '/': "race.lua" of "examples/race.lua". */
bool mr_hazard_file_ends(const char *file, const char *end);
/* The script's folder, with the '/'; "": there is none, or its name is too long. */
void mr_hazard_folder(const checker *c, char *out, size_t size);
/* Whether it is an entry at the prompt: "mr:7", in which 7 is not a line. */
bool mr_hazard_is_entry(const checker *c, const char *file);
/* The storage's name in texts: its own name, a variable that holds it, or its kind. */
void mr_hazard_storage_text(const checker *c, const mr_storage *storage, char *out, size_t size);

#endif
