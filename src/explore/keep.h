/* Keeps the state outside a function that the function can change, and restores it: the bytes of existing memory, the
 * current device and streams, peer access, and launch-blocking. */
#ifndef MR_EXPLORE_KEEP_H
#define MR_EXPLORE_KEEP_H

#include "base/status.h"
#include "model/machine.h"

typedef struct mr_explore_keeper mr_explore_keeper;

/* From now on saves the bytes of each existing storage before a command changes them. */
mr_status mr_explore_keep(mr_machine *machine, mr_explore_keeper **out_keeper);
/* Puts them back, as often as wanted. All devices must be idle. Freed memory stays freed. OUT_OF_MEMORY: some could not
 * be kept. */
mr_status mr_explore_put_back(mr_explore_keeper *keeper);
/* Whether an object was there when the keeping began. */
bool mr_explore_had_storage(const mr_explore_keeper *keeper, const mr_storage *storage);
bool mr_explore_had_stream(const mr_explore_keeper *keeper, const mr_stream *stream);
bool mr_explore_had_event(const mr_explore_keeper *keeper, const mr_event *event);
/* The function is about to free or close such an object: `what` is "frees a tensor". Returns the error of that call.
 * The next restore fails, too, because the function may have caught the error. */
/* A kernel that may call printf was launched. */
bool mr_explore_may_print(const mr_explore_keeper *keeper);
mr_status mr_explore_refuse_end(mr_explore_keeper *keeper, const char *what, mr_site where);
void mr_explore_let_go(mr_explore_keeper *keeper); /* accepts NULL; before the machine is closed */

#endif
