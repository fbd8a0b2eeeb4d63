// printf with each kind of argument.
// kernel: print_threads
// kernel: print_values

extern "C" __global__ void print_threads() {
    printf("block %d, thread %d of %d\n", blockIdx.x, threadIdx.x, blockDim.x);
}

extern "C" __global__ void print_values(const float *values, int count) {
    if (threadIdx.x != 0 || blockIdx.x != 0) return;
    printf("no arguments\n");
    printf("%d %i %u %x %c %%\n", -3, count, 4000000000u, 255, 'A');
    printf("%lld %llu %lx\n", -1234567890123ll, 12345678901234567890ull, 0xabcdefabcdefl);
    printf("%f %e %g %8.3f|%-8.2f|\n", 1.5, 1e10, 0.0001, values[0], values[count - 1]);
    printf("%s and %5s, at %s\n", "text", "ab", values ? "an address" : "none");
    printf("%hhd %hd %5d|%-5d|%05d|%+d\n", (char)65, (short)-2, 42, 42, 42, 42);
}
