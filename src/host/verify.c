/* Replays a script's commands: see verify.h. */
#include "host/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host/call.h"
#include "host/verdict.h"
#include "model/backend.h"
#include "program/program.h"

#define MOST_ITEMS 1000000 /* some hundred bytes each; longer scripts are not replayed */

static struct {
    bool say;
    const mr_machine *machine; /* the script's */
    mr_recorder *recorder;
    const mr_backend *backend;
    mr_player_options options;
    mr_verdict verdict;
} verify;

void mr_verify_begin(mr_machine *machine, const mr_machine_options *options, mr_hazard *hazard) {
    const char *wanted = getenv("MILLRACE_VERIFY_REPLAY");
    if (!wanted || !*wanted || !machine->backend->simulator) return;
    verify.say = strcmp(wanted, "say") == 0;
    unsetenv("MILLRACE_VERIFY_REPLAY");
    verify.options =
        (mr_player_options){.backend = machine->backend, .memory_limit = options->memory_limit};
    mr_status status = mr_program_record(machine, MOST_ITEMS, &verify.recorder);
    if (status) mr_host_complain("not recorded: %s", status->message);
    else mr_verdict_begin(&verify.verdict, hazard, verify.recorder);
    verify.machine = machine;
    mr_error_destroy(status);
}

static void complain(const mr_program *program, const mr_difference *d) {
    if (d->item >= mr_program_count(program)) {
        mr_host_complain("the replay differs: %s", d->text);
        return;
    }
    mr_program_item item = mr_program_item_at(program, d->item);
    mr_host_complain("the replay differs at item %zu of %zu, %s (%s) at %s:%d, #%" PRIu64 ": %s",
                     d->item + 1, mr_program_count(program), item.name ? item.name : "?",
                     mr_command_kinds[item.kind].name, item.where.file ? item.where.file : "?",
                     item.where.line, item.seq, d->text);
}

static bool compare_verdicts(const mr_program *program, const mr_verdict *replayed) {
    char text[800];
    /* Where the script's checker judged calls as they are written, that of the replay judges the launches. */
    if (!verify.machine->observing.wrote &&
        mr_verdict_differs(&verify.verdict, replayed, text, sizeof text)) {
        mr_host_complain("the replay differs: %s", text);
        return true;
    }
    if (verify.say)
        mr_host_complain("replayed: %zu items, %zu hazards found, checker on %zu times",
                         mr_program_count(program), replayed->found.count, verify.verdict.checks);
    return false;
}

static bool play(const mr_program *program, mr_player *player) {
    mr_difference difference = {0};
    mr_verdict replayed = {0};
    mr_status status = mr_verdict_play(&verify.verdict, player, &replayed, &difference);
    if (!status && difference.kind == MR_DIFFERS_NOTHING)
        mr_player_compare_end(player, &difference);
    bool differs = true;
    if (difference.kind != MR_DIFFERS_NOTHING) complain(program, &difference);
    else if (status) mr_host_complain("the replay failed: %s", status->message);
    else differs = compare_verdicts(program, &replayed);
    mr_verdict_end(&replayed);
    mr_error_destroy(status);
    return differs;
}

static bool replay(const mr_program *program) {
    mr_player *player;
    const char *reason = mr_program_inexact(program);
    if (reason) {
        if (verify.say) mr_host_complain("not replayed: %s", reason);
        return false;
    }
    mr_status status = mr_player_open(program, &verify.options, &player);
    if (status) {
        mr_host_complain("the replay failed: %s", status->message);
        mr_error_destroy(status);
        return true;
    }
    bool differs = play(program, player);
    mr_player_close(player);
    return differs;
}

bool mr_verify_end(void) {
    mr_program *program;
    mr_recorder *recorder = verify.recorder;
    bool differs = false;
    verify.recorder = NULL;
    if (!recorder) return false;
    mr_status status = mr_recorder_finish(recorder, &program);
    if (!status) {
        differs = replay(program);
        mr_program_release(program);
    } else if (verify.say) {
        mr_host_complain("not replayed: %s", status->message);
    }
    mr_error_destroy(status);
    mr_verdict_end(&verify.verdict);
    return differs;
}
