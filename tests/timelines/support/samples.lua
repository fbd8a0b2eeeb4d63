-- The traces of tests/c/trace_samples.h, written by the program that the build makes for it.
local samples = {}

local host = os.getenv("MILLRACE") or "build/millrace"
samples.program = host:match("^(.*)/") .. "/sample_trace"
samples.names = { "pipeline", "before", "race", "ranks", "hostile", "empty", "dense:2000", "random:1", "random:2",
  "random:7", "random:30" }

function samples.run(...)
  local words = { samples.program, ... }
  for i, word in ipairs(words) do words[i] = "'" .. word .. "'" end
  local pipe = assert(io.popen(table.concat(words, " ")))
  local output = pipe:read("a")
  assert(pipe:close())
  return output
end

-- The text of a sample in a format: samples.text("race", "json").
function samples.text(name, ending)
  local path = os.tmpname()
  samples.run(name, path .. "." .. ending)
  local file = assert(io.open(path .. "." .. ending, "rb"))
  local text = file:read("a")
  file:close()
  os.remove(path)
  os.remove(path .. "." .. ending)
  return text
end

return samples
