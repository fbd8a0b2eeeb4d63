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

local function memory(n)
  return mr.zeros(n, {pinned = true}), mr.empty(n), mr.empty(n)
end

local function loop(n, streams, host, input, output)
  local half = n // 2
  host:copy_(mr.arange(n, {dtype = "f32", device = "cpu"}))
  mr.synchronize()

  local began = mr.clock()
  for i = 1, 2 do
    local part, s = { { (i - 1) * half + 1, i * half } }, streams[i]
    mr.memcpy_async(input[part], host[part], {stream = s})
    mr.with(s, function()
      mr.spin{ms = 0.3} -- MyKernel takes a while, and
      input[part]:mul(2, {out = output[part]})
    end)
    mr.memcpy_async(host[part], output[part], {stream = s})
  end
  mr.synchronize()
  local elapsed = mr.clock() - began
  return host:sum():item(), 2 * (n - 1) * n / 2, elapsed
end

local s1, s2 = mr.stream{name = "stream[0]"}, mr.stream{name = "stream[1]"}
local N = 8000000
local host, input, output = memory(N)
local function agrees(sum, right) return math.abs(sum / right - 1) < 1e-6 end

loop(N, { s1, s2 }, host, input, output) -- warm-up: the first copies of new pinned memory take longer
local sum, right, one = loop(N, { s1, s1 }, host, input, output)
print("one stream:  values right: " .. tostring(agrees(sum, right)))
local two
sum, right, two = loop(N, { s1, s2 }, host, input, output)
print("two streams: values right: " .. tostring(agrees(sum, right)))
print("two streams take less than 0.9 of the time of one: " .. tostring(two < 0.9 * one))

return { fixed = function(n) return loop(n, { s1, s2 }, memory(n)) end } -- for the tests
