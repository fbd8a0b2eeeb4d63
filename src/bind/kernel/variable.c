/* m:global: the variables of a module as tensors. The module owns their memory; a tensor of one is a view. */
#include <string.h>

#include "bind/kernel/kernel.h"
#include "bind/nearest.h"
#include "bind/open.h"

/* The variable of that name in the source; sets *out_symbol to its name in the PTX. */
static const ptx_variable *find_variable(const mr_kernel_unit *unit, const char *name) {
    const ptx_tree *tree = mr_ptx_module_tree(unit->module->code->ptx);
    char own[MR_LONGEST_NAME + 1];
    for (uint32_t i = 0; i < tree->variable_count; i++) {
        const ptx_variable *v = &tree->variables[i];
        if (v->space != PTX_GLOBAL && v->space != PTX_CONST) continue;
        if (strcmp(v->name, name) == 0 ||
            strcmp(mr_kernel_source_name(unit, v->name, own, sizeof own), name) == 0)
            return v;
    }
    return NULL;
}

static int no_such_variable(lua_State *L, const mr_kernel_unit *unit, const char *name) {
    const ptx_tree *tree = mr_ptx_module_tree(unit->module->code->ptx);
    char own[MR_LONGEST_NAME + 1];
    mr_nearest nearest;
    mr_nearest_begin(&nearest, name);
    for (uint32_t i = 0; i < tree->variable_count; i++)
        if (tree->variables[i].space == PTX_GLOBAL || tree->variables[i].space == PTX_CONST)
            mr_nearest_offer(&nearest,
                             mr_kernel_source_name(unit, tree->variables[i].name, own, sizeof own));
    const char *meant = mr_nearest_found(&nearest);
    if (meant)
        return mr_misuse(L, "global: the module has no variable `%s`: did you mean `%s`?", name,
                         meant);
    return mr_misuse(L,
                     "global: the module has no __device__ or __constant__ variable `%s`; the "
                     "compiler removes variables that no kernel uses",
                     name);
}

static bool dtype_of_base(const char *base, mr_dtype *out) {
    static const struct {
        const char *base;
        mr_dtype dtype;
    } known[] = {
        {"float", MR_F32},          {"double", MR_F64},      {"int", MR_I32},
        {"unsigned int", MR_I32},   {"long long", MR_I64},   {"unsigned long long", MR_I64},
        {"bool", MR_BOOL},          {"__half", MR_F16},      {"half", MR_F16},
        {"__nv_bfloat16", MR_BF16}, {"nv_bfloat16", MR_BF16}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].base, base) == 0) {
            *out = known[i].dtype;
            return true;
        }
    return false;
}

static mr_dtype dtype_of_ptx(ptx_type type) {
    switch (type) {
    case PTX_f32: return MR_F32;
    case PTX_f64: return MR_F64;
    case PTX_u32:
    case PTX_s32:
    case PTX_b32: return MR_I32;
    case PTX_u64:
    case PTX_s64:
    case PTX_b64: return MR_I64;
    default: return MR_U8;
    }
}

/* The type of its elements: from the script (argument 3), from the C text, or from the PTX. */
static mr_dtype variable_dtype(lua_State *L, const mr_kernel_unit *unit, const char *name,
                               const ptx_variable *v) {
    mr_dtype dtype = MR_U8;
    char base[64] = "";
    if (!lua_isnoneornil(L, 3)) {
        const char *text = mr_check_name(L, 3);
        if (!mr_dtype_find(text, &dtype)) mr_misuse(L, "global: there is no dtype \"%s\"", text);
        return dtype;
    }
    if (unit->text) mr_signature_variable(unit->text, unit->size, name, base, sizeof base);
    return dtype_of_base(base, &dtype) ? dtype : dtype_of_ptx(v->type);
}

MR_FUNCTION(module_global, "global", "m:global(name: string [, dtype: string]) -> t: tensor",
            "Returns the `__device__` or `__constant__` variable of that name, on the current "
            "device, as a tensor. It has no dims if it is one value, and one dim if it is an "
            "array. `dtype` says how to read it; by default as the source declares it, and structs "
            "as bytes (u8). The tensor may be written between launches, also if the variable is "
            "`__constant__`, as with cudaMemcpyToSymbol.") {
    mr_caller caller = mr_enter(L);
    const mr_kernel_unit *unit = mr_check_kernel_unit(L, 1);
    const char *name = mr_check_name(L, 2);
    const ptx_variable *v = find_variable(unit, name);
    if (!v) return no_such_variable(L, unit, name);
    mr_tensor *bytes;
    mr_raise(L, mr_kernel_variable(&caller, unit->module, caller.machine->current_device, v->name,
                                   &bytes, &v));
    mr_dtype dtype = variable_dtype(L, unit, name, v);
    int64_t size = (int64_t)mr_dtype_size(dtype), count = (int64_t)v->bytes / size, stride = 1;
    if (count * size != (int64_t)v->bytes)
        return mr_misuse(L, "global: %s has %lld bytes, which is no whole number of %s elements",
                         name, (long long)v->bytes, mr_dtype_text(dtype));
    mr_tensor **slot = mr_new_tensor(L);
    mr_raise(L, mr_tensor_view(&caller, bytes, dtype, v->count > 1 || count > 1 ? 1 : 0, &count,
                               &stride, 0, slot));
    return 1;
}

static const mr_function *const functions[] = {&module_global_function, NULL};
const mr_class mr_module_variables_class = {"module", "The variables of a module.", functions, NULL,
                                            &mr_kind_module};

void mr_open_kernel_variable(lua_State *L) {
    mr_class_extend(L, &mr_module_variables_class);
}
