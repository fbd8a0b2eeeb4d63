/* Inside src/ops only: products of packed panels in registers, for each instruction set. Every product is fused with
 * its addition, and the order of the additions to one result does not depend on the instruction set: all of them give
 * the same bits. Processors that cannot fuse take the C library's function, and a long time. */
#ifndef MR_OPS_BODY_TILE_H
#define MR_OPS_BODY_TILE_H

#include "tensor/dtype.h"

enum {
    MR_TILE_COLUMNS = 240, /* a multiple of the columns of every tile */
};

/* c[i][j] += sum over d of a[d][i] * b[d][j], in the order of d, for a tile of `rows` x `columns`. a and b are packed:
 * the `rows` (`columns`) elements of one d lie together. `c_row`: from row to row of c. `first`: c holds nothing
 * yet. */
typedef struct {
    int rows, columns;
    void (*multiply)(int64_t depth, const void *a, const void *b, void *c, int64_t c_row,
                     bool first);
} mr_tile;
mr_tile mr_tile_of(mr_dtype dtype); /* f32 or f64 */

#endif
