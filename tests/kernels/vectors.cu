// Vector types: wide loads and stores, members, structures as arguments, dim3.
// kernel: copy_wide
// kernel: blend
// kernel: vector_kinds
// kernel: move_points

extern "C" __global__ void copy_wide(float4 *out, const float4 *in, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = in[i];
}

extern "C" __global__ void blend(uchar4 *out, const uchar4 *a, const uchar4 *b, int alpha, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    uchar4 p = a[i], q = b[i];
    out[i] = make_uchar4((p.x * alpha + q.x * (255 - alpha)) / 255, (p.y * alpha + q.y * (255 - alpha)) / 255,
                         (p.z * alpha + q.z * (255 - alpha)) / 255, 255);
}

extern "C" __global__ void vector_kinds(double2 *d, int3 *n, short4 *s, longlong2 *l) {
    dim3 grid = gridDim;
    uint3 thread = threadIdx;
    int i = thread.x + grid.x * 0;
    d[i] = make_double2(d[i].y, d[i].x);
    n[i] = make_int3(n[i].z, n[i].x, n[i].y);
    s[i].w += s[i].x + s[i].y + s[i].z;
    l[i].x += l[i].y;
}

struct motion {
    float3 by;
    float scale;
    int is_mirrored;
    double weights[2];
};

extern "C" __global__ void move_points(float3 *points, const struct motion m, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float3 p = points[i];
    p.x = p.x * m.scale + m.by.x;
    p.y = p.y * m.scale + m.by.y;
    p.z = p.z * m.scale + m.by.z;
    if (m.is_mirrored) p.x = -p.x;
    p.y += (float)(m.weights[0] * m.weights[1]);
    points[i] = p;
}
