/* Writes the PTX of kernels, as each compiler of this machine makes it: ptx_of OUT_FOLDER FILE.cu...
 * OUT_FOLDER/NAME.nvrtc.ptx and OUT_FOLDER/NAME.clang.ptx. Fails if a compiler rejects a file. */
#include "kernel_file.h"

#include "compile/compile.h"

static bool write_ptx(const char *folder, const char *path, const char *compiler,
                      const mr_compiled *compiled) {
    char out[4096];
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    snprintf(out, sizeof out, "%s/%.*s.%s.ptx", folder, (int)strcspn(name, "."), name, compiler);
    FILE *file = fopen(out, "wb");
    if (!file) return false;
    fwrite(compiled->ptx, 1, compiled->size, file);
    return fclose(file) == 0;
}

int main(int argc, char **argv) {
    static const char *const compilers[] = {"nvrtc", "clang"};
    int failures = 0;
    setenv("MILLRACE_CACHE", "off", 1);
    for (int c = 0; c < 2; c++) {
        setenv("MILLRACE_COMPILER", compilers[c], 1);
        for (int i = 2; i < argc; i++) {
            kernel_file file;
            mr_compiled compiled;
            if (!kernel_file_read(argv[i], &file)) return 2;
            mr_compile_source source = {.text = file.text,
                                        .size = file.size,
                                        .file = argv[i],
                                        .compute_major = 9,
                                        .names = file.names,
                                        .name_count = file.name_count};
            mr_status status = mr_compile(&source, &compiled);
            bool is_missing = status && status->code == MR_CODE_NOT_SUPPORTED;
            if (status) {
                fprintf(stderr, "%s: %s\n", compilers[c], status->message);
                mr_error_destroy(status);
                failures += !is_missing;
            } else {
                if (compiled.log) fprintf(stderr, "%s", compiled.log);
                failures += !write_ptx(argv[1], argv[i], compilers[c], &compiled);
                mr_compiled_free(&compiled);
            }
            kernel_file_free(&file);
            if (is_missing) break;
        }
    }
    return failures != 0;
}
