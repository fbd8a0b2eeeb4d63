/* NumPy's .npy, versions 1 to 3: six bytes of magic, the version, the length of the header, the header (a Python dict
 * as text), and the elements.
 *
 * The dict is parsed by its grammar and not evaluated. It may have its keys in any order, and must have only the three
 * of the format. */
#include "files/formats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6, MOST_HEADER = 1 << 16, ALIGNMENT = 64 };

/* ------------------------------------------------------------------------- Python's literals */

typedef struct {
    const char *at, *end;
} text;

static bool skip_space(text *t) {
    while (t->at < t->end && strchr(" \t\r\n", *t->at) && *t->at) t->at++;
    return true;
}

static bool take(text *t, char c) {
    skip_space(t);
    if (t->at == t->end || *t->at != c) return false;
    t->at++;
    return true;
}

static bool take_word(text *t, const char *word) {
    size_t size = strlen(word);
    skip_space(t);
    if ((size_t)(t->end - t->at) < size || memcmp(t->at, word, size) != 0) return false;
    t->at += size;
    return true;
}

/* A string without escapes, in single or double quotes. */
static bool take_string(text *t, char *out, size_t size) {
    skip_space(t);
    char quote = t->at < t->end ? *t->at : 0;
    if (quote != '\'' && quote != '"') return false;
    size_t used = 0;
    for (t->at++; t->at < t->end && *t->at != quote; t->at++) {
        if (*t->at == '\\' || *t->at == '\n' || !*t->at || used + 1 == size) return false;
        out[used++] = *t->at;
    }
    out[used] = '\0';
    return take(t, quote);
}

/* False also if it does not fit. Python 2 wrote an L after long ones. */
static bool take_size(text *t, int64_t *out) {
    skip_space(t);
    const char *first = t->at;
    int64_t value = 0;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *t->at - '0', &value))
            return false;
    *out = value;
    return t->at > first && (take(t, 'L') || true);
}

/* ------------------------------------------------------------------------- the header */

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static mr_status take_shape(const mr_tensor_file *file, text *t, mr_file_tensor *tensor) {
    if (!take(t, '(')) return mr_file_bad(file, "the header has a shape that is no tuple");
    while (!take(t, ')')) {
        int64_t size;
        if (!take_size(t, &size))
            return mr_file_bad(file, "the header has a shape with a size that is no whole number "
                                     "from 0 to 2^63 - 1");
        if (tensor->ndim == MR_MAX_DIMS)
            return mr_file_bad(file, "the array has more than %d dims, which a tensor cannot have",
                               MR_MAX_DIMS);
        tensor->shape[tensor->ndim++] = size;
        if (!take(t, ',') && (t->at == t->end || *t->at != ')'))
            return mr_file_bad(file, "the header has a shape that is no tuple");
    }
    return MR_OK;
}

/* Names a type of NumPy that no tensor can have, and says what to do in NumPy. */
static const char *unknown_kind(char kind) {
    switch (kind) {
    case 'O':
        return "Python objects, which only Python can load: save an array of numbers, as "
               "a.astype(float)";
    case 'U':
    case 'S': return "texts: only numbers and bools can be loaded";
    case 'c': return "complex numbers: save a.real and a.imag in two files";
    case 'M':
    case 'm': return "dates or times: save a.astype(\"int64\")";
    case 'V': return "records or raw bytes: save each field in a file of its own";
    case 'i':
    case 'u': return "integers of a size that tensors do not have: save a.astype(\"int64\")";
    case 'f': return "floats of a size that tensors do not have: save a.astype(\"float64\")";
    default: return "of an unknown kind";
    }
}

static mr_status take_descr(const mr_tensor_file *file, text *t, mr_file_tensor *tensor) {
    char descr[32];
    skip_space(t);
    if (t->at < t->end && *t->at == '[')
        return mr_file_bad(file, "its elements are %s", unknown_kind('V'));
    if (!take_string(t, descr, sizeof descr) || !descr[0] || !strchr("<>=|", descr[0]) ||
        !descr[1] || descr[2] == '-' || descr[2] == '+' || descr[2] == ' ')
        return mr_file_bad(file, "the header has a `descr` that is no dtype of NumPy");
    char *end;
    uint64_t size = strtoul(descr + 2, &end, 10);
    const mr_file_dtype *found =
        end == descr + 2 || *end ? NULL : mr_file_dtype_numpy(descr[1], size);
    if (!found)
        return mr_file_bad(file, "the dtype is %s, and its elements are %s", descr,
                           unknown_kind(descr[1]));
    const uint16_t one = 1;
    bool host_is_little = *(const uint8_t *)&one == 1;
    tensor->dtype = found->dtype;
    tensor->swapped = found->size > 1 && descr[0] == (host_is_little ? '>' : '<');
    return MR_OK;
}

/* One `key: value`. */
static mr_status take_entry(const mr_tensor_file *file, text *t, mr_file_tensor *tensor, int *has) {
    char key[32];
    if (!take_string(t, key, sizeof key) || !take(t, ':'))
        return mr_file_bad(file, "the header is no dict with `descr`, `fortran_order` and `shape`");
    int is = strcmp(key, "descr") == 0           ? HAS_DESCR
             : strcmp(key, "fortran_order") == 0 ? HAS_ORDER
             : strcmp(key, "shape") == 0         ? HAS_SHAPE
                                                 : 0;
    if (!is || *has & is)
        return mr_file_bad(file, "the header has %s key `%s`", is ? "twice the" : "an unknown",
                           key);
    *has |= is;
    if (is == HAS_DESCR) return take_descr(file, t, tensor);
    if (is == HAS_SHAPE) return take_shape(file, t, tensor);
    if (take_word(t, "True")) tensor->first_dim_is_fastest = true;
    else if (!take_word(t, "False"))
        return mr_file_bad(file, "the header has a `fortran_order` that is not True or False");
    return MR_OK;
}

static mr_status take_dict(const mr_tensor_file *file, text *t, mr_file_tensor *tensor) {
    int has = 0;
    bool more = take(t, '{');
    if (!more) return mr_file_bad(file, "the header is no dict");
    while (!take(t, '}')) {
        if (!more) return mr_file_bad(file, "the header is no dict: a comma is missing");
        MR_TRY(take_entry(file, t, tensor, &has));
        more = take(t, ',');
    }
    skip_space(t);
    if (t->at < t->end) return mr_file_bad(file, "the header continues after the dict");
    if (has != HAS_ALL)
        return mr_file_bad(file, "the header lacks %s",
                           !(has & HAS_DESCR)   ? "`descr`"
                           : !(has & HAS_ORDER) ? "`fortran_order`"
                                                : "`shape`");
    return MR_OK;
}

/* Where the header is: after magic, version and its own length. */
static mr_status find_header(mr_tensor_file *file, uint64_t *out_offset, uint64_t *out_size) {
    unsigned char start[MAGIC + 2 + 4] = {0};
    if (file->size < MAGIC) return mr_file_bad(file, "it is no .npy file: it is too short");
    MR_TRY(mr_file_take(file, 0, MAGIC, "the header", start));
    if (memcmp(start, magic, MAGIC) != 0)
        return mr_file_bad(file, "it is no .npy file: it does not begin with \\x93NUMPY");
    MR_TRY(mr_file_take(file, 0, MAGIC + 2, "the header", start));
    int version = start[MAGIC], length = version == 1 ? 2 : 4;
    if (version < 1 || version > 3 || start[MAGIC + 1] != 0)
        return mr_file_bad(file, "its format has version %d.%d, expected 1.0, 2.0 or 3.0", version,
                           start[MAGIC + 1]);
    *out_offset = (uint64_t)(MAGIC + 2 + length);
    MR_TRY(mr_file_take(file, 0, *out_offset, "the header", start));
    *out_size = 0;
    for (int i = length - 1; i >= 0; i--) *out_size = *out_size << 8 | start[MAGIC + 2 + i];
    if (*out_size > MOST_HEADER)
        return mr_file_bad(file, "the header has %" PRIu64 " bytes, expected at most %d", *out_size,
                           MOST_HEADER);
    return MR_OK;
}

mr_status mr_npy_read(mr_tensor_file *file) {
    uint64_t offset = 0, size = 0;
    MR_TRY(find_header(file, &offset, &size));
    char *header = malloc((size_t)size + 1);
    if (!header) return mr_no_memory("to read `%.300s`", file->path);
    mr_file_tensor tensor = {.offset = offset + size};
    mr_status status = mr_file_take(file, offset, size, "the header", header);
    text t = {header, header + size};
    if (!status) status = take_dict(file, &t, &tensor);
    free(header);
    if (status) return status;
    if (!mr_file_measure(&tensor)) return mr_file_bad(file, "the shape has too many elements");
    if (tensor.bytes > file->size - tensor.offset)
        return mr_file_bad(file,
                           "the file ends in the middle of the elements: the shape needs %" PRIu64
                           " bytes, and there are %" PRIu64,
                           tensor.bytes, file->size - tensor.offset);
    if (!mr_vec_push(&file->tensors, tensor)) return mr_no_memory("to read `%.300s`", file->path);
    return MR_OK;
}

/* ------------------------------------------------------------------------- writing */

mr_status mr_npy_can_write(const mr_tensor *t) {
    if (mr_file_dtype_of(t->dtype)->numpy) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "NumPy has no dtype for %s: save t:to(\"f32\"), or {name = t} as .safetensors",
                   mr_dtype_text(t->dtype));
}

mr_status mr_npy_write(FILE *file, const mr_tensor *t) {
    const mr_file_dtype *dtype = mr_file_dtype_of(t->dtype);
    mr_buffer header = {0};
    mr_buffer_printf(&header, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
                     dtype->size > 1 ? '<' : '|', dtype->numpy, dtype->size);
    for (int d = 0; d < t->ndim; d++) /* a tuple of one has a comma, too */
        mr_buffer_printf(&header, "%" PRId64 "%s", t->shape[d],
                         d + 1 < t->ndim ? ", "
                         : t->ndim == 1  ? ","
                                         : "");
    mr_buffer_puts(&header, "), }");
    size_t start = MAGIC + 4;
    while ((start + header.size + 1) % ALIGNMENT && !header.failed) mr_buffer_puts(&header, " ");
    mr_buffer_puts(&header, "\n");
    if (header.failed) {
        mr_buffer_free(&header);
        return mr_no_memory("to write a header");
    }
    const unsigned char version[] = {1, 0, header.size & 255, (unsigned char)(header.size >> 8)};
    fwrite(magic, 1, MAGIC, file);
    fwrite(version, 1, sizeof version, file);
    fwrite(header.data, 1, header.size, file);
    mr_buffer_free(&header);
    mr_elements_write(file, t);
    return MR_OK;
}
