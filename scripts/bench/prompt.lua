-- The prompt: until it is ready, beside a plain Lua, by turns; how soon it shows a key; how soon it completes a name.
-- With 100,000 global names, and without. Medians; keys are typed at a terminal (tests/host/support/terminal.c).
local bench = dofile((arg[0]:match("^(.*)/") or ".") .. "/support.lua")

local RUNS = 21
local terminal = bench.host:match("^(.*)/[^/]*$") .. "/terminal"

-- Milliseconds of two commands whose input is empty, by turns, their time in the shell included.
local function start_times(first, second)
  local script = ([[
    for i in $(seq %d); do
      a=$EPOCHREALTIME; %s </dev/null >/dev/null 2>&1; b=$EPOCHREALTIME; %s </dev/null >/dev/null 2>&1; c=$EPOCHREALTIME
      echo $((${b/./} - ${a/./})) $((${c/./} - ${b/./}))
    done]]):format(RUNS, first, second)
  local times = { {}, {} }
  for a, b in bench.output_of("bash -c '" .. script .. "'"):gmatch("(%d+) (%d+)") do
    table.insert(times[1], tonumber(a) / 1000)
    table.insert(times[2], tonumber(b) / 1000)
  end
  return bench.median(times[1]), bench.median(times[2])
end

-- The answers of the terminal to steps that measure keys.
local function key_times(steps)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write("wait mr:1>\n", table.concat(steps, "\n"), "\n")
  file:close()
  local times = {}
  local out = bench.output_of(("HOME=/nonexistent TERM=xterm %s 24 80 %s %s"):format(terminal, path, bench.host))
  for ms in out:gmatch("key ([%d.]+)") do times[#times + 1] = tonumber(ms) end
  os.remove(path)
  assert(#times > 0, out)
  return times
end

local function measure(names)
  local keys, completions = {}, {}
  if names > 0 then
    for _, steps in ipairs{ keys, completions } do
      steps[1] = ('send for i = 1, %d do _G["name" .. i] = i end\\r'):format(names)
      steps[2] = "wait mr:2>"
    end
  end
  local text = ""
  for i = 1, RUNS do
    keys[#keys + 1] = "key " .. string.char(96 + i) .. " " .. text .. string.char(96 + i)
    text = text .. string.char(96 + i)
    completions[#completions + 1] = "key coro\\t coroutine"
    completions[#completions + 1] = "send \\x15"
    completions[#completions + 1] = "gone coroutine"
  end
  return bench.median(key_times(keys)), bench.median(key_times(completions))
end

local plain, prompt = start_times("lua5.4 -i", bench.host .. " -i")
local rows = { { "prompt", "ms", "may take" } }
rows[2] = { ("ready (`lua5.4 -i`: %.2f)"):format(plain), ("%.2f"):format(prompt), ("%.2f"):format(3 * plain) }
for _, names in ipairs{ 0, 100000 } do
  local key, completion = measure(names)
  rows[#rows + 1] = { ("a key, %d more names"):format(names), ("%.2f"):format(key), "5.00" }
  rows[#rows + 1] = { ("TAB, %d more names"):format(names), ("%.2f"):format(completion), "20.00" }
end
bench.print_table(rows)
