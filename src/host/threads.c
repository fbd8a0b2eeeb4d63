/* Tells src/bind how this program keeps account of running threads (interrupt.h), for ranks. */
#include "host/threads.h"

#include <string.h>

#include "bind/bind.h"
#include "host/call.h"
#include "host/interrupt.h"

_Static_assert(sizeof(mr_running_place) <= sizeof(mr_thread_place), "a place fits");
_Static_assert(sizeof(mr_running) <= sizeof(mr_thread_node), "a node fits");

static void copy(mr_thread_place *out_place) {
    mr_running_place place;
    mr_running_copy(&place);
    memcpy(out_place, &place, sizeof place);
}

static void swap(mr_thread_place *io_place) {
    mr_running_place place;
    memcpy(&place, io_place, sizeof place);
    mr_running_swap(&place);
    memcpy(io_place, &place, sizeof place);
}

static void enter(mr_thread_node *node, lua_State *L) {
    mr_running_enter((mr_running *)node, L); /* the C stack is new: it is not used up */
}

static void leave(mr_thread_node *node) {
    mr_running_leave((mr_running *)node);
}

void mr_threads_open(lua_State *L) {
    static const mr_thread_hooks hooks = {copy, swap, enter, leave, mr_host_set_rank};
    mr_bind_threads(L, &hooks);
}
