/* Bytes of a trace inside a page: numbers of seven bits a byte, the lowest first, and the whole in base64. The reader
 * is page/data.js. */
#ifndef MR_TRACE_PACK_H
#define MR_TRACE_PACK_H

#include "trace/draw/sink.h"

#define MR_PACK_SIZE                                                                               \
    (3 * 4096) /* whole groups of three bytes, so that only the last part has padding */

typedef struct {
    mr_sink *sink;
    size_t used;
    unsigned char data[MR_PACK_SIZE];
} mr_pack;

void mr_pack_flush(mr_pack *pack); /* at the end */

static inline void mr_pack_byte(mr_pack *pack, unsigned char byte) {
    if (pack->used == MR_PACK_SIZE) mr_pack_flush(pack);
    pack->data[pack->used++] = byte;
}

static inline void mr_pack_number(mr_pack *pack, uint64_t value) {
    for (; value >= 128; value >>= 7) mr_pack_byte(pack, (unsigned char)(value | 128));
    mr_pack_byte(pack, (unsigned char)value);
}

/* `to` - `from`, which may be negative: 0, -1, 1, -2 as 0, 1, 2, 3. */
static inline void mr_pack_difference(mr_pack *pack, uint64_t from, uint64_t to) {
    mr_pack_number(pack, to >= from ? 2 * (to - from) : 2 * (from - to) - 1);
}

#endif
