/* Replays what a script has done: see verify.h. */
#include "host/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host/call.h"
#include "model/backend.h"
#include "program/program.h"

#define MOST_ITEMS 400000 /* some hundred bytes each; longer scripts are not replayed */

static struct {
    bool say;
    mr_recorder *recorder;
    const mr_backend *backend;
    mr_player_options options;
} verify;

void mr_verify_begin(mr_machine *machine, const mr_machine_options *options) {
    const char *wanted = getenv("MILLRACE_VERIFY_REPLAY");
    if (!wanted || !*wanted || !machine->backend->simulator) return;
    verify.say = strcmp(wanted, "say") == 0;
    unsetenv("MILLRACE_VERIFY_REPLAY");
    verify.options =
        (mr_player_options){.backend = machine->backend, .memory_limit = options->memory_limit};
    mr_status status = mr_program_record(machine, MOST_ITEMS, &verify.recorder);
    if (status) mr_host_complain("not recorded: %s", status->message);
    mr_error_destroy(status);
}

static bool complain(const mr_program *program, const mr_difference *d) {
    if (d->item >= mr_program_count(program)) {
        mr_host_complain("the replay differs: %s", d->text);
        return true;
    }
    mr_program_item item = mr_program_item_at(program, d->item);
    mr_host_complain("the replay differs at item %zu of %zu, %s (%s) at %s:%d, #%" PRIu64 ": %s",
                     d->item + 1, mr_program_count(program), item.name ? item.name : "?",
                     mr_command_kinds[item.kind].name, item.where.file ? item.where.file : "?",
                     item.where.line, item.seq, d->text);
    return true;
}

static bool replay(const mr_program *program) {
    mr_difference difference;
    const char *reason = mr_program_inexact(program);
    if (reason) {
        if (verify.say) mr_host_complain("not replayed: %s", reason);
        return false;
    }
    mr_status status = mr_program_replay(program, &verify.options, NULL, &difference);
    bool differs = difference.kind != MR_DIFFERS_NOTHING;
    if (differs) complain(program, &difference);
    else if (status) mr_host_complain("the replay failed: %s", status->message);
    else if (verify.say) mr_host_complain("replayed: %zu items", mr_program_count(program));
    differs = differs || status;
    mr_error_destroy(status);
    return differs;
}

bool mr_verify_end(void) {
    mr_program *program;
    mr_recorder *recorder = verify.recorder;
    verify.recorder = NULL;
    if (!recorder) return false;
    mr_status status = mr_recorder_finish(recorder, &program);
    if (status) {
        if (verify.say) mr_host_complain("not replayed: %s", status->message);
        mr_error_destroy(status);
        return false;
    }
    bool differs = replay(program);
    mr_program_release(program);
    return differs;
}
