/* Philox-4x32-10 (Salmon et al., SC'11) as random numbers by position: block `counter` of the
 * stream of numbers that belongs to `seed`. The same on every backend and for every slicing. */
#ifndef MR_BASE_PHILOX_H
#define MR_BASE_PHILOX_H

#include <stdint.h>

#include <Random123/philox.h>

typedef struct {
    uint32_t v[4];
} mr_philox_block;

static inline mr_philox_block mr_philox(uint64_t seed, uint64_t offset, uint64_t counter) {
    philox4x32_ctr_t ctr = {
        {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)offset, (uint32_t)(offset >> 32)}};
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    philox4x32_ctr_t out = philox4x32(ctr, key);
    return (mr_philox_block){{out.v[0], out.v[1], out.v[2], out.v[3]}};
}

#endif
