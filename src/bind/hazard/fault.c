/* Failures of kernels name tensors; the device knows only their size and line. If a variable of the script holds such a
 * tensor, the message gets its name, as in reports of hazards.
 *
 * Easiest to break: the explorer compares messages of runs with and without Lua, so its messages get no names. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/explore_guard.h"
#include "bind/hazard/hazard.h"
#include "bind/internal.h"
#include "bind/open.h"
#include "ops/kernel_memory.h"

#define UNNAMED "a tensor (" /* how mr_kernel_describe_storage begins */

/* Replaces the first `old` in the text. Returns a new error, and destroys `status`. */
static mr_status replaced(mr_status status, const char *old, const char *new) {
    const char *at = strstr(status->message, old);
    return mr_error_reword(status, "%.*s%s%s", (int)(at - status->message), status->message, new,
                           at + strlen(old));
}

/* Several tensors can be made on one line. The place of the access tells them apart. */
static bool is_meant(const char *message, const mr_storage *s, const char *described) {
    char beside[280];
    const char *at = strstr(message, " at 0x");
    uint64_t address = at ? strtoull(at + strlen(" at "), NULL, 16) : 0;
    uint64_t end = s->address + s->bytes;
    if (address < s->address)
        snprintf(beside, sizeof beside, "%" PRIu64 " bytes before %s", s->address - address,
                 described);
    else if (address == end) snprintf(beside, sizeof beside, "just past the end of %s", described);
    else if (address > end)
        snprintf(beside, sizeof beside, "%" PRIu64 " bytes past the end of %s", address - end,
                 described);
    else snprintf(beside, sizeof beside, " of %s", described);
    return strstr(message, beside) != NULL;
}

static mr_status name_storage(lua_State *L, mr_status status, const mr_storage *storage) {
    char described[200], variable[80], named[sizeof described + sizeof variable];
    mr_hazard_object object = {.storage = storage};
    mr_kernel_describe_storage(storage, described, sizeof described);
    if (!is_meant(status->message, storage, described) ||
        !mr_bind_variable(L, &object, (mr_site){0}, variable, sizeof variable))
        return status;
    snprintf(named, sizeof named, "`%s`%s", variable, described + strlen(UNNAMED) - 2);
    return replaced(status, described, named);
}

mr_status mr_bind_name_fault(lua_State *L, mr_status status) {
    mr_module *module = mr_bind_module(L);
    if (!module || !module->machine || !strstr(status->message, UNNAMED) ||
        mr_explore_guard_is_busy(L))
        return status;
    mr_machine *machine = module->machine;
    /* bind/gcstress.h: a finalizer would change the list of storages. */
    machine->observing.telling++;
    for (const mr_storage *s = machine->objects.newest_storage; s; s = s->older)
        if (!s->name && s->epoch == machine->epoch) status = name_storage(L, status, s);
    machine->observing.telling--;
    return status;
}
