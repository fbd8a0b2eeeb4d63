/* Failures of a launch: see fault.h. */
#include "ptx/run/fault.h"
#include "base/number.h"

#include <inttypes.h>
#include <stdio.h>

const char *ptx_thread_text(const ptx_run_state *run, uint32_t thread, char out[40]) {
    const uint32_t *size = run->launch->block;
    snprintf(out, 40, "(%u,%u,%u)", thread % size[0], thread / size[0] % size[1],
             thread / size[0] / size[1]);
    return out;
}

const char *ptx_block_text(const ptx_run_state *run, char out[40]) {
    const uint32_t *index = run->block.index;
    snprintf(out, 40, "(%u,%u,%u)", index[0], index[1], index[2]);
    return out;
}

const char *ptx_code_text(const ptx_run_state *run, const ptx_code *code, char *out, size_t size) {
    if (!code->source) {
        snprintf(out, size, "its end");
        return out;
    }
    return ptx_place_text(&run->module->tree, &code->source->place, out, size);
}

static void keep(ptx_warp *warp, const ptx_code *code, mr_code error, const char *who,
                 const char *format, va_list args) {
    char place[256], text[1024];
    mr_number_formatv(text, sizeof text, format, args);
    ptx_run_state *run = warp->run;
    warp->state = PTX_WARP_FAILED;
    if (run->failure) return;
    run->failure = mr_fail(error, "kernel `%s` at %s: %s%s", ptx_launch_name(run->launch),
                           ptx_code_text(run, code, place, sizeof place), who, text);
}

const ptx_code *ptx_fault(ptx_warp *warp, const ptx_code *code, unsigned lane, mr_code error,
                          const char *format, ...) {
    char thread[40], block[40], who[128];
    snprintf(who, sizeof who, "thread %s of block %s ",
             ptx_thread_text(warp->run, warp->number * PTX_LANES + lane, thread),
             ptx_block_text(warp->run, block));
    va_list args;
    va_start(args, format);
    keep(warp, code, error, who, format, args);
    va_end(args);
    return NULL;
}

const ptx_code *ptx_fault_block(ptx_warp *warp, const ptx_code *code, mr_code error,
                                const char *format, ...) {
    va_list args;
    va_start(args, format);
    keep(warp, code, error, "", format, args);
    va_end(args);
    return NULL;
}

void ptx_tell_unset(ptx_warp *warp, const ptx_code *code, const ptx_memory_code *memory,
                    unsigned lane, mr_ptx_unset_read read, const char *format, ...) {
    char thread[40], block[40], place[256], what[600], text[1100];
    ptx_run_state *run = warp->run;
    if (run->told_unset[memory->index]) return;
    run->told_unset[memory->index] = true;
    va_list args;
    va_start(args, format);
    mr_number_formatv(what, sizeof what, format, args);
    va_end(args);
    snprintf(text, sizeof text, "kernel `%s` at %s: thread %s of block %s %s",
             ptx_launch_name(run->launch), ptx_code_text(run, code, place, sizeof place),
             ptx_thread_text(run, warp->number * PTX_LANES + lane, thread),
             ptx_block_text(run, block), what);
    read.instruction = code->source;
    read.text = text;
    run->launch->unset_read(run->launch->context, &read);
}

const ptx_code *ptx_fault_memory(ptx_warp *warp) {
    warp->state = PTX_WARP_FAILED;
    if (!warp->run->failure) {
        warp->run->failure = mr_no_memory("for the blocks of a launch");
    }
    return NULL;
}
