/* A schedule of mr_explore on hardware. In a run of the function the device's streams wait for one another and for the
 * host, by the latches of the backend. So the commands are carried out in the schedule's order. */
#ifndef MR_EXPLORE_FOLLOW_H
#define MR_EXPLORE_FOLLOW_H

#include "explore/explore.h"

/* Runs the function once. Where a stream waits for `patience_ns` and nothing goes on, the schedule is given up. `why`:
 * "" if it was carried out in this order, else why it could not be, as part of a sentence; it has then run in some
 * order. NOT_SUPPORTED: a schedule that says more than the order of whole commands, or a device without latches. The
 * errors are else those of the subject. The subject's `run` has waited for all devices. */
mr_status mr_explore_follow(const mr_explore_subject *subject, const char *schedule,
                            uint64_t patience_ns, mr_explore_value *out_value, char *why,
                            size_t size);

#endif
