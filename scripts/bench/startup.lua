-- From the shell to the first result, beside a plain Lua: the two by turns, medians of 41 runs.
local bench = dofile((arg[0]:match("^(.*)/") or ".") .. "/support.lua")

local RUNS = 41
local commands = {
  { "millrace -e 'print(mr.ones(3):sum():item())'", "'" .. bench.host .. "' -e 'print(mr.ones(3):sum():item())'" },
  { "lua5.4 -e 'print(1)'", "lua5.4 -e 'print(1)'" },
  { "/bin/true", "/bin/true" },
}

-- bash knows the time without starting a process for it.
local script = ([[
for i in $(seq %d); do
%s
done
]]):format(RUNS, (function()
  local lines = {}
  for i, command in ipairs(commands) do
    lines[i] = ("a=$EPOCHREALTIME; %s >/dev/null; b=$EPOCHREALTIME; echo %d $((${b/./} - ${a/./}))"):format(
      command[2], i)
  end
  return table.concat(lines, "\n")
end)())

local path = os.tmpname()
local file = assert(io.open(path, "w"))
file:write(script)
file:close()
local times = { {}, {}, {} }
for line in bench.output_of("bash " .. path):gmatch("[^\n]+") do
  local which, us = line:match("(%d+) (%d+)")
  table.insert(times[tonumber(which)], tonumber(us) / 1000)
end
os.remove(path)

local ms = {}
for i in ipairs(commands) do ms[i] = bench.median(times[i]) end
local rows = { { "command", "ms", "of lua5.4's time" } }
for i, command in ipairs(commands) do
  rows[#rows + 1] = { "`" .. command[1] .. "`", ("%.2f"):format(ms[i]), ("%.2f"):format(ms[i] / ms[2]) }
end
bench.print_table(rows)
