/* The boxes of modules and kernels, and what the files of them share. params.c knows what a kernel takes,
 * arguments.c checks what a script passes, module.c compiles and loads, kernel.c launches. */
#ifndef MR_BIND_KERNEL_KERNEL_H
#define MR_BIND_KERNEL_KERNEL_H

#include "bind/internal.h"
#include "compile/text/signature.h"
#include "ops/kernel.h"

/* The result of a compilation or a load. The userdata of the module and those of its kernels share it. */
typedef struct {
    unsigned refs;
    mr_kernel_module *module;
    char *text; /* CUDA C, from which signatures are read; NULL: it was given as PTX */
    size_t size;
    char **names,
        **entries; /* the C++ names that were asked for, and their symbols; end with NULL */
} mr_kernel_unit;

typedef struct {
    mr_kernel_unit *unit; /* NULL: gone */
} mr_module_box;

typedef enum {
    MR_ARGUMENT_POINTER,
    MR_ARGUMENT_INTEGER,
    MR_ARGUMENT_FLOAT,
    MR_ARGUMENT_ANY, /* 8 bytes that may be a pointer or not */
    MR_ARGUMENT_STRUCT,
} mr_argument_kind;

/* One parameter, as arguments are checked against it. */
typedef struct {
    mr_argument_kind kind;
    uint8_t dtypes; /* POINTER: bit d: takes tensors of dtype d; 0: of any dtype */
    int64_t least,
        most; /* INTEGER; of 8 bytes: all integers, whose upper half stands for unsigned ones */
    uint8_t access; /* the access that the script declared: MR_READ | MR_WRITE, or 0 */
    mr_c_param c;   /* c.name is always set; c.type is "" if there is no source */
} mr_kernel_param;

typedef struct {
    mr_kernel_unit *unit; /* NULL: gone */
    const mr_ptx_kernel *ptx;
    mr_name *counted_name;   /* its launches hold it */
    const char *name;        /* the text of it */
    mr_kernel_param *params; /* ptx->param_count */
    bool strided;            /* tensors need not be contiguous */
} mr_kernel_box;

/* ---- params.c */

/* The parameters of the kernel `name`, by its PTX and by what the C text declares; NULL: no memory. */
mr_kernel_param *mr_kernel_params_describe(const mr_ptx_kernel *ptx, const mr_kernel_unit *unit,
                                           const char *name);
/* "const float* x"; without source only the name. Returns `out`. */
const char *mr_kernel_param_text(const mr_kernel_param *param, char *out, size_t size);
/* Adds "float* y, const float* x" to the text. */
void mr_kernel_add_params(luaL_Buffer *text, const mr_kernel_box *kernel);

/* ---- arguments.c */

typedef struct {
    mr_kernel_box *kernel;
    mr_kernel_pointer *pointers; /* room for each parameter */
    uint32_t pointer_count;
    char *params; /* room for ptx->param_bytes; zeros */
    int first;    /* the stack index of the first argument */
} mr_kernel_passed;

/* Raises unless the stack holds so many arguments, at `first` and above, as the kernel takes. */
void mr_kernel_check_count(lua_State *L, const mr_kernel_box *kernel, int first);
/* Checks the arguments and fills in `passed`. Makes no Lua value unless it raises. */
void mr_kernel_check_arguments(lua_State *L, mr_kernel_passed *passed);

/* ---- module.c */

/* Does the work of mr.module, and pushes the module. The source is at 1. `options` (of the compiler) and `names` (of
 * templates' instances) are stack indices; 0: none. `name` is a kernel that the module must have; NULL: none. */
void mr_push_kernel_module(lua_State *L, const mr_caller *caller, int options, int names,
                           const char *name);
void mr_push_module_of(lua_State *L, mr_kernel_unit *unit); /* the userdata of it */
void mr_kernel_unit_release(mr_kernel_unit *unit);
mr_kernel_unit *mr_check_kernel_unit(lua_State *L, int arg); /* of the module at `arg` */
/* The kernel's name as in the source, if its symbol allows that. Returns `out`. */
const char *mr_kernel_source_name(const mr_kernel_unit *unit, const char *symbol, char *out,
                                  size_t size);

/* ---- kernel.c */

#endif
