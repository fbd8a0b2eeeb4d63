/* The user's kernels on the CUDA backend: what is loaded and when it goes, what a launch hands to the driver, and whose
 * fault a failure is. The fake driver carries the kernels out, so their values are looked at. The PTX is written here:
 * no compiler is needed. */
#include "cuda_fixture.h"

#if MR_HAVE_CUDA

#include "ops/kernel.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static const char text[] = HEAD
    ".visible .global .align 4 .u32 counter = 7;\n"
    ".visible .const .align 4 .u32 factors[2] = {2, 10};\n"
    ".global .align 4 .u32 hidden = 100;\n"
    ".extern .shared .align 4 .b8 space[];\n"
    /* y[i] *= 2 */
    ".visible .entry twice(.param .u64 y, .param .u32 n)\n{\n"
    ".reg .pred %p<2>; .reg .b32 %r<12>; .reg .b64 %rd<8>;\n"
    "ld.param.u64 %rd1, [y]; ld.param.u32 %r1, [n];\n"
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "setp.ge.s32 %p1, %r5, %r1; @%p1 bra DONE;\n"
    "cvta.to.global.u64 %rd2, %rd1; mul.wide.s32 %rd3, %r5, 4; add.s64 %rd4, %rd2, %rd3;\n"
    "ld.global.u32 %r6, [%rd4]; add.s32 %r7, %r6, %r6;\n"
    "st.global.u32 [%rd4], %r7;\nDONE: ret;\n}\n"
    /* y[0] = s.a + s.b, of struct { int a; long long b; } and behind it 1000 bytes */
    ".visible .entry of_struct(.param .u64 y, .param .align 8 .b8 s[16], .param .b8 "
    "more[1000])\n{\n"
    ".reg .b32 %r<5>; .reg .b64 %rd<5>;\n"
    "ld.param.u64 %rd1, [y]; ld.param.u32 %r1, [s]; ld.param.u64 %rd2, [s+8];\n"
    "ld.param.u8 %r4, [more+999];\n"
    "cvt.u32.u64 %r2, %rd2; add.s32 %r3, %r1, %r2; add.s32 %r3, %r3, %r4;\n"
    "cvta.to.global.u64 %rd3, %rd1; st.global.u32 [%rd3], %r3; ret;\n}\n"
    /* counter += factors[1] + hidden */
    ".visible .entry count()\n{\n"
    ".reg .b32 %r<5>;\n"
    "ld.const.u32 %r1, [factors+4]; ld.global.u32 %r2, [hidden]; add.s32 %r3, %r1, %r2;\n"
    "atom.global.add.u32 %r4, [counter], %r3; ret;\n}\n"
    /* the last word of dynamic shared memory is written, and y[0] becomes the number of its bytes */
    ".visible .entry shared_size(.param .u64 y)\n{\n"
    ".reg .b32 %r<6>; .reg .b64 %rd<3>;\n"
    "ld.param.u64 %rd1, [y]; mov.u32 %r1, %dynamic_smem_size;\n"
    "mov.u32 %r2, space; add.s32 %r3, %r2, %r1;\n"
    "st.shared.u32 [%r3+-4], %r1; ld.shared.u32 %r4, [%r3+-4];\n"
    "cvta.to.global.u64 %rd2, %rd1; st.global.u32 [%rd2], %r4; ret;\n}\n"
    /* the same beside 8 KiB of static shared memory */
    ".visible .entry shared_both(.param .u64 y)\n{\n"
    ".reg .b32 %r<6>; .reg .b64 %rd<3>;\n"
    ".shared .align 4 .b8 own[8192];\n"
    "ld.param.u64 %rd1, [y]; mov.u32 %r1, %dynamic_smem_size;\n"
    "st.shared.u32 [own+8188], %r1; ld.shared.u32 %r4, [own+8188];\n"
    "cvta.to.global.u64 %rd2, %rd1; st.global.u32 [%rd2], %r4; ret;\n}\n"
    /* writes where no memory is */
    ".visible .entry crash(.param .u64 y)\n{\n"
    ".reg .b32 %r<2>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [y]; mov.u32 %r1, 1;\n"
    "cvta.to.global.u64 %rd2, %rd1; add.s64 %rd3, %rd2, 1099511627776;\n"
    "st.global.u32 [%rd3], %r1; ret;\n}\n"
    ".visible .entry for_ever()\n{\nAGAIN: bra AGAIN;\n}\n"
    ".entry unseen()\n{\nret;\n}\n";

/* ---- modules and launches */

static mr_kernel_module *module_of(const char *ptx) {
    mr_kernel_code *code;
    mr_kernel_module *module;
    OK(mr_kernel_code_load(strdup(ptx), strlen(ptx), "test", &code));
    OK(mr_kernel_module_create(&caller, code, &module));
    mr_kernel_code_release(code);
    return module;
}

/* Each parameter as bytes, in the order of the kernel's; a tensor stands for a pointer to it. */
typedef struct {
    mr_tensor *tensor;
    const void *bytes;
} value;

typedef struct {
    uint32_t grid, block, shared;
    mr_stream *stream;
} sizes;

static mr_status try_launch(mr_kernel_module *module, const char *name, sizes size,
                            const value *given) {
    const mr_ptx_kernel *kernel = mr_ptx_kernel_find(module->code->ptx, name);
    uint64_t params[256] = {0};
    mr_kernel_pointer pointers[8];
    mr_kernel_call call = {
        .module = module,
        .kernel = kernel,
        .name = mr_name_new(name, strlen(name)),
        .grid = {size.grid ? size.grid : 1, 1, 1},
        .block = {size.block ? size.block : 1, 1, 1},
        .shared = size.shared,
        .stream = size.stream,
        .params = params,
        .pointers = pointers,
    };
    assert_non_null(kernel);
    assert_true(kernel->param_bytes <= sizeof params);
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        const mr_ptx_param *p = &kernel->params[i];
        if (given[i].tensor)
            pointers[call.pointer_count++] =
                (mr_kernel_pointer){i, p->offset, given[i].tensor, MR_READ | MR_WRITE, NULL, false};
        else memcpy((char *)params + p->offset, given[i].bytes, p->bytes);
    }
    mr_status status = mr_kernel_launch(&caller, &call);
    mr_name_release(call.name);
    return status;
}

#define RUN(module, name, size, ...) OK(try_launch(module, name, size, (value[]){__VA_ARGS__}))

static void run_twice(mr_kernel_module *module, mr_stream *stream, mr_tensor *t) {
    int32_t n = (int32_t)t->numel;
    RUN(module, "twice", ((sizes){(uint32_t)(n + 31) / 32, 32, 0, stream}), {.tensor = t},
        {.bytes = &n});
}

static mr_tensor *filled(mr_memory_kind kind, mr_stream *stream, int64_t size) {
    mr_tensor *t = tensor(kind, stream, size);
    for (int64_t i = 0; i < size; i++) values(t)[i] = (int32_t)i;
    return t;
}

static void a_kernel_runs_when_its_stream_gets_there(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_kernel_module *module = module_of(text);
    mr_tensor *t = filled(MR_MEMORY_DEVICE, s, 1000);
    fake->hold = true;
    run_twice(module, s, t);
    assert_int_equal(values(t)[999], 999);
    fake->hold = false;
    OK(mr_stream_synchronize(&caller, s));
    for (int i = 0; i < 1000; i++) assert_int_equal(values(t)[i], 2 * i);
    assert_int_equal(fake->launches, 1);
    drop(t);
    mr_kernel_module_release(module);
    mr_stream_release(s);
}

static void registers_are_those_that_the_driver_uses(void **state) {
    (void)state;
    mr_kernel_module *module = module_of(text);
    int registers = 0;
    OK(mr_kernel_registers(machine, module->code, mr_ptx_kernel_at(module->code->ptx, 0),
                           &registers));
    assert_int_equal(registers, FAKE_REGISTERS);
    mr_kernel_module_release(module);
}

static void a_pointer_may_point_into_a_tensor(void **state) {
    (void)state;
    mr_kernel_module *module = module_of(text);
    mr_tensor *t = filled(MR_MEMORY_DEVICE, device->legacy, 100), *half;
    int64_t size = 50, stride = 1;
    OK(mr_tensor_view(&caller, t, MR_I32, 1, &size, &stride, 50, &half));
    run_twice(module, NULL, half);
    OK(mr_device_synchronize(&caller, device));
    for (int i = 0; i < 100; i++) assert_int_equal(values(t)[i], i < 50 ? i : 2 * i);
    drop(half);
    drop(t);
    mr_kernel_module_release(module);
}

static void a_struct_and_a_large_block_of_parameters_arrive(void **state) {
    (void)state;
    mr_kernel_module *module = module_of(text);
    mr_tensor *t = filled(MR_MEMORY_DEVICE, device->legacy, 1);
    struct {
        int32_t a;
        int64_t b;
    } s = {1000, 200};
    char more[1000] = {0};
    more[999] = 30;
    RUN(module, "of_struct", ((sizes){0}), {.tensor = t}, {.bytes = &s}, {.bytes = more});
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(t)[0], 1230);
    drop(t);
    mr_kernel_module_release(module);
}

/* The device reads and writes it where it is, and it stays until it has. */
static void pinned_memory_is_an_operand(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_kernel_module *module = module_of(text);
    mr_tensor *t = filled(MR_MEMORY_PINNED, NULL, 64);
    fake->hold = true;
    run_twice(module, s, t);
    mr_storage *storage = t->storage;
    mr_storage_retain(storage);
    drop(t);
    assert_true(storage->refs > 1);
    fake->hold = false;
    OK(mr_stream_synchronize(&caller, s));
    assert_int_equal(storage->refs, 1);
    assert_int_equal(((int32_t *)storage->host)[63], 126);
    mr_storage_release(storage);
    mr_kernel_module_release(module);
    mr_stream_release(s);
}

static void what_no_launch_can_use_is_refused(void **state) {
    (void)state;
    int32_t n = 1;
    fake->left_out = "unseen";
    mr_kernel_module *module = module_of(text);
    mr_tensor *page = filled(MR_MEMORY_PAGEABLE, NULL, 1),
              *freed = filled(MR_MEMORY_DEVICE, device->legacy, 1),
              *there = filled(MR_MEMORY_DEVICE, machine->devices[1]->legacy, 1);
    OK(mr_storage_free(&caller, freed->storage, MR_FREE_OWN_STREAM, NULL));
    FAILS(MR_CODE_INVALID_ARGUMENT, "pageable host memory",
          try_launch(module, "twice", (sizes){0}, (value[]){{.tensor = page}, {.bytes = &n}}));
    FAILS(MR_CODE_INVALID_HANDLE, "freed",
          try_launch(module, "twice", (sizes){0}, (value[]){{.tensor = freed}, {.bytes = &n}}));
    FAILS(MR_CODE_INVALID_ARGUMENT, "is on device 1",
          try_launch(module, "twice", (sizes){.stream = device->legacy},
                     (value[]){{.tensor = there}, {.bytes = &n}}));
    FAILS(MR_CODE_INVALID_ARGUMENT, "unseen", try_launch(module, "unseen", (sizes){0}, NULL));
    assert_int_equal(fake->launches, 0);
    drop(page);
    drop(freed);
    drop(there);
    mr_kernel_module_release(module);
}

/* ---- variables */

static mr_tensor *variable(mr_kernel_module *module, mr_device *where, const char *name) {
    mr_tensor *t;
    const ptx_variable *what;
    OK(mr_kernel_variable(&caller, module, where, name, &t, &what));
    return t;
}

static int32_t read_word(mr_tensor *t, int at) {
    mr_tensor *host;
    OK(mr_tensor_create(&caller, MR_MEMORY_PAGEABLE, NULL, MR_U8, 1, t->shape, &host));
    OK(mr_memcpy(&caller, host, t, NULL, true));
    int32_t word = ((int32_t *)host->storage->host)[at];
    drop(host);
    return word;
}

static void write_word(mr_tensor *t, int32_t word) {
    mr_tensor *host;
    OK(mr_tensor_create(&caller, MR_MEMORY_PAGEABLE, NULL, MR_U8, 1, t->shape, &host));
    memcpy(host->storage->host, &word, sizeof word);
    OK(mr_memcpy(&caller, t, host, NULL, true));
    drop(host);
}

static void variables_are_read_and_written_by_both_sides(void **state) {
    (void)state;
    mr_kernel_module *module = module_of(text);
    mr_tensor *counter = variable(module, device, "counter"),
              *factors = variable(module, device, "factors");
    const uint64_t live = mr_device_memory(device).live;
    assert_int_equal(read_word(counter, 0), 7);
    assert_int_equal(read_word(factors, 1), 10);
    RUN(module, "count", ((sizes){.grid = 3, .block = 4}), {0});
    assert_int_equal(read_word(counter, 0), 7 + 12 * 110);
    write_word(counter, 1);
    RUN(module, "count", ((sizes){0}), {0});
    assert_int_equal(read_word(counter, 0), 111);
    assert_int_equal(mr_device_memory(device).live, live);
    assert_int_equal(fake->blocks, 0); /* none of these is of the pool */
    mr_kernel_module_release(module);
}

static void what_the_driver_left_out_is_missed_when_it_is_asked_for(void **state) {
    (void)state;
    mr_tensor *t;
    const ptx_variable *what;
    fake->left_out = "hidden";
    mr_kernel_module *module = module_of(text);
    assert_int_equal(read_word(variable(module, device, "counter"), 0), 7);
    FAILS(MR_CODE_NOT_SUPPORTED, "as no kernel of it uses it",
          mr_kernel_variable(&caller, module, device, "hidden", &t, &what));
    FAILS(MR_CODE_INVALID_ARGUMENT, "no __device__ or __constant__ variable `other`",
          mr_kernel_variable(&caller, module, device, "other", &t, &what));
    mr_kernel_module_release(module);
}

static void each_device_has_variables_of_its_own(void **state) {
    (void)state;
    mr_device *other = machine->devices[1];
    int before = fake->modules;
    mr_kernel_module *module = module_of(text);
    assert_int_equal(fake->modules, before + 1);
    mr_tensor *t = filled(MR_MEMORY_DEVICE, other->legacy, 10);
    int with_context = fake->modules;
    run_twice(module, other->legacy, t);
    assert_int_equal(fake->modules, with_context + 1);
    RUN(module, "count", ((sizes){.stream = other->legacy}), {0});
    assert_int_equal(read_word(variable(module, other, "counter"), 0), 117);
    assert_int_equal(read_word(variable(module, device, "counter"), 0), 7);
    OK(mr_device_synchronize(&caller, other));
    assert_int_equal(values(t)[9], 18);
    drop(t);
    mr_kernel_module_release(module);
}

static void a_peer_reaches_what_it_was_given_access_to(void **state) {
    (void)state;
    mr_device *other = machine->devices[1];
    mr_kernel_module *module = module_of(text);
    mr_tensor *there = filled(MR_MEMORY_DEVICE, other->legacy, 10);
    OK(mr_device_enable_peer_access(device, other));
    run_twice(module, device->legacy, there);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(there)[9], 18);
    drop(there);
    mr_kernel_module_release(module);
}

/* ---- shared memory */

static void ask_for(mr_kernel_module *module, const char *name, uint32_t bytes, int calls) {
    mr_tensor *t = filled(MR_MEMORY_DEVICE, device->legacy, 1);
    RUN(module, name, ((sizes){.shared = bytes}), {.tensor = t});
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(t)[0], bytes);
    assert_int_equal(fake->shared_limits_set, calls);
    drop(t);
}

static void more_shared_memory_is_asked_for_once(void **state) {
    (void)state;
    mr_kernel_module *module = module_of(text);
    ask_for(module, "shared_size", 48 << 10, 0);
    ask_for(module, "shared_size", 100 << 10, 1);
    ask_for(module, "shared_size", 100 << 10, 1);
    ask_for(module, "shared_size", 60 << 10, 1);
    ask_for(module, "shared_size", 227 << 10, 2);
    mr_tensor *t = filled(MR_MEMORY_DEVICE, device->legacy, 1);
    FAILS(MR_CODE_INVALID_ARGUMENT, "the device has at most",
          try_launch(module, "shared_size", (sizes){.shared = (227 << 10) + 4},
                     (value[]){{.tensor = t}}));
    drop(t);
    mr_kernel_module_release(module);
}

static void static_shared_memory_counts_too(void **state) {
    (void)state;
    mr_kernel_module *module = module_of(text);
    ask_for(module, "shared_both", 40 << 10, 0);
    ask_for(module, "shared_both", 44 << 10, 1);
    mr_kernel_module_release(module);
}

/* ---- how long a module stays */

/* Loading one is when others may go. */
static int modules_after_another_load(void) {
    mr_kernel_module_release(module_of(text));
    return fake->modules - 1;
}

/* The next load waits for it, as the driver would. The fake driver aborts where a module is unloaded too early. */
static void a_module_stays_while_its_kernel_is_pending(void **state) {
    (void)state;
    int before = fake->modules;
    for (int closed = 0; closed < 2;
         closed++) { /* such a stream is no longer among those of the device */
        mr_stream *s = free_stream();
        mr_kernel_module *module = module_of(text);
        mr_tensor *t = filled(MR_MEMORY_DEVICE, s, 10);
        fake->waits = true;
        fake->kernel_ticks = 200;
        run_twice(module, s, t);
        fake->kernel_ticks = 0;
        mr_kernel_module_release(module);
        if (closed) OK(mr_stream_close(&caller, s));
        assert_int_equal(values(t)[9], 9);
        assert_int_equal(modules_after_another_load(), before);
        assert_int_equal(values(t)[9], 18);
        assert_int_equal(fake->blocking_calls, 0);
        drop(t);
        mr_stream_release(s);
    }
}

static void a_module_stays_while_one_looks_at_its_variable(void **state) {
    (void)state;
    int before = fake->modules;
    mr_kernel_module *module = module_of(text);
    mr_tensor *whole = variable(module, device, "counter"), *view;
    int64_t size = 1, stride = 1;
    OK(mr_tensor_view(&caller, whole, MR_I32, 0, &size, &stride, 0, &view));
    mr_kernel_module_release(module);
    assert_int_equal(modules_after_another_load(), before + 1);
    assert_int_equal(values(view)[0], 7);
    drop(view);
    assert_int_equal(modules_after_another_load(), before);
}

static void many_modules_are_told_apart(void **state) {
    (void)state;
    enum { COUNT = 40 };
    mr_kernel_module *all[COUNT];
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, device->legacy, 1),
              *there = tensor(MR_MEMORY_DEVICE, machine->devices[1]->legacy, 1);
    char ptx[400];
    for (int i = 0; i < COUNT; i++) {
        snprintf(ptx, sizeof ptx,
                 HEAD
                 ".visible .entry say(.param .u64 y)\n{\n.reg .b32 %%r<2>; .reg .b64 %%rd<3>;\n"
                 "ld.param.u64 %%rd1, [y]; cvta.to.global.u64 %%rd2, %%rd1; mov.u32 %%r1, %d;\n"
                 "st.global.u32 [%%rd2], %%r1; ret;\n}\n",
                 i);
        all[i] = module_of(ptx);
    }
    for (int i = 0; i < COUNT; i++) { /* on the other device they are loaded in this order */
        int k = i * 17 % COUNT;
        RUN(all[k], "say", ((sizes){0}), {.tensor = there});
        OK(mr_device_synchronize(&caller, machine->devices[1]));
        assert_int_equal(values(there)[0], k);
        RUN(all[k], "say", ((sizes){0}), {.tensor = t});
        OK(mr_device_synchronize(&caller, device));
        assert_int_equal(values(t)[0], k);
        if (i % 3 == 0) mr_kernel_module_release(all[k]);
    }
    for (int i = 0; i < COUNT; i++)
        if (i % 3 != 0) mr_kernel_module_release(all[i * 17 % COUNT]);
    drop(t);
    drop(there);
}

static void a_reset_takes_modules_with_it(void **state) {
    (void)state;
    int32_t n = 10;
    mr_kernel_module *module = module_of(text);
    mr_tensor *t = filled(MR_MEMORY_DEVICE, device->legacy, 10);
    fake->kernel_ticks = 200;
    run_twice(module, NULL, t);
    OK(mr_machine_reset(&caller));
    fake->kernel_ticks = 0;
    drop(t);
    t = filled(MR_MEMORY_DEVICE, device->legacy, 10);
    FAILS(MR_CODE_INVALID_HANDLE, "load it again",
          try_launch(module, "twice", (sizes){0}, (value[]){{.tensor = t}, {.bytes = &n}}));
    mr_kernel_module_release(module);
    module = module_of(text);
    run_twice(module, NULL, t);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(t)[9], 18);
    drop(t);
    mr_kernel_module_release(module);
}

/* ---- loading */

static mr_status try_load(const char *ptx) {
    mr_kernel_code *code;
    mr_kernel_module *module;
    OK(mr_kernel_code_load(strdup(ptx), strlen(ptx), "test", &code));
    mr_status status = mr_kernel_module_create(&caller, code, &module);
    if (!status) mr_kernel_module_release(module);
    mr_kernel_code_release(code);
    return status;
}

static void what_the_driver_rejects_is_told_in_its_words(void **state) {
    (void)state;
    int before = fake->modules;
    FAILS(MR_CODE_NOT_SUPPORTED, "update the driver",
          try_load(".version 9.9\n.target sm_80\n.address_size 64\n"));
    FAILS(MR_CODE_NOT_SUPPORTED, "the driver says:\nptxas fatal   : Unsupported .version 9.9",
          try_load(".version 9.9\n.target sm_80\n.address_size 64\n"));
    setenv("FAKE_CUDA_CAPABILITY", "75", 1);
    FAILS(MR_CODE_NOT_SUPPORTED, "for another kind of GPU", try_load(text));
    unsetenv("FAKE_CUDA_CAPABILITY");
    assert_int_equal(fake->modules, before);
    mr_kernel_module_release(module_of(text)); /* nothing is lost by that */
}

static mr_status count_call(void *context) {
    ++*(int *)context;
    return MR_OK;
}

static void loading_lets_host_functions_run_first(void **state) {
    (void)state;
    int called = 0;
    mr_stream *s = free_stream();
    OK(mr_stream_host_function(&caller, s, count_call, NULL, &called));
    mr_kernel_module *module = module_of(text);
    assert_int_equal(called, 1);
    mr_tensor *t = filled(MR_MEMORY_DEVICE, s, 10);
    OK(mr_stream_host_function(&caller, s, count_call, NULL, &called));
    run_twice(module, s, t); /* the kernels of a loaded module are there: nothing waits */
    assert_int_equal(called, 1);
    OK(mr_stream_synchronize(&caller, s));
    assert_int_equal(called, 2);
    assert_int_equal(values(t)[9], 18);
    drop(t);
    mr_kernel_module_release(module);
    mr_stream_release(s);
}

/* ---- failures */

static void a_launch_that_the_driver_refuses_loses_nothing(void **state) {
    (void)state;
    mr_kernel_module *module = module_of(text);
    mr_tensor *t = filled(MR_MEMORY_DEVICE, device->legacy, 10);
    int32_t n = 10;
    fake->refuse_launch = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    FAILS(
        MR_CODE_LAUNCH_OUT_OF_RESOURCES, "twice: blocks of 64 x 1 x 1: use fewer threads",
        try_launch(module, "twice", (sizes){.block = 64}, (value[]){{.tensor = t}, {.bytes = &n}}));
    fake->refuse_launch = CUDA_SUCCESS;
    run_twice(module, NULL, t);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(t)[9], 18);
    drop(t);
    mr_kernel_module_release(module);
}

static void a_failure_is_that_of_the_kernel_and_its_line(void **state) {
    (void)state;
    mr_stream *s = stream_on(device, true, "work");
    mr_kernel_module *module = module_of(text);
    mr_tensor *t = filled(MR_MEMORY_DEVICE, s, 10);
    caller.where = (mr_site){"script.lua", 3};
    run_twice(module, s, t);
    OK(mr_stream_synchronize(&caller, s));
    caller.where.line = 4;
    RUN(module, "crash", ((sizes){.stream = s}), {.tensor = t});
    caller.where.line = 5;
    mr_status status = mr_stream_synchronize(&caller, s);
    assert_non_null(status);
    assert_int_equal(status->code, MR_CODE_ILLEGAL_ADDRESS);
    assert_string_equal(status->op, "crash");
    assert_string_equal(status->stream, "work");
    assert_int_equal(status->where.line, 4);
    mr_error_destroy(status);
    drop(t);
    mr_kernel_module_release(module);
    mr_stream_release(s);
}

static void several_kernels_are_candidates(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_kernel_module *module = module_of(text);
    mr_tensor *t = filled(MR_MEMORY_DEVICE, s, 10);
    fake->hold = true;
    caller.where = (mr_site){"script.lua", 8};
    run_twice(module, s, t);
    RUN(module, "crash", ((sizes){.stream = s}), {.tensor = t});
    fake->hold = false;
    FAILS(MR_CODE_ILLEGAL_ADDRESS, "(`twice`, `crash`), the first of them from script.lua:8",
          mr_stream_synchronize(&caller, s));
    drop(t);
    mr_kernel_module_release(module);
    mr_stream_release(s);
}

static void a_kernel_that_does_not_end_is_ended_by_the_system(void **state) {
    (void)state;
    mr_kernel_module *module = module_of(text);
    fake->instruction_limit = 100000;
    RUN(module, "for_ever", ((sizes){0}), {0});
    FAILS(MR_CODE_LAUNCH_TIMEOUT, "longer than the system allows",
          mr_device_synchronize(&caller, device));
    FAILS(MR_CODE_LAUNCH_TIMEOUT, "", try_load(text));
    mr_kernel_module_release(module);
    OK(mr_machine_reset(&caller));
    module = module_of(text);
    assert_int_equal(read_word(variable(module, device, "counter"), 0), 7);
    mr_kernel_module_release(module);
}

CUDA_TEST_MAIN(
    TEST(a_kernel_runs_when_its_stream_gets_there), TEST(a_pointer_may_point_into_a_tensor),
    TEST(registers_are_those_that_the_driver_uses),
    TEST(a_struct_and_a_large_block_of_parameters_arrive), TEST(pinned_memory_is_an_operand),
    TEST(what_no_launch_can_use_is_refused), TEST(variables_are_read_and_written_by_both_sides),
    TEST(what_the_driver_left_out_is_missed_when_it_is_asked_for),
    TEST(each_device_has_variables_of_its_own), TEST(a_peer_reaches_what_it_was_given_access_to),
    TEST(more_shared_memory_is_asked_for_once), TEST(static_shared_memory_counts_too),
    TEST(a_module_stays_while_its_kernel_is_pending),
    TEST(a_module_stays_while_one_looks_at_its_variable), TEST(many_modules_are_told_apart),
    TEST(a_reset_takes_modules_with_it), TEST(what_the_driver_rejects_is_told_in_its_words),
    TEST(loading_lets_host_functions_run_first),
    TEST(a_launch_that_the_driver_refuses_loses_nothing),
    TEST(a_failure_is_that_of_the_kernel_and_its_line), TEST(several_kernels_are_candidates),
    TEST(a_kernel_that_does_not_end_is_ended_by_the_system))

#else
CUDA_TEST_MAIN()
#endif
