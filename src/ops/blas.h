/* CBLAS, opened at run time: the matrix products of f32 and f64 where a library is installed. */
#ifndef MR_OPS_BLAS_H
#define MR_OPS_BLAS_H

#include <stdbool.h>

/* Their numbers in the CBLAS interface. */
enum { MR_BLAS_ROW_MAJOR = 101, MR_BLAS_PLAIN = 111, MR_BLAS_TRANSPOSED = 112 };

typedef struct {
    void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*dgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                  const double *a, int lda, const double *b, int ldb, double beta, double *c,
                  int ldc);
    void (*sgemv)(int order, int transpose, int m, int n, float alpha, const float *a, int lda,
                  const float *x, int incx, float beta, float *y, int incy);
    void (*dgemv)(int order, int transpose, int m, int n, double alpha, const double *a, int lda,
                  const double *x, int incx, double beta, double *y, int incy);
} mr_blas;

/* NULL: there is none. The first call opens it, which takes milliseconds. */
const mr_blas *mr_blas_open(void);
/* Around each call of a function of it. */
void mr_blas_enter(void);
void mr_blas_leave(void);
/* The library's file name for `millrace doctor`. NULL: products use our own loops, and *out_missing says why. */
const char *mr_blas_name(const char **out_missing);

#endif
