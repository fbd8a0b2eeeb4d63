-- Runs the program that is under test as a person would: arguments, input, Ctrl-C.
local command = {}

-- Absolute, since a test may change the folder.
local function find_host()
  local path = os.getenv("MILLRACE") or "build/millrace"
  if path:sub(1, 1) == "/" then return path end
  local pwd = io.popen("pwd")
  path = pwd:read("l") .. "/" .. path
  pwd:close()
  return path
end

local host = find_host()
command.host = host

-- Seconds of processor time that a program may take. It may last several times as long: the machine may have other
-- work to do (as in tests/run.lua, whose own limit may be lower).
command.times = tonumber(os.getenv("MILLRACE_TIMES")) or 1
command.limit = math.ceil(50 * command.times)
local WALL = 5
command.wall_limit = command.limit * WALL

function command.quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

function command.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

function command.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

-- Calls fn with the path of a new file of that content, and removes it.
function command.with_file(text, fn)
  local path = os.tmpname()
  command.write(path, text)
  local results = table.pack(pcall(fn, path))
  os.remove(path)
  assert(results[1], results[2])
  return table.unpack(results, 2, results.n)
end

-- A shell may have been started with SIGINT ignored, which programs inherit and the host respects.
local default_signal = os.execute("env --default-signal=INT true 2>/dev/null") and "env --default-signal=INT " or ""

-- Sends SIGINT when the output holds "ready" and the program has gone on from there, by 20 ms of processor time or,
-- where it waits, by 100 ms. Sends it again until the program has ended: after PAUSE hundredths of a second of
-- processor time or, where it waits, after a second.
local SIGNALS = [[
used() { read -r stat </proc/$$/stat || return; set -- ${stat##*) }; echo $((${12} + ${13})); }
(until grep -q ready OUT 2>/dev/null || [ ! -e OUT ]; do sleep 0.02; done
 began=$(used); n=0
 while [ $n -lt 10 ] && [ $(($(used) - began)) -lt 2 ]; do sleep 0.01; n=$((n+1)); done
 n=0
 while [ $n -lt TIMES ] && [ -e OUT ] && kill -INT $$ 2>/dev/null; do
   began=$(used); w=0
   while [ $w -lt 20 ] && [ $(($(used) - began)) -lt PAUSE ]; do sleep 0.05; w=$((w+1)); done
   n=$((n+1))
 done) 2>/dev/null &
]]

-- AddressSanitizer writes this at the first change of stacks (base/fiber.c tells it of each).
local function without_notice(text)
  return (text:gsub("==%d+==WARNING: ASan doesn't fully support makecontext[^\n]*\n", ""))
end

-- command.run{"-e", "code", input=, environment=, interrupts=N, limit=seconds} -> {status=, out=, err=}
-- environment: shell commands to go before. options: more arguments, as shell text. interrupts: Ctrl-C is pressed at
-- most that often, once the program has printed "ready". A status of 124 means that it did not end, 137 that it
-- used too much processor time.
function command.run(arguments)
  local out, err, input = os.tmpname(), os.tmpname(), os.tmpname()
  command.write(input, arguments.input or "")
  local words = { command.quote(host), arguments.options }
  for _, word in ipairs(arguments) do words[#words + 1] = command.quote(word) end
  local script = (arguments.environment or "") .. "\n"
  if arguments.interrupts then
    script = script .. SIGNALS:gsub("%u+",
      { OUT = out, TIMES = arguments.interrupts, PAUSE = math.ceil(20 * command.times) })
  end
  script = script .. ("exec %s <%s >%s 2>%s"):format(table.concat(words, " "), input, out, err)
  local limit = arguments.limit and math.ceil(arguments.limit * command.times) or command.limit
  script = ("ulimit -t %d 2>/dev/null\n%s"):format(limit, script)
  local _, _, status = os.execute(("%stimeout -k 5 %d sh -c %s"):format(default_signal, limit * WALL,
    command.quote(script)))
  local result = { status = status, out = command.read(out), err = without_notice(command.read(err)) }
  for _, path in ipairs{ out, err, input } do os.remove(path) end
  return result
end

-- The same for tests that want what was printed of both kinds, and the exit status. The host verifies that it closes
-- with nothing left.
function command.say(arguments)
  arguments.environment = "export MILLRACE_VERIFY_CLOSE=1; " .. (arguments.environment or "")
  local result = command.run(arguments)
  return result.out .. result.err, result.status
end

-- The same with -e, for the tests that need nothing else.
function command.eval(code, ...)
  local arguments = { ... }
  arguments[#arguments + 1] = "-e"
  arguments[#arguments + 1] = code
  return command.run(arguments)
end

-- Runs a plain lua5.4 that loads the module beside the host. Returns its output, and whether it ended well; nil: there
-- is none.
function command.run_plain(text, environment)
  local folder = host:match("^(.*)/[^/]*$") or "."
  local module = io.open(folder .. "/millrace.so")
  if not module then
    print("skipped: no millrace.so beside the host")
    return nil
  end
  module:close()
  return command.with_file(text, function(path)
    local pipe = io.popen(("%s LUA_CPATH=%s timeout -k 5 %d lua5.4 %s 2>&1"):format(environment or "",
      command.quote(folder .. "/?.so"), command.wall_limit, path))
    local said = pipe:read("a")
    return said, pipe:close()
  end)
end

return command
