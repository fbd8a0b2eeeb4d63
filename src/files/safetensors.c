/* .safetensors: the length of the header in 8 bytes, the header, and the bytes of all tensors, without gaps. The header
 * is a JSON object that has the dtype, the shape and the range of bytes of each tensor.
 *
 * Easiest to break: each byte after the header belongs to exactly one tensor. The format demands it, so that no data
 * can be hidden in a file, and no two tensors share memory. */
#include "files/formats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "files/json.h"

enum { LENGTH = 8, ALIGNMENT = 8 };
static const uint64_t most_header = 100000000; /* the format's own limit */
static const char notes_key[] = "__metadata__";

static mr_status no_memory(const mr_tensor_file *file) {
    return mr_no_memory("to read `%.300s`", file->path);
}

/* Makes the error for the reader's position. */
static mr_status bad_json(const mr_tensor_file *file, const mr_json *j, const char *expected) {
    if (j->out_of_memory) return no_memory(file);
    return mr_file_bad(file, "the header is wrong at byte %td: expected %s",
                       j->at - j->begin + LENGTH, expected);
}

/* ------------------------------------------------------------------------- one tensor */

enum { HAS_DTYPE = 1, HAS_SHAPE = 2, HAS_OFFSETS = 4, HAS_ALL = 7 };

static mr_status take_dtype(const mr_tensor_file *file, mr_json *j, mr_file_tensor *tensor) {
    char *tag;
    if (!mr_json_string(j, &tag)) return bad_json(file, j, "a string for `dtype`");
    const mr_file_dtype *found = mr_file_dtype_tagged(tag);
    mr_status status = MR_OK;
    if (found) tensor->dtype = found->dtype;
    else
        status = mr_file_bad(file, "tensor `%.100s` has the dtype %.20s, which tensors do not have",
                             tensor->name, tag);
    free(tag);
    return status;
}

static mr_status take_shape(const mr_tensor_file *file, mr_json *j, mr_file_tensor *tensor) {
    bool bad;
    if (!mr_json_take(j, '[')) return bad_json(file, j, "a list for `shape`");
    for (size_t count = 0; mr_json_next(j, ']', &count, &bad);) {
        int64_t size;
        if (!mr_json_size(j, &size)) return bad_json(file, j, "a size from 0 to 2^63 - 1");
        if (tensor->ndim == MR_MAX_DIMS)
            return mr_file_bad(file, "tensor `%.100s` has more than %d dims", tensor->name,
                               MR_MAX_DIMS);
        tensor->shape[tensor->ndim++] = size;
    }
    return bad ? bad_json(file, j, "a comma or ]") : MR_OK;
}

/* Relative to the end of the header, which check_places adds. */
static mr_status take_offsets(const mr_tensor_file *file, mr_json *j, mr_file_tensor *tensor) {
    int64_t begin, end;
    if (!mr_json_take(j, '[') || !mr_json_size(j, &begin) || !mr_json_take(j, ',') ||
        !mr_json_size(j, &end) || !mr_json_take(j, ']'))
        return bad_json(file, j, "`data_offsets` of the form [begin, end]");
    if (end < begin)
        return mr_file_bad(file,
                           "tensor `%.100s` ends at %" PRId64 ", before its begin at %" PRId64,
                           tensor->name, end, begin);
    tensor->offset = (uint64_t)begin;
    tensor->bytes = (uint64_t)(end - begin);
    return MR_OK;
}

static mr_status take_field(const mr_tensor_file *file, mr_json *j, mr_file_tensor *tensor,
                            int *has) {
    char *key;
    if (!mr_json_string(j, &key)) return bad_json(file, j, "a key");
    int is = strcmp(key, "dtype") == 0          ? HAS_DTYPE
             : strcmp(key, "shape") == 0        ? HAS_SHAPE
             : strcmp(key, "data_offsets") == 0 ? HAS_OFFSETS
                                                : 0;
    mr_status status = MR_OK;
    if (*has & is) status = mr_file_bad(file, "tensor `%.100s` has `%s` twice", tensor->name, key);
    free(key);
    if (status) return status;
    *has |= is;
    if (!mr_json_take(j, ':')) return bad_json(file, j, "a colon");
    if (is == HAS_DTYPE) return take_dtype(file, j, tensor);
    if (is == HAS_SHAPE) return take_shape(file, j, tensor);
    if (is == HAS_OFFSETS) return take_offsets(file, j, tensor);
    return mr_json_skip(j) ? MR_OK : bad_json(file, j, "a value");
}

/* Checks that the offsets are those of the shape and the dtype. */
static mr_status check_bytes(const mr_tensor_file *file, const mr_file_tensor *tensor) {
    mr_file_tensor measured = *tensor;
    if (!mr_file_measure(&measured))
        return mr_file_bad(file, "the shape of tensor `%.100s` has too many elements",
                           tensor->name);
    if (measured.bytes == tensor->bytes) return MR_OK;
    return mr_file_bad(
        file, "tensor `%.100s` has %" PRIu64 " bytes, but its shape and dtype need %" PRIu64,
        tensor->name, tensor->bytes, measured.bytes);
}

static mr_status take_tensor(const mr_tensor_file *file, mr_json *j, mr_file_tensor *tensor) {
    int has = 0;
    bool bad;
    if (!mr_json_take(j, '{')) return bad_json(file, j, "an object for each tensor");
    for (size_t count = 0; mr_json_next(j, '}', &count, &bad);)
        MR_TRY(take_field(file, j, tensor, &has));
    if (bad) return bad_json(file, j, "a comma or }");
    if (has != HAS_ALL)
        return mr_file_bad(file, "tensor `%.100s` lacks %s", tensor->name,
                           !(has & HAS_DTYPE)   ? "`dtype`"
                           : !(has & HAS_SHAPE) ? "`shape`"
                                                : "`data_offsets`");
    return check_bytes(file, tensor);
}

/* ------------------------------------------------------------------------- the header */

static mr_status take_note(mr_tensor_file *file, mr_json *j) {
    mr_file_note note = {0};
    if (mr_json_string(j, &note.key) && mr_json_take(j, ':') && mr_json_string(j, &note.value)) {
        if (mr_vec_push(&file->notes, note)) return MR_OK;
        j->out_of_memory = true;
    }
    free(note.key);
    free(note.value);
    return bad_json(file, j, "only strings in `__metadata__`");
}

static mr_status take_notes(mr_tensor_file *file, mr_json *j) {
    bool bad;
    if (!mr_json_take(j, '{')) return bad_json(file, j, "an object for `__metadata__`");
    for (size_t count = 0; mr_json_next(j, '}', &count, &bad);) MR_TRY(take_note(file, j));
    return bad ? bad_json(file, j, "a comma or }") : MR_OK;
}

/* `name: ...`; the file's list takes the name. */
static mr_status take_entry(mr_tensor_file *file, mr_json *j, bool *has_notes) {
    char *name;
    if (!mr_json_string(j, &name)) return bad_json(file, j, "a name");
    if (!mr_json_take(j, ':')) {
        free(name);
        return bad_json(file, j, "a colon");
    }
    if (strcmp(name, notes_key) == 0) {
        free(name);
        if (*has_notes) return mr_file_bad(file, "`%s` is there twice", notes_key);
        *has_notes = true;
        return take_notes(file, j);
    }
    if (!mr_vec_push(&file->tensors, ((mr_file_tensor){.name = name}))) {
        free(name);
        return no_memory(file);
    }
    return take_tensor(file, j, &file->tensors.items[file->tensors.count - 1]);
}

static mr_status take_header(mr_tensor_file *file, mr_json *j) {
    bool bad, has_notes = false;
    if (j->at == j->end || *j->at != '{') return bad_json(file, j, "{");
    j->at++;
    for (size_t count = 0; mr_json_next(j, '}', &count, &bad);)
        MR_TRY(take_entry(file, j, &has_notes));
    if (bad) return bad_json(file, j, "a comma or }");
    while (j->at < j->end && *j->at == ' ') j->at++;
    return j->at < j->end ? bad_json(file, j, "only blanks after the last }") : MR_OK;
}

/* ------------------------------------------------------------------------- the header as a whole */

static int by_key(const void *a, const void *b) {
    return strcmp(((const mr_file_note *)a)->key, ((const mr_file_note *)b)->key);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const mr_file_tensor *)a)->name, ((const mr_file_tensor *)b)->name);
}

static int by_offset(const void *a_, const void *b_) {
    const mr_file_tensor *a = a_, *b = b_;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

static mr_status check_names(mr_tensor_file *file) {
    if (file->notes.count)
        qsort(file->notes.items, file->notes.count, sizeof *file->notes.items, by_key);
    for (size_t i = 1; i < file->notes.count; i++)
        if (strcmp(file->notes.items[i - 1].key, file->notes.items[i].key) == 0)
            return mr_file_bad(file, "`__metadata__` has the key `%.100s` twice",
                               file->notes.items[i].key);
    if (file->tensors.count)
        qsort(file->tensors.items, file->tensors.count, sizeof *file->tensors.items, by_name);
    for (size_t i = 1; i < file->tensors.count; i++)
        if (strcmp(file->tensors.items[i - 1].name, file->tensors.items[i].name) == 0)
            return mr_file_bad(file, "the name `%.100s` is there twice",
                               file->tensors.items[i].name);
    return MR_OK;
}

/* Checks that the tensors, in the order of their offsets, follow each other without gaps up to the end of the file. */
static mr_status check_places(mr_tensor_file *file, uint64_t header_end) {
    uint64_t available = file->size - header_end, end = 0;
    if (file->tensors.count)
        qsort(file->tensors.items, file->tensors.count, sizeof *file->tensors.items, by_offset);
    for (size_t i = 0; i < file->tensors.count; i++) {
        mr_file_tensor *t = &file->tensors.items[i];
        if (t->offset > available || t->bytes > available - t->offset)
            return mr_file_bad(file,
                               "the file ends in the middle of tensor `%.100s`: there are %" PRIu64
                               " bytes behind the header",
                               t->name, available);
        if (t->offset < end)
            return mr_file_bad(file, "the bytes of the tensors `%.100s` and `%.100s` overlap",
                               t[-1].name, t->name);
        if (t->offset > end)
            return mr_file_bad(file, "%" PRIu64 " bytes before tensor `%.100s` belong to no tensor",
                               t->offset - end, t->name);
        end += t->bytes;
        t->offset += header_end;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        t->swapped = mr_dtype_size(t->dtype) > 1;
#endif
    }
    if (end < available)
        return mr_file_bad(file, "%" PRIu64 " bytes at the end belong to no tensor",
                           available - end);
    return MR_OK;
}

mr_status mr_safetensors_read(mr_tensor_file *file) {
    unsigned char length[LENGTH];
    MR_TRY(mr_file_take(file, 0, LENGTH, "the header", length));
    uint64_t size = 0;
    for (int i = LENGTH - 1; i >= 0; i--) size = size << 8 | length[i];
    if (size > most_header)
        return mr_file_bad(file, "the header has %" PRIu64 " bytes, expected at most %" PRIu64,
                           size, most_header);
    if (size > file->size - LENGTH)
        return mr_file_bad(file,
                           "the file ends in the middle of the header: it has %" PRIu64 " bytes",
                           file->size);
    char *header = malloc((size_t)size + 1);
    if (!header) return no_memory(file);
    mr_status status = mr_file_take(file, LENGTH, size, "the header", header);
    mr_json j = {header, header, header + size, false};
    if (!status) status = take_header(file, &j);
    if (!status) status = check_names(file);
    if (!status) status = check_places(file, LENGTH + size);
    free(header);
    return status;
}

/* ------------------------------------------------------------------------- writing */

static mr_status check_text(const char *what, const char *text) {
    if (mr_is_utf8(text)) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s \"%.100s\" is no UTF-8, which .safetensors demands", what, text);
}

mr_status mr_safetensors_can_write(const mr_named_tensor *tensors, size_t count,
                                   const mr_file_note *notes, size_t note_count) {
    for (size_t i = 0; i < count; i++) {
        MR_TRY(check_text("the name", tensors[i].name));
        if (strcmp(tensors[i].name, notes_key) == 0)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "`%s` cannot be the name of a tensor: the format uses it for texts",
                           notes_key);
    }
    for (size_t i = 0; i < note_count; i++) {
        MR_TRY(check_text("the key", notes[i].key));
        MR_TRY(check_text("the text", notes[i].value));
    }
    return MR_OK;
}

/* Larger elements first, so that each tensor begins at a multiple of its element's size; then by name. */
static int by_size_and_name(const void *a_, const void *b_) {
    const mr_named_tensor *a = *(const mr_named_tensor *const *)a_,
                          *b = *(const mr_named_tensor *const *)b_;
    size_t size_a = mr_dtype_size(a->tensor->dtype), size_b = mr_dtype_size(b->tensor->dtype);
    if (size_a != size_b) return size_a > size_b ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int note_by_key(const void *a, const void *b) {
    return strcmp((*(const mr_file_note *const *)a)->key, (*(const mr_file_note *const *)b)->key);
}

static void put_notes(mr_buffer *out, const mr_file_note *const *notes, size_t count) {
    if (!count) return;
    mr_buffer_printf(out, "\"%s\":{", notes_key);
    for (size_t i = 0; i < count; i++) {
        if (i) mr_buffer_puts(out, ",");
        mr_text_put_json(out, notes[i]->key);
        mr_buffer_puts(out, ":");
        mr_text_put_json(out, notes[i]->value);
    }
    mr_buffer_puts(out, "}");
}

/* Describes a tensor whose bytes begin at *io_offset, and moves *io_offset past them. */
static void put_tensor(mr_buffer *out, const mr_named_tensor *named, uint64_t *io_offset) {
    const mr_tensor *t = named->tensor;
    mr_text_put_json(out, named->name);
    mr_buffer_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", mr_file_dtype_of(t->dtype)->tagged);
    for (int d = 0; d < t->ndim; d++)
        mr_buffer_printf(out, "%s%" PRId64, d ? "," : "", t->shape[d]);
    uint64_t end = *io_offset + (uint64_t)t->numel * mr_dtype_size(t->dtype);
    mr_buffer_printf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", *io_offset, end);
    *io_offset = end;
}

/* Arrays of pointers to the elements of an array, to sort them without moving them. */
static const void **pointers_to(const void *items, size_t count, size_t size,
                                int (*compare)(const void *, const void *)) {
    const void **list = malloc((count + 1) * sizeof *list);
    if (!list) return NULL;
    for (size_t i = 0; i < count; i++) list[i] = (const char *)items + i * size;
    qsort(list, count, sizeof *list, compare);
    return list;
}

static bool write_header(FILE *file, const mr_named_tensor *const *tensors, size_t count,
                         const mr_file_note *const *notes, size_t note_count) {
    mr_buffer header = {0};
    uint64_t offset = 0;
    mr_buffer_puts(&header, "{");
    put_notes(&header, notes, note_count);
    for (size_t i = 0; i < count; i++) {
        if (i || note_count) mr_buffer_puts(&header, ",");
        put_tensor(&header, tensors[i], &offset);
    }
    mr_buffer_puts(&header, "}");
    while (header.size % ALIGNMENT && !header.failed) mr_buffer_puts(&header, " ");
    bool complete = !header.failed;
    if (complete) {
        unsigned char length[LENGTH];
        for (int i = 0; i < LENGTH; i++)
            length[i] = (unsigned char)((uint64_t)header.size >> (8 * i));
        fwrite(length, 1, LENGTH, file);
        fwrite(header.data, 1, header.size, file);
    }
    mr_buffer_free(&header);
    return complete;
}

mr_status mr_safetensors_write(FILE *file, const mr_named_tensor *tensors, size_t count,
                               const mr_file_note *notes, size_t note_count) {
    const void **sorted = pointers_to(tensors, count, sizeof *tensors, by_size_and_name);
    const void **texts = pointers_to(notes, note_count, sizeof *notes, note_by_key);
    bool complete = sorted && texts &&
                    write_header(file, (const mr_named_tensor *const *)sorted, count,
                                 (const mr_file_note *const *)texts, note_count);
    for (size_t i = 0; complete && i < count && !ferror(file); i++)
        mr_elements_write(file, ((const mr_named_tensor *)sorted[i])->tensor);
    free(sorted);
    free(texts);
    return complete ? MR_OK : mr_no_memory("to write a header");
}
