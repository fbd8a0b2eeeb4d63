/* The element types: names, promotion, and the conversion of one element. Whole blocks are converted
 * by ops/body/convert.c with the same rules. */
#include "tensor/dtype.h"

#include "base/half.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *text;
    size_t size;
    int category;
} dtypes[] = {
#define X(name, type, text, category) [MR_##name] = {text, sizeof(type), category},
    MR_DTYPE_LIST(X)
#undef X
};

/* PyTorch's words for them. */
static const struct {
    const char *text;
    mr_dtype dtype;
} aliases[] = {
    {"uint8", MR_U8},      {"byte", MR_U8},    {"int32", MR_I32},   {"int", MR_I32},
    {"int64", MR_I64},     {"long", MR_I64},   {"float32", MR_F32}, {"float", MR_F32},
    {"float64", MR_F64},   {"double", MR_F64}, {"float16", MR_F16}, {"half", MR_F16},
    {"bfloat16", MR_BF16},
};

size_t mr_dtype_size(mr_dtype dtype) {
    return dtypes[dtype].size;
}

const char *mr_dtype_text(mr_dtype dtype) {
    return dtypes[dtype].text;
}

int mr_dtype_category(mr_dtype dtype) {
    return dtypes[dtype].category;
}

bool mr_dtype_find(const char *text, mr_dtype *out_dtype) {
    for (int i = 0; i < MR_DTYPE_COUNT; i++) {
        if (strcmp(text, dtypes[i].text) == 0) {
            *out_dtype = (mr_dtype)i;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (strcmp(text, aliases[i].text) == 0) {
            *out_dtype = aliases[i].dtype;
            return true;
        }
    }
    return false;
}

bool mr_dtype_holds(mr_dtype dtype, int64_t i) {
    switch (dtype) {
    case MR_BOOL: return i == 0 || i == 1;
    case MR_U8: return i >= 0 && i <= UINT8_MAX;
    case MR_I32: return i >= INT32_MIN && i <= INT32_MAX;
    default: return true;
    }
}

double mr_dtype_greatest(mr_dtype dtype) {
    switch (dtype) {
    case MR_F16: return 0x1.ffcp15;
    case MR_BF16: return 0x1.fep127;
    case MR_F32: return (double)FLT_MAX;
    default: return DBL_MAX;
    }
}

mr_dtype mr_dtype_promote(mr_dtype a, mr_dtype b) {
    if (dtypes[a].category != dtypes[b].category)
        return dtypes[a].category > dtypes[b].category ? a : b;
    if (dtypes[a].size == dtypes[b].size && a != b && mr_dtype_is_half(a)) return MR_F32;
    return dtypes[a].size >= dtypes[b].size ? a : b;
}

mr_dtype mr_dtype_of_number(mr_scalar number) {
    if (number.is_bool) return MR_BOOL;
    return number.is_integer ? MR_I64 : MR_F32;
}

void mr_promotion_add(mr_promotion *promotion, mr_rank rank, mr_dtype dtype) {
    uint8_t *known = &promotion->dtype[rank];
    if (*known) dtype = mr_dtype_promote((mr_dtype)(*known - 1), dtype);
    *known = (uint8_t)(dtype + 1);
}

mr_dtype mr_promotion_result(const mr_promotion *promotion) {
    int category = -1;
    mr_dtype result = MR_BOOL;
    for (int rank = 0; rank < MR_RANK_COUNT; rank++) {
        int known = promotion->dtype[rank];
        if (known == 0 || dtypes[known - 1].category <= category) continue;
        result = (mr_dtype)(known - 1);
        category = dtypes[result].category;
    }
    return result;
}

/* Modulo 256. From 2^63 on every double is a multiple of 256. */
static uint8_t wrapped(double value) {
    return value >= -9223372036854775808.0 && value < 9223372036854775808.0
               ? (uint8_t)(int64_t)value
               : 0;
}

/* C leaves the conversion of a value outside the type's range undefined; here it saturates, and NaN gives 0. */
static int64_t saturate(double value, double low, double high, int64_t least, int64_t greatest) {
    if (isnan(value)) return 0;
    if (value <= low) return least;
    if (value >= high) return greatest;
    return (int64_t)value;
}

void mr_dtype_store(mr_dtype dtype, void *address, mr_scalar value) {
    switch (dtype) {
    case MR_BOOL: {
        uint8_t v = value.is_integer ? value.i != 0 : value.f != 0;
        memcpy(address, &v, sizeof v);
        return;
    }
    case MR_U8: {
        uint8_t v = value.is_integer ? (uint8_t)value.i : wrapped(value.f);
        memcpy(address, &v, sizeof v);
        return;
    }
    case MR_I32: {
        int32_t v = value.is_integer
                        ? (int32_t)value.i
                        : (int32_t)saturate(value.f, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX);
        memcpy(address, &v, sizeof v);
        return;
    }
    case MR_I64: {
        int64_t v =
            value.is_integer ? value.i : saturate(value.f, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
        memcpy(address, &v, sizeof v);
        return;
    }
    case MR_F32: {
        float v = value.is_integer ? (float)value.i : (float)value.f;
        memcpy(address, &v, sizeof v);
        return;
    }
    case MR_F64: {
        double v = value.is_integer ? (double)value.i : value.f;
        memcpy(address, &v, sizeof v);
        return;
    }
    case MR_F16: {
        uint16_t v = value.is_integer ? mr_f16_from_i64(value.i) : mr_f16_from_f64(value.f);
        memcpy(address, &v, sizeof v);
        return;
    }
    case MR_BF16: {
        uint16_t v = value.is_integer ? mr_bf16_from_i64(value.i) : mr_bf16_from_f64(value.f);
        memcpy(address, &v, sizeof v);
        return;
    }
    case MR_DTYPE_COUNT: break;
    }
}

mr_scalar mr_dtype_load(mr_dtype dtype, const void *address) {
    mr_scalar value = {.is_integer = true};
    switch (dtype) {
    case MR_BOOL: value.i = *(const uint8_t *)address != 0; break;
    case MR_U8: value.i = *(const uint8_t *)address; break;
    case MR_I32: value.i = *(const int32_t *)address; break;
    case MR_I64: value.i = *(const int64_t *)address; break;
    case MR_F32: value = (mr_scalar){.f = (double)*(const float *)address}; return value;
    case MR_F64: value = (mr_scalar){.f = *(const double *)address}; return value;
    case MR_F16: return (mr_scalar){.f = (double)mr_f32_from_f16(*(const uint16_t *)address)};
    case MR_BF16: return (mr_scalar){.f = (double)mr_f32_from_bf16(*(const uint16_t *)address)};
    case MR_DTYPE_COUNT: break;
    }
    value.f = (double)value.i;
    return value;
}
