// Integers: bits, high products, divisions, shifts, small and large types.
// kernel: bit_functions
// kernel: products
// kernel: divisions
// kernel: small_types

extern "C" __global__ void bit_functions(unsigned int *out, const unsigned int *in, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned int x = in[i], *o = out + 10 * i;
    unsigned long long wide = (unsigned long long)x * 0x9e3779b97f4a7c15ull;
    o[0] = __popc(x);
    o[1] = __clz(x);
    o[2] = __ffs(x);
    o[3] = __brev(x);
    o[4] = __byte_perm(x, ~x, 0x5140);
    o[5] = __popcll(wide);
    o[6] = __clzll(wide);
    o[7] = (unsigned int)(__brevll(wide) >> 32);
    o[8] = __funnelshift_l(x, ~x, x & 31);
    o[9] = x << (x & 7) | x >> (32 - (x & 7 | 1));
}

extern "C" __global__ void products(long long *out, const long long *in, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    long long x = in[i], *o = out + 7 * i;
    o[0] = __mul64hi(x, 0x123456789abcdefll);
    o[1] = (long long)__umul64hi((unsigned long long)x, 0xfedcba9876543210ull);
    o[2] = __mulhi((int)x, (int)(x >> 32));
    o[3] = __umulhi((unsigned int)x, 0x80000001u);
    o[4] = __mul24((int)x & 0x7fffff, 12345);
    o[5] = (long long)(int)x * (int)(x >> 32) + x;
    o[6] = __sad((int)x, (int)(x >> 32), 7u);
}

extern "C" __global__ void divisions(int *out, const int *a, const int *b, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count || b[i] == 0) return;
    int *o = out + 6 * i;
    o[0] = a[i] / b[i];
    o[1] = a[i] % b[i];
    o[2] = (int)((unsigned int)a[i] / (unsigned int)b[i]);
    o[3] = (int)((unsigned int)a[i] % (unsigned int)b[i]);
    o[4] = (int)(((long long)a[i] << 20) / b[i]);
    o[5] = a[i] / 7 + a[i] % 10;
}

extern "C" __global__ void small_types(signed char *c, unsigned char *u, short *s, unsigned short *v, bool *flags, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    c[i] = (signed char)(c[i] * 3 + 1);
    u[i] = (unsigned char)(u[i] >> 1 ^ 0x5a);
    s[i] = (short)(s[i] - c[i]);
    v[i] = (unsigned short)(v[i] * v[i]);
    flags[i] = s[i] > 0 && !flags[i];
}
