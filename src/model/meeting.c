#include "model/meeting.h"

#include <stdlib.h>
#include <string.h>

typedef enum { ALL, ROOT } whom;

static const struct {
    const char *text;
    uint8_t give, get; /* whom */
} collectives[] = {
#define X(id, text, give, get) {text, give, get},
    MR_COLLECTIVE_LIST(X)
#undef X
};

const char *mr_collective_text(mr_collective what) {
    return collectives[what].text;
}

const char *mr_redop_text(mr_redop redop) {
    static const char *const texts[] = {
#define X(id, text) text,
        MR_REDOP_LIST(X)
#undef X
    };
    return texts[redop];
}

bool mr_collective_reduces(mr_collective what) {
    return what == MR_COLLECTIVE_ALL_REDUCE || what == MR_COLLECTIVE_REDUCE ||
           what == MR_COLLECTIVE_REDUCE_SCATTER;
}

mr_meeting *mr_meeting_new(uint32_t size, uint32_t message_count) {
    mr_meeting *meeting = calloc(1, sizeof *meeting + size * sizeof *meeting->members +
                                        message_count * sizeof *meeting->messages);
    if (!meeting) return NULL;
    meeting->refs = 1;
    meeting->size = size;
    meeting->last = size - 1;
    meeting->message_count = message_count;
    meeting->messages = (mr_message *)(meeting->members + size);
    return meeting;
}

mr_meeting *mr_meeting_copy(const mr_meeting *meeting) {
    mr_meeting *copy = mr_meeting_new(meeting->size, meeting->message_count);
    if (!copy) return NULL;
    mr_message *messages = copy->messages;
    memcpy(copy, meeting, sizeof *copy + meeting->size * sizeof *meeting->members);
    memcpy(messages, meeting->messages, meeting->message_count * sizeof *messages);
    copy->refs = 1;
    copy->messages = messages;
    copy->link = NULL;
    copy->captured = NULL;
    for (uint32_t k = 0; k < copy->size; k++) copy->members[k].command = NULL;
    return copy;
}

void mr_meeting_release(mr_meeting *meeting) {
    if (!meeting || --meeting->refs) return;
    if (meeting->captured) meeting->captured->drop(meeting->captured);
    free(meeting);
}

void mr_meeting_find_sources(mr_meeting *meeting) {
    uint64_t all = mr_meeting_all(meeting);
    uint64_t root = (uint64_t)1 << meeting->root;
    bool exchange = meeting->what == MR_COLLECTIVE_EXCHANGE;
    for (uint32_t i = 0; i < meeting->size; i++) {
        bool gets = collectives[meeting->what].get == ALL || i == meeting->root;
        uint64_t givers = collectives[meeting->what].give == ALL ? all : root;
        meeting->members[i].from = gets && !exchange ? givers & ~((uint64_t)1 << i) : 0;
    }
    for (uint32_t k = 0; k < meeting->message_count; k++) {
        const mr_message *message = &meeting->messages[k];
        if (message->from != message->to)
            meeting->members[message->to].from |= (uint64_t)1 << message->from;
    }
}

bool mr_meeting_orders_all(const mr_meeting *meeting) {
    for (uint32_t i = 0; i < meeting->size; i++)
        if ((meeting->members[i].from | (uint64_t)1 << i) != mr_meeting_all(meeting)) return false;
    return true;
}
