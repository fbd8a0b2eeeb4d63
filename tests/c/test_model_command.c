/* A command holds all that carrying it out takes: what the caller does with its own copies afterwards, and what the
 * machine is told afterwards, changes nothing. */
#include "virtual_fixture.h"

#include "model/observer.h"

/* `write` puts its arguments into its output. */
static int64_t write_items(const mr_command *command) {
    return (int64_t)(command->u.op.argument_bytes / sizeof(int32_t));
}

static mr_status write_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    int32_t *to = mr_tensor_data(command->operands[0].tensor);
    const int32_t *from = command->u.op.arguments;
    memcpy(to + first, from + first, (size_t)(end - first) * sizeof *to);
    return MR_OK;
}

static void write_cost(const mr_command *command, mr_cost *out_cost) {
    *out_cost = (mr_cost){.bytes = 4.0 * (double)write_items(command), .blocks = 1, .threads = 32};
}

static const mr_op write_row = {.name = "write",
                                .name_in_place = "write_",
                                .family = &mr_families[MR_FAMILY_FILL],
                                .dtypes = MR_TAKES_ALL,
                                .items = write_items,
                                .run = write_run,
                                .cost = write_cost};

static void arguments_belong_to_the_command(void **state) {
    (void)state;
    enum { MANY = 5000 };
    static int32_t values_of_caller[MANY];
    mr_stream *s = free_stream();
    mr_tensor *t = tensor(s, MANY);
    mr_command *command;
    OK(mr_spin(&caller, s, ns(1))); /* the device comes to it later */
    for (int i = 0; i < MANY; i++) values_of_caller[i] = i * i;
    OK(mr_command_create(&caller, MR_COMMAND_OP, s, "write", 1, &command));
    mr_command_set_operand(command, 0, t, MR_WRITE);
    command->u.op.row = &write_row;
    OK(mr_command_set_arguments(command, "something else", 15));
    OK(mr_command_set_arguments(command, values_of_caller, sizeof values_of_caller));
    OK(mr_command_submit(command));
    memset(values_of_caller, 0, sizeof values_of_caller);
    OK(mr_stream_synchronize(&caller, s));
    for (int i = 0; i < MANY; i++) assert_int_equal(values(t)[i], i * i);
}

/* ---- what was set at the call */

static bool seen_tf32;

static void see(mr_observer *observer, const mr_command *command, bool host_waited) {
    (void)observer, (void)host_waited;
    if (command->kind == MR_COMMAND_OP && !strcmp(command->name, "matmul"))
        seen_tf32 = mr_params_of(command).matmul.tf32;
}

static bool product_allows_tf32(bool allowed) {
    mr_stream *s = free_stream();
    int64_t shape[] = {2, 2};
    mr_tensor *a, *out;
    bool fresh;
    OK(mr_tensor_create(&caller, MR_MEMORY_DEVICE, s, MR_F32, 2, shape, &a));
    assert_true(mr_vec_push(&made_tensors, a));
    mr_call call = {
        .in = {{.tensor = a}, {.tensor = a}}, .in_count = 2, .stream = s, .allow_tf32 = allowed};
    OK(mr_call_run(&caller, mr_op_find("matmul"), &call, &out, &fresh));
    assert_true(mr_vec_push(&made_tensors, out));
    return seen_tf32;
}

static void a_product_knows_whether_tf32_was_allowed(void **state) {
    (void)state;
    mr_observer observer = {.name = "see", .did = see};
    OK(mr_observer_add(machine, &observer));
    assert_true(product_allows_tf32(true));
    assert_false(product_allows_tf32(false));
    mr_observer_remove(machine, &observer);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(arguments_belong_to_the_command),
        TEST(a_product_knows_whether_tf32_was_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
