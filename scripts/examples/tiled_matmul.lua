-- A matrix product with tiles in shared memory.
--
-- Each thread computes one element of C = A B: a row of A times a column of B. Done directly,
-- each element of A is read from global memory once for each column of C. Here a block of 16 x 16
-- threads loads a tile of A and one of B into shared memory. Each thread loads one element of
-- each, and uses what the others have loaded. So global memory is read 16 times less.
--
-- __syncthreads() stands twice in the loop: before the tiles are read, since other threads have loaded them, and after,
-- before the next ones overwrite them. shared_transpose.lua shows what happens without the second one.
local mr = require "millrace"

local module = mr.module([[
  extern "C" __global__ void direct(float *c, const float *a, const float *b, int rows, int inner, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    float sum = 0;
    for (int k = 0; k < inner; k++) sum += a[row * inner + k] * b[k * columns + column];
    c[row * columns + column] = sum;
  }

  template <int TILE>
  __global__ void tiled(float *c, const float *a, const float *b, int rows, int inner, int columns) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float sum = 0;
    for (int first = 0; first < inner; first += TILE) {
      tile_a[y][x] = row < rows && first + x < inner ? a[row * inner + first + x] : 0;
      tile_b[y][x] = first + y < inner && column < columns ? b[(first + y) * columns + column] : 0;
      __syncthreads();
      for (int k = 0; k < TILE; k++) sum += tile_a[y][k] * tile_b[k][x];
      __syncthreads();
    }
    if (row < rows && column < columns) c[row * columns + column] = sum;
  }]], {names = { "tiled<16>" }}) -- a template is compiled for the arguments that are named

local TILE = 16
local direct, tiled = module:get("direct"), module:get("tiled<16>")

local function product(kernel, a, b)
  local rows, inner, columns = a:size(1), a:size(2), b:size(2)
  local c = mr.empty(rows, columns)
  local grid = { (columns + TILE - 1) // TILE, (rows + TILE - 1) // TILE }
  kernel[{grid, {TILE, TILE}}](c, a, b, rows, inner, columns)
  return c
end

-- Small integers, so that the sums are exact in any order.
local function matrices(rows, inner, columns)
  mr.manual_seed(1)
  local function integers(...) return mr.randint(-9, 10, { ... }):to("f32") end
  return integers(rows, inner), integers(inner, columns)
end

local a, b = matrices(100, 70, 130) -- no multiples of 16
local right = a:matmul(b)
print("direct is right: " .. tostring(mr.equal(product(direct, a, b), right)))
print("tiled is right:  " .. tostring(mr.equal(product(tiled, a, b), right)))
print(("shared memory of a block: %d bytes for direct, %d for tiled"):format(direct.shared_bytes, tiled.shared_bytes))

return { -- for the tests
  fixed = function(n)
    local x, y = matrices(n // 3, n // 2, n // 4)
    return product(tiled, x, y):abs():sum():item(), x:matmul(y):abs():sum():item()
  end,
}
