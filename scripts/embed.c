/*
 * embed: writes a C file that carries other files inside the binary.
 *
 *     embed OUT.c NAME=PATH...
 *
 * Runs at build time on the machine that compiles. OUT.c defines mr_embedded_files (src/base/embedded.h):
 * one row a file in the order given, then a row whose name is NULL. Each file gets a NUL after its last
 * byte, not counted in its size, so that text can be used as a C string.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *name) {
    fprintf(stderr, "embed: %s: ", what);
    perror(name);
    exit(1);
}

/* One byte in a string. Octal numbers have three digits, so that none takes in what follows; `?` begins trigraphs. */
static void write_byte(FILE *out, int c) {
    if (c == '\n') fputs("\\n\"\n\"", out);
    else if (c == '"' || c == '\\' || c == '?') fprintf(out, "\\%c", c);
    else if (c >= ' ' && c < 127) putc(c, out);
    else fprintf(out, "\\%03o", c);
}

/* Returns the size; sets *hash to the FNV-1a hash of the bytes. A string a line: a compiler takes ten times as long for
 * a list of numbers. */
static size_t write_string(FILE *out, const char *path, unsigned long long *hash) {
    FILE *in = fopen(path, "rb");
    size_t size = 0;
    int c;

    *hash = 0xcbf29ce484222325ull;

    if (!in) die("cannot open", path);
    putc('"', out);
    for (; (c = getc(in)) != EOF; size++) {
        write_byte(out, c);
        *hash = (*hash ^ (unsigned char)c) * 0x100000001b3ull;
    }
    putc('"', out);
    if (ferror(in)) die("cannot read", path);
    fclose(in);
    return size;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: embed OUT.c NAME=PATH...\n");
        return 2;
    }
    FILE *out = fopen(argv[1], "w");
    size_t *size = calloc((size_t)argc, sizeof *size);
    unsigned long long *hash = calloc((size_t)argc, sizeof *hash);
    if (!out || !size || !hash) die("cannot write", argv[1]);

    fputs("/* Written by scripts/embed.c. */\n#include \"base/embedded.h\"\n\n", out);
    for (int i = 2; i < argc; i++) {
        const char *eq = strchr(argv[i], '=');
        if (!eq) {
            fprintf(stderr, "embed: '%s': expected NAME=PATH\n", argv[i]);
            return 2;
        }
        fprintf(out, "static const unsigned char file_%d[] =\n", i);
        size[i] = write_string(out, eq + 1, &hash[i]);
        fputs(";\n\n", out);
    }
    fputs("const mr_embedded mr_embedded_files[] = {\n", out);
    for (int i = 2; i < argc; i++) {
        int name_length = (int)(strchr(argv[i], '=') - argv[i]);
        fprintf(out, "    {\"%.*s\", file_%d, %zu, 0x%llxu},\n", name_length, argv[i], i, size[i], hash[i]);
    }
    fputs("    {NULL, NULL, 0, 0},\n};\n", out);
    if (fclose(out) != 0) die("cannot write", argv[1]);
    free(size);
    free(hash);
    return 0;
}
