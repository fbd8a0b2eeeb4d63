/* Copies matrices whose columns lie densely to rows. Going along one side alone would touch a new cache line, and often
 * a new page, for each element. So squares of the matrix are turned in a buffer that stays in the first-level cache.
 * Squares of that buffer are turned by vector shuffles. Where the rows to write are short there is no buffer.
 *
 * Easiest to break: nothing may be read or written outside the matrix, so its edges go element by element. */
#include "ops/body.h"

#include <string.h>

enum {
    TILE = 32, /* 128 or 256 bytes a row: whole cache lines even where rows do not begin with one */
    NARROW = 16 /* columns */
};

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAVE_SHUFFLES 1
#endif
#endif
#ifndef HAVE_SHUFFLES
#define HAVE_SHUFFLES 0
#endif

#if HAVE_SHUFFLES
typedef uint32_t four __attribute__((vector_size(16)));
typedef uint64_t two __attribute__((vector_size(16)));

static inline void turn_square_4(const uint32_t *from, int64_t stride, uint32_t *to,
                                 int64_t to_stride) {
    four row[4], half[4];
    for (int i = 0; i < 4; i++) memcpy(&row[i], from + i * stride, sizeof row[i]);
    for (int i = 0; i < 2; i++) {
        half[i] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 0, 4, 1, 5);
        half[i + 2] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 2, 6, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        row[2 * i] = __builtin_shufflevector(half[2 * i], half[2 * i + 1], 0, 1, 4, 5);
        row[2 * i + 1] = __builtin_shufflevector(half[2 * i], half[2 * i + 1], 2, 3, 6, 7);
    }
    for (int i = 0; i < 4; i++) memcpy(to + i * to_stride, &row[i], sizeof row[i]);
}

static inline void turn_square_8(const uint64_t *from, int64_t stride, uint64_t *to,
                                 int64_t to_stride) {
    two a, b, row;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + stride, sizeof b);
    row = __builtin_shufflevector(a, b, 0, 2);
    memcpy(to, &row, sizeof row);
    row = __builtin_shufflevector(a, b, 1, 3);
    memcpy(to + to_stride, &row, sizeof row);
}

#endif

/* The rows [first_row, rows) of the columns [first_column, columns) element by element. */
#define TURN_PART(first_row, first_column)                                                         \
    for (int64_t c = (first_column); c < columns; c++)                                             \
        for (int64_t r = (first_row); r < rows; r++) to[r * to_stride + c] = from[c * stride + r]

/* SIDE is that of the squares. */
#define TURN_TILE(T, tag, SIDE, turn_square)                                                       \
    static inline void turn_##tag(const T *from, int64_t stride, T *to, int64_t to_stride,         \
                                  int64_t rows, int64_t columns) {                                 \
        int64_t height = rows - rows % SIDE, width = columns - columns % SIDE;                     \
        for (int64_t c = 0; c < width; c += SIDE)                                                  \
            for (int64_t r = 0; r < height; r += SIDE)                                             \
                turn_square(from + c * stride + r, stride, to + r * to_stride + c, to_stride);     \
        if (height < rows) TURN_PART(height, 0);                                                   \
        if (width < columns) TURN_PART(0, width);                                                  \
    }
#if HAVE_SHUFFLES
TURN_TILE(uint32_t, 4, 4, turn_square_4)
TURN_TILE(uint64_t, 8, 2, turn_square_8)
#else
#define TURN_ELEMENT(from, stride, to, to_stride) (*(to) = *(from))
TURN_TILE(uint32_t, 4, 1, TURN_ELEMENT)
TURN_TILE(uint64_t, 8, 1, TURN_ELEMENT)
#endif

static inline void turn_1(const uint8_t *from, int64_t stride, uint8_t *to, int64_t to_stride,
                          int64_t rows, int64_t columns) {
    TURN_PART(0, 0);
}
static inline void turn_2(const uint16_t *from, int64_t stride, uint16_t *to, int64_t to_stride,
                          int64_t rows, int64_t columns) {
    TURN_PART(0, 0);
}

static inline void turn(const void *from, int64_t stride, size_t size, int64_t rows,
                        int64_t columns, void *to, int64_t to_stride) {
    switch (size) {
    case 1: turn_1(from, stride, to, to_stride, rows, columns); break;
    case 2: turn_2(from, stride, to, to_stride, rows, columns); break;
    case 4: turn_4(from, stride, to, to_stride, rows, columns); break;
    default: turn_8(from, stride, to, to_stride, rows, columns); break;
    }
}

void mr_transpose(void *to, int64_t to_stride, const void *from, int64_t from_stride, size_t size,
                  int64_t rows, int64_t columns) {
    union {
        char bytes[TILE * TILE * 8];
        double aligned_;
    } tile;
    if (columns <= NARROW) {
        turn(from, from_stride, size, rows, columns, to, to_stride);
        return;
    }
    for (int64_t r = 0; r < rows; r += TILE) {
        int64_t height = rows - r < TILE ? rows - r : TILE;
        for (int64_t c = 0; c < columns; c += TILE) {
            int64_t width = columns - c < TILE ? columns - c : TILE;
            turn((const char *)from + (c * from_stride + r) * (int64_t)size, from_stride, size,
                 height, width, tile.bytes, TILE);
            for (int64_t i = 0; i < height; i++)
                memcpy((char *)to + ((r + i) * to_stride + c) * (int64_t)size,
                       tile.bytes + (size_t)i * TILE * size, (size_t)width * size);
        }
    }
}
