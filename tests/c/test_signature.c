/* A kernel's parameters and variables, read from its text (compile/text/signature.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/text/signature.h"

#define MOST 8

/* "float* x|int n" for "base pointers name" of each parameter; "-" where it cannot be read. */
static const char *read_all(const char *text, const char *name, char *out, size_t size) {
    mr_c_param params[MOST];
    char one[sizeof params + 8];
    int count = mr_signature_find(text, strlen(text), name, params, MOST);
    snprintf(out, size, "%s", count < 0 ? "-" : "");
    for (int i = 0; i < count && i < MOST; i++) {
        snprintf(one, sizeof one, "%s%s%.*s %s", i ? "|" : "", params[i].base, params[i].pointers,
                 "***", params[i].name);
        strncat(out, one, size - strlen(out) - 1);
    }
    return out;
}

static void parameters_as_they_are_declared(void **state) {
    (void)state;
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"__global__ void k(float *x, const int *y, int n)", "float* x|int* y|int n"},
        {"extern \"C\" __global__ void k() {}", ""},
        {"__global__ void k(void)", ""},
        {"__global__ void __launch_bounds__(256, 2) k(double d)", "double d"},
        {"__global__ __launch_bounds__(N * N) __cluster_dims__(2) void k(double d)", "double d"},
        {"template <typename T, int N> __global__ void k(T *__restrict__ out, const T t)",
         "T* out|T t"},
        {"static __global__ void k(unsigned n, unsigned long m, long long l, size_t s)",
         "unsigned int n|unsigned long long m|long long l|unsigned long long s"},
        {"__global__ void k(const unsigned char *const p, signed char c, uint16_t u)",
         "unsigned char* p|signed char c|unsigned short u"},
        {"__global__ void k(float x[], float **rows, float m[4][4])",
         "float* x|float** rows|float** m"},
        {"__global__ void k(int n = 3, float f = 2.0f, const char *p = nullptr)",
         "int n|float f|char* p"},
        {"__global__ void k(ns::pair<int, float> p, std::size_t n)",
         "ns::pair<int,float> p|unsigned long long n"},
        {"__global__ void k(struct motion m, const float4 *p)", "motion m|float4* p"},
        {"// __global__ void k(int wrong)\n__global__ void k(int right)", "int right"},
        {"/* __global__ void k(int wrong) */ __global__ void k(int right)", "int right"},
        {"const char *s = \"__global__ void k(int wrong)\"; __global__ void k(int right)",
         "int right"},
        {"#define K __global__ void k(int wrong) \\\n  more\n__global__ void k(int right)",
         "int right"},
        {"__global__ void other(int a); __global__ void k(int b)", "int b"},
        {"__global__ void k(int a /* , int b */, // int c\n int d)", "int a|int d"},
        /* declared, and defined below */
        {"__global__ void k(int a, float *b); __global__ void k(int a, float *b) {}",
         "int a|float* b"},
        /* two functions of one name */
        {"__global__ void k(int a); namespace n { __global__ void k(float a); }", "-"},
        {"__global__ void k(int a); __global__ void k(int a, int b);", "-"},
        /* what is not understood */
        {"__global__ void k(float *, int)", "-"},
        {"__global__ void k(float (*f)(int))", "-"},
        {"__device__ void k(int n)", "-"},
        {"__global__ void kk(int n)", "-"},
        {"__global__ void k", "-"},
        {"__global__ void k(", "-"},
        {"__global__ void k(int a,", "-"},
        {"__global__", "-"},
        {"", "-"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[512];
        read_all(rows[i].text, "k", got, sizeof got);
        if (strcmp(got, rows[i].expected) != 0)
            fail_msg("%s: got %s, expected %s", rows[i].text, got, rows[i].expected);
    }
}

static void more_parameters_than_there_is_room_for_are_counted(void **state) {
    (void)state;
    mr_c_param params[2];
    const char *text = "__global__ void k(int a, int b, int c)";
    assert_int_equal(mr_signature_find(text, strlen(text), "k", params, 2), 3);
    assert_string_equal(params[1].name, "b");
}

static void const_is_that_of_what_is_pointed_to(void **state) {
    (void)state;
    mr_c_param p[3];
    const char *text = "__global__ void k(const float *a, float const *b, float *const c)";
    assert_int_equal(mr_signature_find(text, strlen(text), "k", p, 3), 3);
    assert_true(p[0].is_const && p[1].is_const);
    assert_false(p[2].is_const);
    assert_string_equal(p[0].type, "const float*");
}

static void long_words_are_cut(void **state) {
    (void)state;
    char text[2000], name[600];
    mr_c_param p[2];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(text, sizeof text, "__global__ void k(%s *%s, int m)", name, name);
    assert_int_equal(mr_signature_find(text, strlen(text), "k", p, 2), 2);
    assert_int_equal(strlen(p[0].name), sizeof p[0].name - 1);
    assert_int_equal(strlen(p[0].base), sizeof p[0].base - 1);
    assert_int_equal(p[0].pointers, 1);
}

static void types_of_variables(void **state) {
    (void)state;
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"__device__ float v[4];", "float"},
        {"__constant__ unsigned v = 3;", "unsigned int"},
        {"static __device__ const long long v[2][3] = { 1 };", "long long"},
        {"extern \"C\" __device__ int v;", "int"},
        {"__device__ __managed__ double v{0};", "double"},
        {"__device__ float f(int v); __device__ int v;", "int"},
        {"__device__ int w; int v;", "-"},
        {"__device__ float", "-"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[64] = "-";
        if (!mr_signature_variable(rows[i].text, strlen(rows[i].text), "v", got, sizeof got))
            strcpy(got, "-");
        if (strcmp(got, rows[i].expected) != 0)
            fail_msg("%s: got %s, expected %s", rows[i].text, got, rows[i].expected);
    }
}

/* A text that stops anywhere, or has any bytes in it: under AddressSanitizer nothing behind its end is read. */
static void any_text(void **state) {
    (void)state;
    static const char text[] =
        "#define X \\\n 1\n/* a */ // b\nextern \"C\" __global__ void __launch_bounds__(1) "
        "k(const float *__restrict__ x, int n = '\\'', A<B<int>> c[]) { \"s\\\"\" }\n"
        "__device__ int v[3] = { 1 };";
    mr_c_param params[MOST];
    char base[64];
    uint32_t random = 1;
    for (size_t size = 0; size < sizeof text; size++) {
        for (int round = 0; round < 40; round++) {
            char *copy = malloc(size + 1);
            memcpy(copy, text, size);
            for (int k = 0; k < round % 8 && size; k++) {
                random = random * 1664525 + 1013904223;
                copy[(random >> 8) % size] = "()*<>,=/\\\"'#[]{}x\n\0\xff"[(random >> 3) % 20];
            }
            char *exact = malloc(size ? size : 1);
            memcpy(exact, copy, size);
            free(copy);
            assert_in_range(mr_signature_find(exact, size, "k", params, MOST) + 1, 0, 64);
            mr_signature_variable(exact, size, "v", base, sizeof base);
            free(exact);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_as_they_are_declared),
        cmocka_unit_test(more_parameters_than_there_is_room_for_are_counted),
        cmocka_unit_test(const_is_that_of_what_is_pointed_to),
        cmocka_unit_test(long_words_are_cut),
        cmocka_unit_test(types_of_variables),
        cmocka_unit_test(any_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
