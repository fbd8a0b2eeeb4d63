/* A compiler's messages: see messages.h.
 *
 * A log is a list of messages. Each begins with a line that has a place and a severity, in one of two forms:
 *     FILE(LINE): error: TEXT                NVRTC
 *     FILE:LINE:COLUMN: error: TEXT          clang
 * The lines up to the next message belong to it. Lines that match neither form are kept as they
 * are, so a new release of a compiler can only make the text worse, never lose it. */
#include "compile/text/messages.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/internal.h"

#define MOST_TEXT ((size_t)16 << 10)

typedef struct {
    const char *file;
    size_t file_size;
    int line, column;     /* column 0: unknown */
    const char *severity; /* "error: TEXT" or "warning #177-D: TEXT", to the end of the line */
    const char *end;      /* of the line */
} message;

typedef enum { OF_USER, OF_NAME, OF_HEADER } owner;

static const char *line_end(const char *at) {
    return at + strcspn(at, "\n");
}

static bool starts_with(const char *at, const char *word) {
    return strncmp(at, word, strlen(word)) == 0;
}

static bool is_severity(const char *at) {
    static const char *const words[] = {"error",          "fatal error", "catastrophic error",
                                        "internal error", "warning",     "note",
                                        "remark"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (starts_with(at, words[i]) && strchr(": #", at[strlen(words[i])])) return true;
    return false;
}

static bool is_error(const message *m) {
    const char *colon = memchr(m->severity, ':', (size_t)(m->end - m->severity));
    const char *word = strstr(m->severity, "error");
    return word && colon && word < colon;
}

static bool read_number(const char **at, int *out) {
    char *after;
    if (!isdigit((unsigned char)**at)) return false;
    *out = (int)strtol(*at, &after, 10);
    *at = after;
    return true;
}

/* "(14): error" or ":14:7: error" at `at`, which is after the name of the file. */
static bool read_place(const char *at, message *out) {
    out->column = 0;
    char open = *at++;
    if ((open != '(' && open != ':') || !read_number(&at, &out->line)) return false;
    if (open == '(' && !starts_with(at, "): ")) return false;
    if (open == ':' && (*at++ != ':' || !read_number(&at, &out->column) || !starts_with(at, ": ")))
        return false;
    out->severity = at + (open == '(' ? 3 : 2);
    return is_severity(out->severity);
}

static bool read_message(const char *line, message *out) {
    static const char at_end[] = "At end of source: ";
    out->end = line_end(line);
    if (starts_with(line, at_end) && is_severity(line + strlen(at_end))) {
        *out = (message){.end = out->end, .severity = line + strlen(at_end)};
        return true;
    }
    for (const char *at = line; at < out->end; at++) {
        if ((*at == '(' || *at == ':') && at > line && read_place(at, out)) {
            out->file = line;
            out->file_size = (size_t)(at - line);
            return true;
        }
    }
    return false;
}

static bool file_starts_with(const message *m, const char *word) {
    return m->file && m->file_size >= strlen(word) && strncmp(m->file, word, strlen(word)) == 0;
}

static owner owner_of(const message *m) {
    if (file_starts_with(m, MR_COMPILE_NAMES) || file_starts_with(m, "__nv_name_map"))
        return OF_NAME;
    return file_starts_with(m, MR_COMPILE_ROOT "/") ? OF_HEADER : OF_USER;
}

/* Lines of a log that tell the user nothing. */
static bool is_noise(const char *line) {
    const char *at = line;
    while (isdigit((unsigned char)*at)) at++;
    bool is_count =
        at > line && (strstr(at, " detected in the compilation") || strstr(at, " generated"));
    if (is_count && (starts_with(at, " error") || starts_with(at, " warning") ||
                     starts_with(at, " catastrophic error")))
        return true;
    return starts_with(line, "Compilation terminated.") ||
           starts_with(line, "In file included from <built-in>") ||
           starts_with(line, "In file included from " MR_COMPILE_ROOT) ||
           starts_with(line, "Remark: The warnings can be suppressed") || *line == '\n';
}

/* NVRTC tells no column, but shows the line, indented by 2, and below it a caret. */
static int column_of(const char *body) {
    for (const char *line = body; *line; line = line_end(line) + (*line_end(line) == '\n')) {
        size_t blanks = strspn(line, " \t");
        if (line[blanks] == '^') return blanks >= 2 ? (int)blanks - 1 : 0;
        message next;
        if (read_message(line, &next)) return 0;
    }
    return 0;
}

static void put_line(mr_buffer *out, const char *line) {
    if (out->size > MOST_TEXT) return;
    mr_buffer_printf(out, "%s%.*s", out->size ? "\n" : "", (int)strcspn(line, "\n"), line);
    if (out->size > MOST_TEXT) mr_buffer_puts(out, "\n...");
}

static void put_message(mr_buffer *out, const message *m) {
    mr_buffer line = {0};
    if (!m->file) {
        mr_buffer_printf(&line, "at the end of the text: %.*s", (int)(m->end - m->severity),
                         m->severity);
        put_line(out, line.data ? line.data : "");
        mr_buffer_free(&line);
        return;
    }
    int column = m->column ? m->column : *m->end ? column_of(m->end + 1) : 0;
    mr_buffer_printf(&line, "%.*s:%d:", (int)m->file_size, m->file, m->line);
    if (column) mr_buffer_printf(&line, "%d:", column);
    mr_buffer_printf(&line, " %.*s", (int)(m->end - m->severity), m->severity);
    put_line(out, line.data ? line.data : "");
    mr_buffer_free(&line);
}

/* A header of ours: its name as it is included, without a line. */
static void put_header_message(mr_buffer *out, const message *m) {
    size_t root = strlen(MR_COMPILE_ROOT "/");
    mr_buffer line = {0};
    mr_buffer_printf(&line, "<%.*s>: %.*s", (int)(m->file_size - root), m->file + root,
                     (int)(m->end - m->severity), m->severity);
    put_line(out, line.data ? line.data : "");
    mr_buffer_free(&line);
}

/* NVRTC shows the name in the next line: "  #pragma nv_mangled_name foo<3>"; clang has it in line `index + 1`. */
static void note_name(mr_messages *out, const message *m, const char *const *names,
                      int name_count) {
    static const char title[] = "  #pragma nv_mangled_name ";
    if (out->bad_name >= 0) return;
    const char *shown = *m->end ? m->end + 1 : m->end;
    int index = file_starts_with(m, MR_COMPILE_NAMES) ? m->line - 1 : -1;
    if (starts_with(shown, title)) {
        shown += strlen(title);
        for (int i = 0; i < name_count; i++)
            if (strlen(names[i]) == strcspn(shown, "\n") && starts_with(shown, names[i])) index = i;
    }
    out->bad_name = index >= 0 && index < name_count ? index : 0;
    const char *text = strstr(m->severity, ": ");
    text = text && text < m->end ? text + 2 : m->severity;
    mr_buffer_add(&out->name_problem, text, (size_t)(m->end - text));
}

/* Returns whether the lines of the message's body are to be kept, too. */
static bool put_whole(mr_messages *out, const message *m, bool was_kept, const char *const *names,
                      int name_count) {
    bool is_note = starts_with(m->severity, "note");
    switch (owner_of(m)) {
    case OF_NAME:
        if (is_error(m)) note_name(out, m, names, name_count);
        return false;
    case OF_HEADER:
        if (!is_error(m)) return false;
        put_header_message(&out->text, m);
        out->error_count++;
        return false;
    default:
        if (is_note && !was_kept) return false;
        put_message(&out->text, m);
        out->error_count += is_error(m);
        return true;
    }
}

void mr_messages_read(const char *log, const char *const *names, int name_count, mr_messages *out) {
    bool is_kept = true, is_chain_kept = true; /* a note belongs to the message before it */
    *out = (mr_messages){.bad_name = -1};
    for (const char *line = log; *line;) {
        const char *end = line_end(line);
        message m;
        if (read_message(line, &m)) {
            is_kept = put_whole(out, &m, is_chain_kept, names, name_count);
            if (!starts_with(m.severity, "note"))
                is_chain_kept = is_kept || owner_of(&m) == OF_HEADER;
        } else if (is_kept && !is_noise(line)) put_line(&out->text, line);
        line = *end ? end + 1 : end;
    }
}

void mr_messages_free(mr_messages *messages) {
    mr_buffer_free(&messages->text);
    mr_buffer_free(&messages->name_problem);
}

char *mr_messages_move(const char *text, const char *old_file, const char *new_file, int lines) {
    mr_buffer out = {0};
    size_t length = strlen(old_file);
    mr_buffer_puts(&out, "");
    for (const char *line = text; *line;) {
        const char *end = line_end(line), *at = line + length + 1;
        int number;
        if (starts_with(line, old_file) && line[length] == ':' && read_number(&at, &number)) {
            mr_buffer_printf(&out, "%s:%d", new_file, number + lines);
            line = at;
        }
        end += *end == '\n';
        mr_buffer_add(&out, line, (size_t)(end - line));
        line = end;
    }
    if (!out.failed) return out.data;
    mr_buffer_free(&out);
    return NULL;
}
