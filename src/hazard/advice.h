/* Advice: superfluous waits, records and synchronisations, and copies that wait although the script did not ask for
 * it. */
#ifndef MR_HAZARD_ADVICE_H
#define MR_HAZARD_ADVICE_H

#include "base/map.h"
#include "hazard/order.h"

/* A line that waits, records or synchronises the device. It is superfluous only if it never had an effect, which is
 * known at the end. */
typedef struct {
    mr_site where;
    mr_command_id kind; /* MR_COMMAND_WAIT, RECORD or DEVICE_SYNC */
    bool needed;        /* at some occurrence */
    bool fresh;         /* it occurred since the last clear */
    bool told;
    bool recorded;     /* a wait: its event had been recorded, at some occurrence */
    bool idle;         /* a wait: its stream did nothing after it, at some occurrence */
    uint64_t seq;      /* of the first occurrence */
    uint64_t count;    /* occurrences */
    int busy;          /* a device synchronise: the most streams that it waited for */
    uint32_t producer; /* and the stream whose work was used after it; 0: none so far */
    const char *op;
    char stream[64], event[80], of[64]; /* `of`: whose record it was */
} advice_place;

typedef struct {
    bool on;
    struct {
        /* an asynchronous pageable copy: advice unless a synchronise follows at once */
        bool pending;
        uint32_t stream;
        mr_site where;
        uint64_t seq;
    } pageable;
    MR_VEC(advice_place) places; /* in the order of the first occurrence */
    MR_MAP(uint32_t) at;         /* by a hash of the place */
} advice_part;

/* Called only with c->advice.on. `carries`: see mr_hazard_order_before. */
void mr_hazard_advise_command(checker *c, const mr_command *command);
bool mr_hazard_advise_carries(const checker *c, const actor *t); /* for a legacy command */
/* Whether a wait of `t` for this record would order `t` after a command that it is not ordered after yet. */
bool mr_hazard_advise_news(const checker *c, const actor *t, const snapshot *s);
void mr_hazard_advise_wait(checker *c, const mr_command *command, bool added, bool carries);
/* Called before the host's wait, or a query that says yes, takes effect. */
void mr_hazard_advise_sync(checker *c, const mr_command *command);
/* The stream does something after its last wait, or another command relies on that wait. */
void mr_hazard_advise_active(checker *c, actor *a);
void mr_hazard_advise_record(checker *c, const mr_command *command, bool carries);
void mr_hazard_advise_used(checker *c, const snapshot *s);
void mr_hazard_advise_needed(checker *c, const actor *first, uint64_t seq);
/* in_flight.c: `own` may begin before `before` on its device, and after it on the other device. */
void mr_hazard_advise_in_flight(checker *c, const in_flight *own, const in_flight *before,
                                int other_device);
void mr_hazard_advice_clear(checker *c);
void mr_hazard_advice_forget(checker *c);
void mr_hazard_advice_end(checker *c); /* the checker is switched off: nothing follows */

#endif
