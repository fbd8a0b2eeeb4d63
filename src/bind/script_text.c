/* Whether a line of Lua can be put into a script, judged by the script's text: by its layout, not by
 * its grammar. Where the layout is odd the answer is no, and the checker proposes a cure without a new
 * variable. Asked when a report is written and at no other time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bind/hazard.h"

#define LARGEST (1 << 20)

static char *read_script(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > LARGEST)
        return NULL;
    FILE *file = fopen(path, "rb");
    char *text = file ? calloc(1, (size_t)status.st_size + 1) : NULL;
    if (text && fread(text, 1, (size_t)status.st_size, file) != (size_t)status.st_size)
        text[0] = '\0';
    if (file) fclose(file);
    return text;
}

static bool is_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool starts_with(const char *at, const char *word) {
    size_t length = strlen(word);
    return strncmp(at, word, length) == 0 && !(is_word(word[length - 1]) && is_word(at[length]));
}

static bool starts_with_any(const char *at, const char *const *words) {
    for (; *words; words++)
        if (starts_with(at, *words)) return true;
    return false;
}

static size_t indentation(const char *line) {
    return strspn(line, " \t");
}

static bool says_nothing(const char *line) {
    line += indentation(line);
    return *line == '\0' || *line == '\n' || *line == '\r' || strncmp(line, "--", 2) == 0;
}

static const char *next_line(const char *line) {
    line += strcspn(line, "\n");
    return *line ? line + 1 : NULL;
}

/* All brackets that the line opens are closed on it. */
static bool is_balanced(const char *line) {
    int depth = 0;
    for (const char *p = line; *p && *p != '\n'; p++) {
        if (strncmp(p, "--", 2) == 0) break;
        if (*p == '"' || *p == '\'') {
            char quote = *p++;
            while (*p && *p != '\n' && *p != quote) p += *p == '\\' && p[1] ? 2 : 1;
            if (*p != quote) return false;
        } else if (strchr("({[", *p)) {
            depth++;
        } else if (strchr(")}]", *p) && --depth < 0) {
            return false;
        }
    }
    return depth == 0;
}

static bool in_comment(const char *text, const char *at) {
    while (at > text && at[-1] != '\n')
        if (*--at == '-' && at[1] == '-') return true;
    return false;
}

static bool is_used(const char *text, const char *name) {
    size_t length = strlen(name);
    for (const char *p = text; (p = strstr(p, name)) != NULL; p++)
        if ((p == text || !is_word(p[-1])) && !is_word(p[length]) && !in_comment(text, p))
            return true;
    return false;
}

/* From `line` (number `first`) to number `second`: the same block, or one inside it. */
static bool reaches(const char *line, int first, int second) {
    static const char *const last_words[] = {"return", "break", "goto", NULL};
    static const char *const inner_words[] = {"else", "elseif", "until", "end",
                                              ")",    "}",      "]",     NULL};
    size_t depth = indentation(line);
    if (says_nothing(line) || !is_balanced(line) || starts_with_any(line + depth, last_words))
        return false;
    bool is_next = true;
    for (int number = first + 1; number <= second; number++) {
        line = next_line(line);
        if (!line) return false;
        if (says_nothing(line)) continue;
        size_t here = indentation(line);
        if (here < depth || (is_next && here > depth) || strncmp(line + here, "::", 2) == 0)
            return false;
        if ((is_next || number == second) && starts_with_any(line + here, inner_words))
            return false;
        is_next = false;
    }
    return !is_next;
}

bool mr_bind_event_fits(mr_site first, mr_site second, char *name, size_t size) {
    static const char *const names[] = {"e", "ready", "done", "e2", "e3", "e4", NULL};
    if (!first.file || !second.file || strcmp(first.file, second.file) != 0) return false;
    if (first.line < 1 || first.line >= second.line) return false;
    char *text = read_script(first.file);
    const char *line = text, *const *free_name = names;
    for (int number = 1; line && number < first.line; number++) line = next_line(line);
    bool fits = line && reaches(line, first.line, second.line);
    while (fits && *free_name && is_used(text, *free_name)) free_name++;
    fits = fits && *free_name;
    if (fits) snprintf(name, size, "%s", *free_name);
    free(text);
    return fits;
}
