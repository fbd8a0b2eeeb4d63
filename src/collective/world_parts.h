/* Shared by the files of a world: world.c (rounds), far.c (calls of other ranks), move.c (bytes), world_group.c, link.c
 * (messages). */
#ifndef MR_COLLECTIVE_WORLD_PARTS_H
#define MR_COLLECTIVE_WORLD_PARTS_H

#include "base/buffer.h"
#include "collective/calls.h"
#include "collective/world.h"

/* The world itself is group 0. */
typedef struct {
    uint32_t number, size;
    uint32_t ranks[MR_MEETING_MOST];
    mr_comm *comms[MR_MEETING_MOST]; /* one reference each */
} world_group;

/* A stream that stands for one of another rank. */
typedef struct {
    uint32_t rank, id;
    mr_stream *stream; /* one reference */
} far_stream;

typedef struct {
    void *bytes; /* from malloc */
    size_t size;
} early_message;

typedef struct mr_world {
    mr_collectives *c;
    mr_fabric *fabric;
    double timeout;
    uint32_t round;                /* the current round, or the last one */
    uint64_t ended;                /* ranks, as bits */
    mr_status failure;             /* the error of every later call */
    uint64_t clocks[2];            /* of this host, while another one submits */
    bool failed;                   /* the script has */
    bool is_away;                  /* it does */
    mr_site last[MR_MEETING_MOST]; /* the last known place of each rank */
    MR_VEC(world_group *) groups;
    MR_VEC(far_stream) streams;
    /* On real devices only. */
    mr_device *device;  /* of this process; NULL: devices are simulated */
    mr_tensor *nothing; /* its views stand for the tensors of other ranks */
    MR_VEC(early_message)
    /* by rank: messages that came while the host waited for its device */
    early[MR_MEETING_MOST];
    early_message handed[MR_MEETING_MOST]; /* by rank: its MESSAGE_LAST; no bytes: none */
} mr_world;

typedef enum {
    MESSAGE_ROUND = 1,
    MESSAGE_DATA,
    MESSAGE_FAILED,
    MESSAGE_GROUP,
    MESSAGE_LAST /* what a rank hands over at its end */
} message_kind;

/* A message that is read: all reads beyond its end give zeros, and `fine` is false then. */
typedef struct {
    char *bytes; /* from malloc */
    size_t size, at;
    bool fine;
} message;

void mr_message_add(mr_buffer *out, uint64_t number);
void mr_message_add_text(mr_buffer *out, const char *text); /* NULL stays NULL */
uint64_t mr_message_number(message *in);
const char *mr_message_text(message *in);

/* link.c */
/* Takes the buffer's contents. */
mr_status mr_world_send(mr_world *world, uint32_t to, mr_buffer *bytes);
/* Waits for the next message of a rank, which the caller frees. If the rank has ended or failed, *out_message has no
 * bytes, and `ended` or `failure` is set. */
mr_status mr_world_receive(mr_world *world, uint32_t from, message *out_message);

/* Reads the messages that have arrived, without waiting, and notes a failure. */
void mr_world_look(mr_world *world);
/* Tells all other ranks that have not ended. */
void mr_world_tell_failure(mr_world *world, mr_code code, const char *text);

/* watch.c: real devices. */
/* Connects the processes of a group, which all ranks of the world make now: see mr_world_group. */
mr_status mr_world_connect(mr_world *world, world_group *group);
/* Ends all work of communicators after the failure of a rank. Idempotent. */
void mr_world_abort(mr_world *world);
void mr_world_disconnect(mr_world *world); /* closes the backend's part of all groups */

/* world_group.c */
void mr_world_free_group(world_group *group);
mr_status mr_world_make_group(mr_world *world, uint32_t number, const uint32_t *ranks,
                              uint32_t count, world_group **out_group);
/* Makes the group if it does not exist. INVALID_ARGUMENT: it exists with other ranks than `asking` has. */
mr_status mr_world_find_group(mr_world *world, uint32_t number, const uint32_t *ranks,
                              uint32_t count, uint32_t asking, world_group **out_group);

/* far.c: writes a call as bytes, and makes a call from the bytes of another rank. */
void mr_far_write(const mr_world *world, const pending_call *call, mr_buffer *out);
mr_status mr_far_read(mr_world *world, uint32_t from, message *in, pending_call *out_call);

/* move.c: see mr_hosts. */
mr_status mr_world_meet(mr_collectives *collectives, mr_meeting *meeting,
                        mr_command *const *commands, const uint32_t *hosts, uint32_t own);

#endif
