/* Where warps wait for loads: small kernels whose waits can be counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/run/waits.h"

/* The waits of a kernel with this body, as a string: m memory, s shared, in the order of the instructions. */
static void check(const char *body, const char *expected) {
    char text[4096], found[64] = "";
    ptx_tree tree;
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_90\n.address_size 64\n"
             ".visible .entry k(.param .u64 p)\n{\n"
             ".reg .pred %%p<4>; .reg .b32 %%r<20>; .reg .b64 %%rd<20>;\n"
             ".shared .align 4 .b8 tile[256];\n"
             "ld.param.u64 %%rd1, [p];\n%s\nret;\n}\n",
             body);
    mr_status status = ptx_read(text, strlen(text), "test", &tree);
    if (status) fail_msg("%s", status->message);
    const ptx_function *f = &tree.functions[0];
    uint8_t *waits = malloc(f->instruction_count);
    assert_true(ptx_find_waits(f, waits));
    for (uint32_t i = 0; i < f->instruction_count; i++)
        if (waits[i]) strcat(found, waits[i] == PTX_WAIT_MEMORY ? "m" : "s");
    assert_string_equal(found, expected);
    free(waits);
    ptx_tree_free(&tree);
}

static void loads_that_are_independent_are_waited_for_once(void **state) {
    (void)state;
    check("ld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [%rd1+4];\nadd.u32 %r3, %r1, %r2;\n",
          "m");
    /* The second one can be moved in front of the addition. */
    check("ld.global.u32 %r1, [%rd1];\nadd.u32 %r3, %r1, %r1;\nld.global.u32 %r2, [%rd1+4];\n",
          "m");
    check("ld.global.v2.u32 {%r1, %r2}, [%rd1];\n", "m");
}

static void a_load_whose_address_was_loaded_waits_again(void **state) {
    (void)state;
    check("ld.global.u64 %rd2, [%rd1];\nld.global.u64 %rd3, [%rd2];\nld.global.u64 %rd4, [%rd3];\n",
          "mmm");
    check("ld.global.v2.u64 {%rd2, %rd3}, [%rd1];\nadd.u64 %rd4, %rd3, 8;\n"
          "ld.global.u64 %rd5, [%rd4];\nld.global.u64 %rd6, [%rd2];\n",
          "mm");
    check(
        "ld.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 ld.global.u32 %r2, [%rd1+8];\n",
        "mm");
}

static void a_store_of_a_loaded_value_holds_later_loads_back(void **state) {
    (void)state;
    check("ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1], %r1;\nld.global.u32 %r2, [%rd1+4];\n",
          "mm");
    check(
        "st.global.u32 [%rd1], %r5;\nld.global.u32 %r2, [%rd1+4];\nld.global.u32 %r3, [%rd1+8];\n",
        "m");
    check("ld.global.u32 %r1, [%rd1];\nst.shared.u32 [tile], %r1;\nld.global.u32 %r2, [%rd1+4];\n",
          "m");
}

static void a_barrier_holds_later_loads_back(void **state) {
    (void)state;
    check(
        "ld.global.u32 %r1, [%rd1];\nst.shared.u32 [tile], %r1;\nbar.sync 0;\n"
        "ld.shared.u32 %r2, [tile];\nld.shared.u32 %r3, [tile+4];\nld.global.u32 %r4, [%rd1+4];\n",
        "msm");
}

static void atomics_are_waited_for_if_they_give_something(void **state) {
    (void)state;
    check("atom.global.add.u32 %r1, [%rd1], 1;\natom.global.add.u32 %r2, [%rd1], 1;\n", "mm");
    check("red.global.add.u32 [%rd1], 1;\nred.global.add.u32 [%rd1], 1;\n", "");
}

static void each_basic_block_waits_for_its_own_loads(void **state) {
    (void)state;
    check("LOOP:\nld.global.u32 %r1, [%rd1];\nadd.u64 %rd1, %rd1, 4;\nsetp.eq.u32 %p1, %r1, 0;\n"
          "@%p1 bra LOOP;\nld.global.u32 %r2, [%rd1];\n",
          "mm");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_that_are_independent_are_waited_for_once),
        cmocka_unit_test(a_load_whose_address_was_loaded_waits_again),
        cmocka_unit_test(a_store_of_a_loaded_value_holds_later_loads_back),
        cmocka_unit_test(a_barrier_holds_later_loads_back),
        cmocka_unit_test(atomics_are_waited_for_if_they_give_something),
        cmocka_unit_test(each_basic_block_waits_for_its_own_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
