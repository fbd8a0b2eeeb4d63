/* Each tile of src/ops/body/tile.c, whatever this processor would take: its sums have the bits of a loop of fused
 * multiply-adds. */
#include "../../src/ops/body/tile.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 8 * 48, DEPTH = 5, ROW = 50 };

/* Numbers of few bits would have the same sum in any order. */
static double number(int i) {
    return 1.0 / (3 + i * 7 % 101) - 0.125 * (i % 3);
}

#define CHECK(T, tag, fused)                                                                       \
    static void check_##tag(mr_tile t, bool first) {                                               \
        T a[MOST * DEPTH], b[MOST * DEPTH], c[8 * ROW], expected[8 * ROW];                         \
        for (int i = 0; i < MOST * DEPTH; i++) a[i] = (T)number(i), b[i] = (T)number(i + 11);      \
        for (int i = 0; i < 8 * ROW; i++) c[i] = expected[i] = (T)number(i + 5);                   \
        for (int i = 0; i < t.rows; i++)                                                           \
            for (int j = 0; j < t.columns; j++) {                                                  \
                T sum = first ? 0 : c[i * ROW + j];                                                \
                for (int d = 0; d < DEPTH; d++)                                                    \
                    sum = fused(a[d * t.rows + i], b[d * t.columns + j], sum);                     \
                expected[i * ROW + j] = sum;                                                       \
            }                                                                                      \
        t.multiply(DEPTH, a, b, c, ROW, first);                                                    \
        assert_memory_equal(c, expected, sizeof c); /* and nothing beside the tile */              \
    }
CHECK(float, f32, fmaf)
CHECK(double, f64, fma)

static void check(mr_tile single, mr_tile twice) {
    for (int first = 0; first < 2; first++) check_f32(single, first), check_f64(twice, first);
}

static void sums_have_the_bits_of_a_loop(void **state) {
    (void)state;
    check((mr_tile){PLAIN_ROWS, PLAIN_COLUMNS, multiply_f32},
          (mr_tile){PLAIN_ROWS, PLAIN_COLUMNS, multiply_f64});
#if HAVE_VECTORS
    if (best() >= NARROW)
        check((mr_tile){4, 24, multiply_narrow_f32}, (mr_tile){4, 12, multiply_narrow_f64});
    if (best() >= WIDE)
        check((mr_tile){8, 48, multiply_wide_f32}, (mr_tile){8, 24, multiply_wide_f64});
#endif
    check(mr_tile_of(MR_F32), mr_tile_of(MR_F64));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_have_the_bits_of_a_loop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
