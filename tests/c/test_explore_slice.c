/* Slices: the operations that a schedule of one group of races does without. */
#include <stdlib.h>

#include "explore/apart.h"
#include "program/program.h"
#include "tensor/tensor.h"

#include "virtual_fixture.h"

enum { OPS = 6 };

/* `from`: the tensor that operation i reads; NULL: none. */
static void submit(mr_stream *stream, mr_tensor *to, mr_tensor *from) {
    mr_abstract op = {.name = "op",
                      .writes = &to,
                      .write_count = to != NULL,
                      .reads = &from,
                      .read_count = from != NULL,
                      .duration_ns = 1000,
                      .blocks = 1,
                      .stream = stream};
    OK(mr_abstract_op(&caller, &op));
}

/* Operations 2 and 3 race on y. Operation 2 reads x, which operation 0 has written. Operation 4 reads the result of the
 * race, and operation 5 does so without writing. Only operation 1 has nothing to do with the race. */
static mr_program *recorded(void) {
    mr_recorder *recorder;
    mr_program *program;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *x = tensor(device->legacy, 4), *other = tensor(device->legacy, 4),
              *y = tensor(device->legacy, 4), *z = tensor(device->legacy, 4);
    OK(mr_device_synchronize(&caller, device));
    OK(mr_program_record(machine, 0, &recorder));
    submit(a, x, NULL);
    submit(a, other, NULL);
    submit(a, y, x);
    submit(b, y, NULL);
    submit(a, z, y);
    submit(a, NULL, y);
    OK(mr_device_synchronize(&caller, device));
    OK(mr_recorder_finish(recorder, &program));
    return program;
}

static void pass_item(const mr_program *program, groups *g, uint32_t i, uint32_t node) {
    group_touch touches[2];
    mr_program_item it = mr_program_item_at(program, i);
    for (uint32_t k = 0; k < it.operand_count; k++) {
        mr_program_operand o = mr_program_operand_at(program, i, k);
        touches[k] = (group_touch){.memory = o.storage,
                                   .reads = (o.access & MR_READ) != 0,
                                   .writes = (o.access & MR_WRITE) != 0};
        mr_tensor_extent(o.view, &touches[k].first, &touches[k].end);
    }
    assert_null(groups_pass(g, node, node + 1, touches, it.operand_count));
}

static void find_group(const mr_program *program, groups *g, uint32_t *out_items) {
    static const uint64_t before[OPS] = {0, 1, 3, 0, 7, 023}, races[OPS] = {0, 0, 0, 4, 8, 8};
    race_graph graph = {OPS, 1, before, races};
    uint32_t n = 0;
    assert_null(groups_open(g, &graph, (uint32_t)mr_program_storage_count(program)));
    for (uint32_t i = 0; i < mr_program_count(program); i++) {
        if (mr_program_kind_at(program, i) != MR_COMMAND_OP) continue;
        pass_item(program, g, i, n);
        out_items[n++] = i;
    }
    assert_int_equal(n, OPS);
    assert_int_equal(groups_number(g), 1);
}

static void an_operation_beside_the_group_is_left_out(void **unused) {
    (void)unused;
    mr_program *program = recorded();
    uint32_t items[OPS];
    struct apart a = {.left_out = calloc(mr_program_count(program) + 1, sizeof *a.left_out)};
    branch b = {.program = program, .count = (uint32_t)mr_program_count(program)};
    assert_non_null(a.left_out);
    find_group(program, &a.groups, items);
    assert_null(slice_find(&a, &b));
    for (uint32_t n = 0; n < OPS; n++) assert_int_equal(a.left_out[items[n]], n == 1);
    for (uint32_t i = 0; i < b.count; i++)
        assert_true(!a.left_out[i] || mr_program_kind_at(program, i) == MR_COMMAND_OP);
    groups_close(&a.groups);
    free(a.left_out);
    mr_program_release(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        an_operation_beside_the_group_is_left_out, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
