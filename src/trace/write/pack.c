/* Base64: see pack.h. */
#include "trace/write/pack.h"

void mr_pack_flush(mr_pack *pack) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[MR_PACK_SIZE / 3 * 4];
    size_t size = 0;
    for (size_t i = 0; i < pack->used; i += 3) {
        size_t left = pack->used - i;
        uint32_t group = (uint32_t)pack->data[i] << 16;
        if (left > 1) group |= (uint32_t)pack->data[i + 1] << 8;
        if (left > 2) group |= pack->data[i + 2];
        text[size++] = digits[group >> 18];
        text[size++] = digits[group >> 12 & 63];
        text[size++] = left > 1 ? digits[group >> 6 & 63] : '=';
        text[size++] = left > 2 ? digits[group & 63] : '=';
    }
    mr_sink_bytes(pack->sink, text, size);
    pack->used = 0;
}
