/* Shared by the tests of the CUDA backend: a machine on the fake driver (tests/fake_cuda), which decides what is
 * pending. After each test nothing is left in the driver. Built without CUDA, a program of these says so and is
 * skipped. */
#ifndef MR_TESTS_CUDA_FIXTURE_H
#define MR_TESTS_CUDA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if !MR_HAVE_CUDA

#define CUDA_TEST_MAIN(...)                                                                        \
    int main(void) {                                                                               \
        puts("not available: this build has no CUDA backend");                                     \
        return 77;                                                                                 \
    }

#else

#include <dlfcn.h>
#include <unistd.h>

#include "cuda/cuda.h"
#include "fake_cuda.h"
#include "ops/call.h"

static fake_cuda_control *fake;
static mr_machine *machine;
static mr_caller caller; /* of the machine */
static mr_device *device;
static int own_registered; /* the machine's own pinned memory */

#define OK(expression)                                                                             \
    do {                                                                                           \
        mr_status ok_status_ = (expression);                                                       \
        if (ok_status_) fail_msg("%s: %s", mr_code_text(ok_status_->code), ok_status_->message);   \
    } while (0)

/* The call fails with this code, and the message contains the text. */
#define FAILS(code_, text_, expression)                                                            \
    do {                                                                                           \
        mr_status fails_status_ = (expression);                                                    \
        assert_non_null(fails_status_);                                                            \
        assert_string_equal(mr_code_text(fails_status_->code), mr_code_text(code_));               \
        if (!strstr(fails_status_->message, text_))                                                \
            fail_msg("message: %s", fails_status_->message);                                       \
        mr_error_destroy(fails_status_);                                                           \
    } while (0)

/* ---- the driver and the machine */

/* The fake driver lies beside the folder of the test programs. */
static inline void find_driver(void) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    assert_true(length > 0);
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    strcat(path, "/../fake_cuda/libcuda.so.1");
    setenv("MILLRACE_LIBCUDA", path, 1);
    setenv("MILLRACE_LIBCUBLAS", "/no/cublas/in/tests", 1);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    fake = dlsym(library, "fake_cuda");
    assert_non_null(fake);
}

static inline int setup(void **state) {
    (void)state;
    if (!fake) find_driver();
    memset(fake, 0, sizeof *fake);
    OK(mr_machine_open(&mr_cuda_backend, NULL, &machine));
    caller = (mr_caller){.machine = machine};
    device = machine->devices[0];
    /* A kernel is loaded at its first launch, which waits for host functions: once for all tests. */
    OK(mr_spin(&caller, device->legacy, 1000));
    OK(mr_stream_synchronize(&caller, device->legacy));
    fake->launches = fake->kernels_run = fake->queries = 0;
    own_registered = fake->registered;
    return 0;
}

static size_t left_over;

static inline void note_left_over(const char *kind, size_t count) {
    print_error("%zu %s were not released\n", count, kind);
    left_over += count;
}

static inline int teardown(void **state) {
    (void)state;
    fake->hold = fake->no_memory_operations = false;
    fake->hardware_queues = 0;
    left_over = 0;
    if (machine) machine->hooks.left_over = note_left_over;
    mr_machine_close(machine);
    machine = NULL;
    assert_int_equal(left_over, 0);
    assert_int_equal(fake->contexts, 0);
    assert_int_equal(fake->streams, 0);
    assert_int_equal(fake->events, 0);
    assert_int_equal(fake->blocks, 0);
    assert_int_equal(fake->registered, 0);
    assert_int_equal(fake->modules, 0);
    return 0;
}

/* ---- objects: the test that makes them lets go of them */

static inline mr_stream *stream_on(mr_device *where, bool nonblocking, const char *name) {
    mr_stream *stream;
    mr_stream_options options = {.nonblocking = nonblocking, .name = name};
    OK(mr_stream_create(&caller, where, &options, &stream));
    return stream;
}
static inline mr_stream *free_stream(void) { /* cudaStreamNonBlocking */
    return stream_on(device, true, NULL);
}

static inline mr_event *new_event(bool timing) {
    mr_event *event;
    mr_event_options options = {.timing = timing};
    OK(mr_event_create(&caller, &options, &event));
    return event;
}

static inline mr_tensor *tensor(mr_memory_kind kind, mr_stream *stream, int64_t size) {
    mr_tensor *t;
    OK(mr_tensor_create(&caller, kind, stream, MR_I32, 1, &size, &t));
    return t;
}
static inline void drop(mr_tensor *t) {
    mr_storage_drop_handle(t->storage);
    mr_tensor_release(t);
}
/* The bytes as they are, without asking anyone. The fake driver's device memory is memory. */
static inline int32_t *values(const mr_tensor *t) {
    return (int32_t *)(uintptr_t)t->storage->address + t->offset;
}

static inline bool stream_done(mr_stream *stream) {
    bool done;
    OK(mr_stream_query(&caller, stream, &done));
    return done;
}
static inline bool event_done(mr_event *event) {
    bool done;
    OK(mr_event_query(&caller, event, &done));
    return done;
}

/* ---- work */

static inline void launch(mr_stream *stream) {
    OK(mr_spin(&caller, stream, 1000));
}
static inline void launch_at(mr_stream *stream, int line) {
    mr_caller at = {.machine = machine, .where = {"script.lua", line}};
    OK(mr_spin(&at, stream, 1000));
}
static inline void copy(mr_stream *stream, mr_tensor *to, mr_tensor *from) {
    OK(mr_memcpy(&caller, to, from, stream, false));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define CUDA_TEST_MAIN(...)                                                                        \
    int main(void) {                                                                               \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                           \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }

#endif
#endif
