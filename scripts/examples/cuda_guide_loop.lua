-- The loop of the CUDA C++ programming guide: copy in, compute, copy out, by halves on two streams.
--
--     for (int i = 0; i < 2; ++i) {
--         cudaMemcpyAsync(inputDev + i*size, hostPtr + i*size, size, cudaMemcpyHostToDevice, stream[i]);
--         MyKernel<<<100, 512, 0, stream[i]>>>(outputDev + i*size, inputDev + i*size, size);
--         cudaMemcpyAsync(hostPtr + i*size, outputDev + i*size, size, cudaMemcpyDeviceToHost, stream[i]);
--     }
--
-- No event is needed: each half stays in its own stream, and the halves share no bytes. Host memory
-- must be pinned, or the copies make the host wait and nothing overlaps.
local mr = require "millrace"

local kernel = mr.kernel([[
  // 100 blocks have fewer threads than there are elements, so each thread takes every 51,200th one.
  extern "C" __global__ void MyKernel(float *output, const float *input, int size) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x)
      output[i] = 2 * input[i];
  }]], "MyKernel")

local s1, s2 = mr.stream{name = "stream[0]"}, mr.stream{name = "stream[1]"}

-- Doubles the numbers in host memory; the milliseconds that it takes.
local function loop(streams, host, input, output)
  local size = #host // 2
  mr.synchronize()
  local began = mr.clock()
  for i = 1, 2 do
    local part, s = { { (i - 1) * size + 1, i * size } }, streams[i]
    mr.memcpy_async(input[part], host[part], {stream = s})
    kernel[{100, 512, 0, s}](output[part], input[part], size) -- a view is the pointer inputDev + i*size
    mr.memcpy_async(host[part], output[part], {stream = s})
  end
  mr.synchronize()
  return mr.clock() - began
end

local function memory(n)
  return mr.arange(n, {dtype = "f32", pinned = true}), mr.empty(n), mr.empty(n)
end

local host, input, output = memory(4000000)
local numbers = host:clone()
loop({ s1, s2 }, host, input, output) -- warm-up: the first copies of new pinned memory take longer
local one = loop({ s1, s1 }, host, input, output)
local two = loop({ s1, s2 }, host, input, output)
print("two streams take less than 0.9 of the time of one: " .. tostring(two < 0.9 * one))
print("each number was doubled three times: " .. tostring(mr.equal(host, numbers * 8)))

return { -- for the tests
  fixed = function(n)
    local h, i, o = memory(n)
    loop({ s1, s2 }, h, i, o)
    return h:sum():item(), (n - 1) * n
  end,
}
