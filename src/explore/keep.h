/* What a function changes outside of itself, and putting it back: the bytes of memory that was there before. */
#ifndef MR_EXPLORE_KEEP_H
#define MR_EXPLORE_KEEP_H

#include "base/status.h"
#include "model/machine.h"

typedef struct mr_explore_keeper mr_explore_keeper;

/* From now on keeps the bytes of each storage that is there now, as they are before a command may change them. */
mr_status mr_explore_keep(mr_machine *machine, mr_explore_keeper **out_keeper);
/* Puts them back, as often as wanted. All devices must be idle. What has been freed stays freed. OUT_OF_MEMORY: some could
 * not be kept. */
mr_status mr_explore_put_back(mr_explore_keeper *keeper);
void mr_explore_let_go(mr_explore_keeper *keeper); /* accepts NULL; before the machine is closed */

#endif
