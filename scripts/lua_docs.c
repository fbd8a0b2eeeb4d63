/*
 * lua_docs: makes C records of the usage lines and help texts that stand in front of functions written in Lua.
 *
 *     lua_docs OUT.c FILE.lua...
 *
 * Runs at build time on the machine that compiles. A class is named once with its C name, its owners and its text, and again,
 * without the text, in each further file that has functions of it:
 *
 *     --# scheduler of mr.optim.lr_scheduler.Scheduler: What all schedulers have.
 *     --# scheduler
 *
 * A function's comment begins with the usage line, whose further lines are indented. The text follows, then the function:
 *
 *     --- s:state_dict()
 *     ---   -> state: table
 *     --- Returns the epoch and the first rates, as tensors.
 *     function methods.state_dict(s)
 *
 * OUT.c defines mr_scheduler_class (bind/bind.h). A class of `tensor, mr` becomes two: its functions whose usage begins with
 * "mr." are no methods. The functions stand in the order of the files, and of each file.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CLASSES = 32, MAX_FUNCTIONS = 512, LINE = 512, TEXT = 4096 };

typedef struct {
    char id[64], owner[64], text[LINE];
    int is_pair; /* of tensors and of mr */
    int count;   /* its functions */
} class_;

typedef struct {
    int class;
    char name[64], usage[TEXT], text[TEXT];
} function;

static class_ classes[MAX_CLASSES];
static function functions[MAX_FUNCTIONS];
static int class_count, function_count;

static const char *path;
static int line_number;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: ", path, line_number);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(1);
}

/* --- reading -------------------------------------------------------------- */

static void append(char *to, const char *words) {
    if (strlen(to) + strlen(words) + 2 > TEXT) die("the comment is too long");
    if (*to) strcat(to, " ");
    strcat(to, words);
}

static int find_class(const char *id) {
    for (int i = 0; i < class_count; i++)
        if (strcmp(classes[i].id, id) == 0) return i;
    return -1;
}

/* "scheduler of mr.optim.lr_scheduler.Scheduler: What all schedulers have.", or "scheduler" */
static int read_class(const char *line) {
    char id[64], owner[64];
    int text = 0;
    if (sscanf(line, "%63[a-z_] of %63[A-Za-z_., ]: %n", id, owner, &text) == 2 && text > 0) {
        if (find_class(id) >= 0) die("the class %s is there already", id);
        if (class_count == MAX_CLASSES) die("more than %d classes", MAX_CLASSES);
        class_ *made = &classes[class_count];
        made->is_pair = strcmp(owner, "tensor, mr") == 0;
        if (!made->is_pair && strncmp(owner, "mr.", 3) != 0) die("%s is no table of mr", owner);
        snprintf(made->id, sizeof made->id, "%s", id);
        snprintf(made->owner, sizeof made->owner, "%s", owner);
        snprintf(made->text, sizeof made->text, "%s", line + text);
        return class_count++;
    }
    int class = find_class(line);
    if (class < 0) die("there is no class `%s`", line);
    return class;
}

/* The name in "mr.nn.Linear(inputs: integer)" */
static void read_name(function *f) {
    size_t end = strcspn(f->usage, "("), begin = end;
    while (begin > 0 && (isalnum((unsigned char)f->usage[begin - 1]) || f->usage[begin - 1] == '_'))
        begin--;
    if (!f->usage[end] || begin == end || end - begin >= sizeof f->name)
        die("`%s` is no usage line", f->usage);
    memcpy(f->name, f->usage + begin, end - begin);
    for (int i = 0; i < function_count; i++)
        if (functions[i].class == f->class && strcmp(functions[i].name, f->name) == 0)
            die("%s has its comment twice", f->name);
}

static int has_word(const char *line, const char *word) {
    size_t length = strlen(word);
    for (const char *at = line; (at = strstr(at, word)) != NULL; at++) {
        int before = at > line ? (unsigned char)at[-1] : ' ', behind = (unsigned char)at[length];
        if (!isalnum(before) && before != '_' && !isalnum(behind) && behind != '_') return 1;
    }
    return 0;
}

/* The function whose comment has ended, in front of the line that must define it. */
static void end_comment(function *f, const char *line) {
    if (!*f->text) die("%s has no text", f->usage);
    read_name(f);
    if (!has_word(line, f->name)) die("the comment of %s stands in front of `%s`", f->name, line);
    if (function_count == MAX_FUNCTIONS) die("more than %d functions", MAX_FUNCTIONS);
    functions[function_count++] = *f;
    classes[f->class].count++;
}

static void read_file(void) {
    FILE *in = fopen(path, "r");
    char buffer[LINE];
    static function f; /* its usage is empty outside comments */
    int class = -1;
    line_number = 0;
    *f.usage = 0;
    if (!in) die("cannot be opened");
    while (fgets(buffer, sizeof buffer, in)) {
        char *line = buffer;
        line_number++;
        line[strcspn(line, "\n")] = 0;
        while (*line == ' ') line++;
        if (strncmp(line, "--# ", 4) == 0) {
            class = read_class(line + 4);
        } else if (strncmp(line, "--- ", 4) == 0) {
            if (class < 0) die("no `--#` line names the class");
            const char *words = line + 4 + strspn(line + 4, " ");
            if (!*f.usage) f = (function){.class = class};
            if (!*f.usage || (words > line + 4 && !*f.text)) append(f.usage, words);
            else append(f.text, words);
        } else if (*f.usage && strncmp(line, "--", 2) != 0) {
            end_comment(&f, line);
            *f.usage = 0;
        }
    }
    if (ferror(in)) die("cannot be read");
    fclose(in);
    if (*f.usage) die("nothing follows the comment");
}

/* --- writing -------------------------------------------------------------- */

static void write_text(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', out);
}

/* The Lua module that has the bodies, and the table in what it returns: "nn" and "Module" for mr.nn.Module. */
static void write_place(FILE *out, const class_ *class) {
    const char *place = class->is_pair ? "functional" : class->owner + 3;
    size_t length = strcspn(place, ".");
    fprintf(out, "&mr_lua_%.*s, \"%s\"", (int)length, place,
            place + length + (place[length] == '.'));
}

static void write_list(FILE *out, int class, const char *suffix, int with_functions) {
    fprintf(out, "static const mr_function *const %s%s_list[] = {", classes[class].id, suffix);
    for (int i = 0, k = 0; i < function_count; i++) {
        if (functions[i].class != class) continue;
        if (with_functions || strncmp(functions[i].usage, "mr.", 3) != 0)
            fprintf(out, "&%s[%d], ", classes[class].id, k);
        k++;
    }
    fputs("NULL};\n", out);
}

static void write_class(FILE *out, int class, const char *suffix, const char *owner,
                        const char *kind) {
    fprintf(out, "const mr_class mr_%s%s_class = {\"%s\", ", classes[class].id, suffix, owner);
    write_text(out, classes[class].text);
    fprintf(out, ", %s%s_list, NULL, %s};\n", classes[class].id, suffix, kind);
}

static void write_all(FILE *out, int class) {
    fprintf(out, "\nstatic const mr_function %s[] = {\n", classes[class].id);
    for (int i = 0; i < function_count; i++) {
        if (functions[i].class != class) continue;
        fprintf(out, "    {\"%s\", ", functions[i].name);
        write_text(out, functions[i].usage);
        fputs(", ", out);
        write_text(out, functions[i].text);
        fputs(", mr_call_lua, ", out);
        write_place(out, &classes[class]);
        fputs("},\n", out);
    }
    fputs("};\n", out);
    int is_pair = classes[class].is_pair;
    write_list(out, class, "", !is_pair);
    write_class(out, class, "", is_pair ? "tensor" : classes[class].owner,
                is_pair ? "&mr_kind_tensor" : "NULL");
    if (!is_pair) return;
    write_list(out, class, "_functions", 1);
    write_class(out, class, "_functions", "mr", "NULL");
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: lua_docs OUT.c FILE.lua...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        path = argv[i];
        read_file();
    }
    FILE *out = fopen(argv[1], "w");
    path = argv[1];
    line_number = 0;
    if (!out) die("cannot be written");
    fputs("/* Written by scripts/lua_docs.c. */\n#include \"bind/lua_body.h\"\n#include "
          "\"bind/open.h\"\n",
          out);
    for (int i = 0; i < class_count; i++) {
        if (classes[i].count == 0) die("the class %s has no functions", classes[i].id);
        write_all(out, i);
    }
    if (fclose(out) != 0) die("cannot be written");
    return 0;
}
