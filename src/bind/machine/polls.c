/* Loops that ask for ever under the chooser `manual`: see polls.h. */
#include "bind/machine/polls.h"

#include <string.h>

#include "base/buffer.h"
#include "base/output.h"
#include "bind/hazard/hazard.h"
#include "bind/internal.h"
#include "model/backend.h"
#include "model/simulator.h"

#define MOST_NOES 100000 /* answers of no in a row, which take a tenth of a second */

static bool is_manual(const mr_machine *machine) {
    const mr_simulator *simulator = machine->backend->simulator;
    return simulator && strcmp(simulator->chooser((mr_machine *)machine), "manual") == 0;
}

static void say(lua_State *L, mr_site where) {
    mr_buffer text = {0};
    where = mr_hazard_shown(mr_bind_hazard(L), where);
    mr_buffer_printf(
        &text,
        "note: %s:%d has asked %d times, and the answer is no. Under the chooser manual "
        "the device does nothing by itself: mr.machine.step() (:step at the prompt) "
        "takes a step, and synchronize() waits\n",
        where.file ? where.file : "?", where.line, MOST_NOES);
    fflush(stdout);
    if (text.data) mr_output_write(stderr, text.data, text.size);
    mr_buffer_free(&text);
}

void mr_polls_note(lua_State *L, const mr_caller *caller, bool done) {
    mr_module *module = mr_module_of(L);
    if (done) module->noes = 0;
    else if (++module->noes == MOST_NOES && is_manual(caller->machine)) say(L, caller->where);
}

void mr_polls_stepped(lua_State *L) {
    mr_module_of(L)->noes = 0;
}
