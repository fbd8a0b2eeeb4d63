/* A race as a sentence for a person. */
#include "ptx/watch/state.h"

#include <inttypes.h>

#include "base/buffer.h"
#include "base/text.h"

static void put_triple(mr_buffer *out, uint64_t linear, const uint32_t size[3]) {
    uint64_t plane = (uint64_t)size[0] * size[1];
    mr_buffer_printf(out, "(%" PRIu64 ",%" PRIu64 ",%" PRIu64 ")", linear % size[0],
                     linear % plane / size[0], linear / plane);
}

static void put_thread(mr_buffer *out, const ptx_race_side *side, const mr_ptx_launch *launch) {
    mr_buffer_puts(out, "thread ");
    put_triple(out, 32 * (uint64_t)side->warp + side->lane, launch->block);
}

static void put_block(mr_buffer *out, const ptx_race_side *side, const mr_ptx_launch *launch) {
    mr_buffer_puts(out, " of block ");
    put_triple(out, side->block, launch->grid);
}

static const char *verb(const ptx_race_side *side) {
    if (side->atomic && side->access == (MR_PTX_READS | MR_PTX_WRITES)) return "atomically changes";
    if (side->atomic)
        return side->access & MR_PTX_WRITES ? "atomically writes" : "atomically reads";
    return side->access & MR_PTX_WRITES ? "writes" : "reads";
}

static void put_memory(mr_buffer *out, const ptx_tree *tree, const ptx_race *race,
                       const mr_ptx_launch *launch) {
    const mr_ptx_memory *memory = &launch->memory;
    mr_ptx_range range;
    if (race->space == PTX_SHARED) {
        const char *name =
            tree && launch->kernel ? mr_ptx_shared_name(launch->kernel, race->address) : NULL;
        mr_buffer_printf(out, "byte %" PRIu64 " of shared memory", race->address);
        if (name) mr_buffer_printf(out, " (`%s`)", name);
    } else if (memory->find && memory->describe &&
               memory->find(memory->context, race->address, &range)) {
        char text[200];
        memory->describe(memory->context, race->address, 0, text, sizeof text);
        mr_buffer_puts(out, text);
    } else {
        mr_buffer_printf(out, "global memory at 0x%" PRIx64, race->address);
    }
}

/* The column tells apart what stands on one line. It is that of the kernel's text, as in a compiler's messages. */
static bool needs_column(const ptx_race *race) {
    const ptx_instruction *a = race->first.instruction, *b = race->second.instruction;
    return a && b && a->place.outer_file == b->place.outer_file &&
           a->place.outer_line == b->place.outer_line &&
           a->place.outer_column != b->place.outer_column;
}

static void put_place(mr_buffer *out, const ptx_race *race, const ptx_race_side *side,
                      const ptx_tree *tree) {
    char text[200];
    if (!side->instruction || !tree) return;
    const ptx_place *place = &side->instruction->place;
    mr_buffer_printf(out, " at %s", ptx_place_text(tree, place, text, sizeof text));
    if (place->outer_column && needs_column(race))
        mr_buffer_printf(out, ", column %u", (unsigned)place->outer_column);
}

/* Where the further pairs meet, if that is one tensor, or shared memory. */
static void put_range(mr_buffer *out, const ptx_race *race, const mr_ptx_launch *launch) {
    const mr_ptx_memory *memory = &launch->memory;
    mr_ptx_range range = {0};
    bool is_shared = race->space == PTX_SHARED;
    if (race->least == race->address && race->end == race->address + race->bytes) return;
    if (!is_shared && !(memory->find && memory->find(memory->context, race->least, &range) &&
                        race->end <= range.end))
        return;
    mr_buffer_printf(out, ", all in bytes %" PRIu64 "..%" PRIu64, race->least - range.first,
                     race->end - 1 - range.first);
}

static void put_race(mr_buffer *out, const ptx_tree *tree, const ptx_race *race,
                     const mr_ptx_launch *launch) {
    const ptx_race_side *first = &race->first, *second = &race->second;
    mr_buffer_printf(out, "race in kernel `%s`: ", ptx_launch_name(launch));
    put_thread(out, first, launch);
    put_block(out, first, launch);
    mr_buffer_printf(out, " %s ", verb(first));
    put_memory(out, tree, race, launch);
    put_place(out, race, first, tree);
    mr_buffer_puts(out, ", and ");
    put_thread(out, second, launch);
    if (first->block != second->block) put_block(out, second, launch);
    mr_buffer_printf(out, " %s it", verb(second));
    put_place(out, race, second, tree);
    if (race->same_value) mr_buffer_puts(out, " (the same value: CUDA still calls it a race)");
    mr_buffer_puts(out, "; nothing orders the two");
    if (race->count) {
        bool is_wider = race->most_apart > race->apart;
        const char *apart = race->most_apart == PTX_APART_BLOCKS ? "blocks" : "warps";
        mr_buffer_printf(out, " (and %" PRIu64 " more pair%s%s%s", race->count,
                         race->count == 1 ? "" : "s", is_wider ? ", also of different " : "",
                         is_wider ? apart : "");
        put_range(out, race, launch);
        mr_buffer_puts(out, ")");
    }
}

const char *mr_ptx_race_text(const mr_ptx_watch *watch, const ptx_race *race,
                             const mr_ptx_launch *launch, char *out, size_t size) {
    mr_buffer text = {0};
    put_race(&text, watch->module ? mr_ptx_module_tree(watch->module) : NULL, race, launch);
    mr_text_copy(out, size, text.data && !text.failed ? text.data : "race (memory is out)");
    mr_buffer_free(&text);
    return out;
}
