/* The boxes of modules and kernels, and what both files of them need. */
#ifndef MR_BIND_KERNEL_H
#define MR_BIND_KERNEL_H

#include "bind/internal.h"
#include "compile/signature.h"
#include "ops/kernel.h"

/* The text of a module, counted: each of its kernels reads signatures from it. */
typedef struct {
    unsigned refs;
    size_t size;
    char text[];
} mr_kernel_source;

typedef struct {
    mr_kernel_module *module;
    mr_kernel_source *source; /* CUDA C; NULL: it was given as PTX */
    char **names,
        **entries; /* the C++ names that were asked for, and their symbols; ends with NULL */
} mr_module_box;

typedef enum {
    MR_ARGUMENT_POINTER,
    MR_ARGUMENT_INTEGER,
    MR_ARGUMENT_FLOAT,
    MR_ARGUMENT_ANY, /* 8 bytes of which nobody knows whether they are a pointer */
    MR_ARGUMENT_STRUCT,
} mr_argument_kind;

/* One parameter, as arguments are checked against it. */
typedef struct {
    mr_argument_kind kind;
    uint8_t dtypes;   /* POINTER: bit d: takes tensors of that dtype; 0: of any */
    bool is_unsigned; /* INTEGER */
    bool is_bool;
    uint8_t access; /* what the script said: MR_READ | MR_WRITE, or 0 */
    mr_c_param c;   /* c.name is always set; c.type is "" if there is no source */
} mr_kernel_param;

typedef struct {
    mr_kernel_module *module;
    const mr_ptx_kernel *ptx;
    char *name;
    mr_kernel_param *params; /* ptx->param_count */
    bool strided;            /* tensors need not be contiguous */
} mr_kernel_box;

/* Pushes the kernel `name` of the module at stack index `at`. `name` NULL: the only one that there is. */
void mr_push_kernel(lua_State *L, int at, const char *name);
/* What mr.module does, with the source at 1 and the options' table at 2 (nil: none); pushes the module. `name`: a kernel
 * that must be in it, or NULL. */
void mr_push_kernel_module(lua_State *L, const mr_caller *caller, const char *name,
                           const mr_option_slots *options);

#endif
