-- A transposition in shared memory: a race between the threads of a block, and its fix.
--
-- Reading a matrix by rows and writing it by columns makes either the reads or the writes jump through memory. So a
-- block reads a tile by rows into shared memory, and writes it by rows of the result. Here each block does that for a
-- whole row of tiles, one after the other, and uses the same shared memory for each.
--
-- Two barriers are needed for a tile. The first one is in every textbook: the tile is complete before it is read. The
-- second one is often forgotten: all threads have read the tile before the next one overwrites it.
--
-- On the virtual GPU, the checker names both lines of the race. A GPU shows at most wrong values.
-- not checked: one of its programs races
local mr = require "millrace"

local SOURCE = [[
  #define TILE 32

  // out is columns x rows; blocks of TILE x TILE threads, one for each row of tiles.
  extern "C" __global__ void transpose(float *out, const float *in, int rows, int columns) {
    __shared__ float tile[TILE][TILE + 1]; // + 1: the elements of a column lie in different banks
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.x * TILE;
    for (int column = 0; column < columns; column += TILE) {
      if (row + y < rows && column + x < columns) tile[y][x] = in[(row + y) * columns + column + x];
      __syncthreads();
      if (y >= TILE / 2) for (int spin = 0; spin < 20; spin++) __nanosleep(100); // some warps are late
      if (column + y < columns && row + x < rows) out[(column + y) * rows + row + x] = tile[x][y];
      #ifdef REPAIRED
      __syncthreads();
      #endif
    }
  }]]

local racy = mr.kernel(SOURCE, "transpose")
local repaired = mr.kernel(SOURCE, {name = "transpose", options = { "-DREPAIRED" }})

local function transposed(kernel, m)
  local rows, columns = m:size(1), m:size(2)
  local out = mr.zeros(columns, rows)
  kernel[{(rows + 31) // 32, {32, 32}}](out, m, rows, columns)
  return out
end

local function matrix(rows, columns) return mr.arange(rows * columns, {dtype = "f32"}):view(rows, columns) end

local m = matrix(100, 120)
print("racy is right:     " .. tostring(mr.equal(transposed(racy, m), m:t():contiguous())))
print("repaired is right: " .. tostring(mr.equal(transposed(repaired, m), m:t():contiguous())))

-- How far the result is from the right one, where it is farthest.
local function difference(kernel, n)
  local x = matrix(n, n + 5)
  return (transposed(kernel, x) - x:t()):abs():max():item()
end

return { -- for the tests
  fixed = function(n) return difference(repaired, n), 0 end,
  racy = function(n) return difference(racy, n), 0 end,
}
