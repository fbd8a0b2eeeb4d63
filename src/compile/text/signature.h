/* The parameters of a kernel as its C text declares them. In PTX a pointer is only 8 bytes; its type, and whether it
 * is const, are in the source. This is not a compiler: a part that it does not understand (a macro, a type that is a
 * template's parameter) stays unknown. */
#ifndef MR_COMPILE_SIGNATURE_H
#define MR_COMPILE_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char name[40];
    char type[64]; /* "const float *", for messages */
    /* in one spelling: "float", "unsigned int", "long long", "unsigned char", "void"; else as written */
    char base[40];
    int pointers;  /* stars */
    bool is_const; /* what it points to */
} mr_c_param;

/* Finds the `__global__` function `name` (without template arguments) in `text`, and writes at most `most` parameters.
 * Returns how many it has; -1: there is none of that name, or it cannot be read, or there are several that take
 * different things. */
int mr_signature_find(const char *text, size_t size, const char *name, mr_c_param *out, int most);
/* The type of the __device__ or __constant__ variable `name` into `out`, in the spelling of mr_c_param.base; false: it
 * is not found. */
bool mr_signature_variable(const char *text, size_t size, const char *name, char *out,
                           size_t out_size);

#endif
