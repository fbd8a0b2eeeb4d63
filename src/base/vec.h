/* Growing arrays as macros over {items, count, capacity}, so that an element type costs no code.
 *
 *     typedef MR_VEC(mr_stream *) stream_list;
 *     stream_list list = {0};
 *     if (!mr_vec_push(&list, s)) return out_of_memory;
 */
#ifndef MR_BASE_VEC_H
#define MR_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MR_VEC(type)                                                                               \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count, capacity;                                                                    \
    }

/* Makes room for `needed` elements in all; the array is unchanged when memory is out (returns false). */
static inline bool mr_vec_grow_(void *items_address, size_t *capacity, size_t item_size,
                                size_t needed) {
    void **items = items_address;
    size_t wanted = *capacity ? *capacity * 2 : 8;
    if (wanted < needed) wanted = needed;
    void *grown = realloc(*items, wanted * item_size);
    if (!grown) return false;
    *items = grown;
    *capacity = wanted;
    return true;
}

#define mr_vec_reserve(vec, more)                                                                  \
    ((vec)->capacity - (vec)->count >= (size_t)(more) ||                                           \
     mr_vec_grow_(&(vec)->items, &(vec)->capacity, sizeof *(vec)->items,                           \
                  (vec)->count + (size_t)(more)))
#define mr_vec_reserve_one(vec) mr_vec_reserve(vec, 1)
#define mr_vec_push(vec, item)                                                                     \
    (mr_vec_reserve_one(vec) ? ((vec)->items[(vec)->count++] = (item), true) : false)
#define mr_vec_pop(vec) ((vec)->items[--(vec)->count])
/* Items that begin in an array of their owner, `few` (NULL: it has none), and move to the heap when that is full. Makes
 * room for `wanted` of them; `count` are in use. False: memory is out, and nothing has changed. */
static inline bool mr_few_grow_(void *items_address, const void *few, size_t item_size,
                                size_t count, size_t wanted) {
    void **items = items_address;
    bool is_few = *items == few;
    void *grown = realloc(is_few ? NULL : *items, wanted * item_size);
    if (!grown) return false;
    if (is_few && count) memcpy(grown, few, count * item_size);
    *items = grown;
    return true;
}
#define mr_few_grow(items, few, count, wanted)                                                     \
    mr_few_grow_(&(items), few, sizeof *(items), count, wanted)
#define mr_few_free(items, few) ((items) == (few) ? (void)0 : free(items))

#define mr_vec_free(vec)                                                                           \
    (free((vec)->items), (vec)->items = NULL, (vec)->count = (vec)->capacity = 0)

#endif
