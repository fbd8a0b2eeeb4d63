// Gravity between bodies: x, y, z and the mass in a float4; tiles of positions go through shared memory.
// kernel: nbody_step

#define BLOCK 64

__device__ float3 attract(float3 sum, float4 at, float4 other, float softening) {
    float dx = other.x - at.x, dy = other.y - at.y, dz = other.z - at.z;
    float square = dx * dx + dy * dy + dz * dz + softening;
    float inverse = rsqrtf(square);
    float scale = other.w * inverse * inverse * inverse;
    return make_float3(sum.x + dx * scale, sum.y + dy * scale, sum.z + dz * scale);
}

extern "C" __global__ void nbody_step(float4 *next, float4 *velocity, const float4 *now, int count, float dt) {
    __shared__ float4 tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 at = i < count ? now[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    for (int first = 0; first < count; first += BLOCK) {
        int j = first + threadIdx.x;
        tile[threadIdx.x] = j < count ? now[j] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
        for (int k = 0; k < BLOCK; k++) sum = attract(sum, at, tile[k], 1e-3f);
        __syncthreads();
    }
    if (i >= count) return;
    float4 v = velocity[i];
    v.x += sum.x * dt;
    v.y += sum.y * dt;
    v.z += sum.z * dt;
    velocity[i] = v;
    next[i] = make_float4(at.x + v.x * dt, at.y + v.y * dt, at.z + v.z * dt, at.w);
}
