/* The races of a launch: one for each pair of instructions and space, which counts the others. */
#include <stdlib.h>

#include "ptx/watch/state.h"

bool ptx_race_collect(ptx_turn *turn, const ptx_race *found, const ptx_earlier *e, bool is_new) {
    mr_ptx_watch *w = turn->watch;
    uint64_t low = e->at < turn->at ? e->at : turn->at, high = e->at ^ turn->at ^ low;
    uint64_t key = low << 33 | high << 1 | turn->is_shared;
    uint64_t pairs = is_new ? (uint64_t)__builtin_popcount(e->lanes) : 0;
    ptx_race **known = mr_map_add(&w->pairs, key);
    if (known && *known) {
        (*known)->count += pairs;
        if (found->least < (*known)->least) (*known)->least = found->least;
        if (found->end > (*known)->end) (*known)->end = found->end;
        if (found->apart > (*known)->most_apart) {
            (*known)->most_apart = found->apart;
            (*known)->advice =
                found->advice; /* an operation that orders distant threads also orders near ones */
        }
        return true;
    }
    ptx_race *race = known && mr_vec_reserve_one(&w->races) ? malloc(sizeof *race) : NULL;
    if (!race) return false;
    w->races.items[w->races.count++] = race;
    *race = *found;
    race->count = pairs ? pairs - 1 : 0;
    *known = race;
    return true;
}

uint32_t mr_ptx_watch_race_count(const mr_ptx_watch *watch) {
    mr_ptx_watch *w = (mr_ptx_watch *)watch;
    pthread_mutex_lock(&w->lock);
    uint32_t count = (uint32_t)w->races.count;
    pthread_mutex_unlock(&w->lock);
    return count;
}

const ptx_race *mr_ptx_watch_race(const mr_ptx_watch *watch, uint32_t i) {
    mr_ptx_watch *w = (mr_ptx_watch *)watch;
    pthread_mutex_lock(&w->lock);
    const ptx_race *race = i < w->races.count ? w->races.items[i] : NULL;
    pthread_mutex_unlock(&w->lock);
    return race;
}

void ptx_races_free(mr_ptx_watch *watch) {
    for (size_t i = 0; i < watch->races.count; i++) free(watch->races.items[i]);
    mr_vec_free(&watch->races);
    mr_vec_free(&watch->instructions);
    mr_map_free(&watch->numbers);
    mr_map_free(&watch->pairs);
}
