-- Runs test files, each in a process of its own with a time limit, a few at once, and counts.
--
--     lua5.4 tests/run.lua --host build/millrace [--jobs N] [--times N] [--calls DIR] [--cache DIR] [--all]
--                          [FILE...]
--
-- The name of a FILE gives its kind:
--     scripts/examples/X.lua   its output must equal tests/examples/X.out
--     any other *.lua          must say what it counted: luaunit's summary, a line "N passed, N failed", or a line
--                              "N checks" (millrace.testing), which counts as one test
--     anything else            a C test program, counted by cmocka's summary
-- A Lua file runs under --check=error. An operation that races with an earlier one is an error where it is submitted.
-- If the test caught that error, the exit status 3 shows it at the end. Files of tests/hazard and tests/host run
-- without it: they are about races and about the host's options. A file that counted nothing has failed, with any exit
-- status. A file that left objects behind has failed, too: the host looks for them as it closes
-- (MILLRACE_VERIFY_CLOSE), and its exit status is 70 then. At the end of a script its commands run again without Lua
-- (MILLRACE_VERIFY_REPLAY): exit status 71 says that the results differ. A file that was not replayed has failed, and
-- also a file of tests/hazard in which the checker was not on, because no verdicts were compared. --all adds every
-- tests/<folder>/*.lua and every example. Deeper folders hold what tests read. --calls notes in files of DIR which
-- functions the Lua files call (lua/coverage/record.lua), except those that are about the host itself.
--
-- --cache keeps compiled kernels in DIR, for the next run with the same DIR. Otherwise they last for this run alone.
-- MILLRACE_LONG in the environment asks random tests for the counts of `make check-long`. MILLRACE_SHORT=all asks tests
-- of many cases for those of `make check` without TESTS, MILLRACE_SHORT=random only those of random programs and sizes
-- (README.md has the counts). MILLRACE_GCSTRESS asks the
-- host of a build with AddressSanitizer to collect garbage at each call that could (src/bind/gcstress.h), in Lua files.
--
-- The comment at the top of a Lua file, or its first 15 lines, may say, each at the beginning of a line:
--     -- timeout: 120                  seconds of processor time on each of two cores, in place of 60 (180 for C);
--                                      --times N multiplies all limits
--     -- options: --device virtual:4   given to the host before the file
--     -- exit: 3                       the exit status that it must end with, in place of 0
--     -- after: the others             it runs when all others have ended, and finds what --calls noted in the
--                                      folder MILLRACE_CALLS; with --all the runner makes one
--     -- not recorded: WHY             --calls leaves it out
--     -- not replayed: WHY             it is not carried out again
--     -- not checked: WHY              the checker is not on; for tests of races and of the checker
--     -- own pace: WHY                 garbage is collected as always, whatever MILLRACE_GCSTRESS says
-- The runner refuses a file whose first comment has one of these words and a colon inside a line.
--
-- A test that waits for something forever uses no processor time: it is stopped after five times its limit. On a
-- machine with other work to do, a test that is well may take several times as long as on an idle one.
--
-- Exit status 77 means "not available here": skipped, and the output must say why.
-- Tests find the host's path in the environment as MILLRACE, and the N of --times as MILLRACE_TIMES. Standard input is
-- empty.
-- Ends with "N passed, N failed" and, where there were any, ", N skipped"; exits with 1 if one failed.

local SKIPPED = 77
local TIMED_OUT = { [124] = true, [137] = true, [152] = true } -- by timeout, killed by it, SIGXCPU

local function quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

local function read(path)
  local f = io.open(path, "rb")
  if not f then return nil end
  local text = f:read("a")
  f:close()
  return text
end

local function write(path, text)
  local f = assert(io.open(path, "wb"))
  f:write(text)
  assert(f:close())
end

local function lines_of(command)
  local lines = {}
  local p = assert(io.popen(command))
  for line in p:lines() do lines[#lines + 1] = line end
  p:close()
  return lines
end

-- ---------------------------------------------------------------- which tests

local function usage(problem)
  io.stderr:write("tests/run.lua: ", problem, "\n",
    "usage: lua5.4 tests/run.lua --host PATH [--jobs N] [--times N] [--calls DIR] [--cache DIR] [--all] [FILE...]\n")
  os.exit(2)
end

local function parse_arguments(argv)
  local options = { times = 1, files = {} }
  local i = 1
  local function value()
    i = i + 1
    return argv[i] or usage(argv[i - 1] .. " needs a value")
  end
  local function number()
    return tonumber(value()) or usage(argv[i - 1] .. " needs a number, got '" .. argv[i] .. "'")
  end
  while argv[i] do
    local a = argv[i]
    if a == "--host" then options.host = value()
    elseif a == "--jobs" then options.jobs = number()
    elseif a == "--times" then options.times = number()
    elseif a == "--calls" then options.calls = value()
    elseif a == "--cache" then options.cache = value()
    elseif a == "--all" then
      options.all = true
      for _, file in ipairs(lines_of("ls tests/*/*.lua scripts/examples/*.lua 2>/dev/null")) do
        table.insert(options.files, file)
      end
    elseif a:sub(1, 1) == "-" then usage("unknown option " .. a)
    else table.insert(options.files, a) end
    i = i + 1
  end
  if not options.host then usage("--host is missing") end
  if #options.files == 0 then usage("no test files") end
  options.jobs = options.jobs or tonumber(lines_of("nproc")[1]) or 2
  return options
end

-- "virtual only" is for scripts/gpu_check.sh.
local SETTINGS = { "timeout", "options", "exit", "after", "not recorded", "not replayed", "not checked", "own pace",
                   "virtual only" }

-- A setting inside a paragraph would be taken for a sentence and ignored.
local function refuse_hidden_settings(path, number, line)
  for _, key in ipairs(SETTINGS) do
    local from = line:find("%f[%w]" .. key .. ": ")
    if from and from ~= 4 then
      usage(("%s:%d: `%s:` has an effect only at the beginning of its line, after `-- `"):format(path, number, key))
    end
  end
end

-- The settings in the leading comment of a Lua file.
local function header(path)
  local settings = {}
  local number, is_leading = 0, true
  for line in io.lines(path) do
    number = number + 1
    is_leading = is_leading and line:find("^%-%-") ~= nil
    if number > 15 and not is_leading then break end
    if is_leading then refuse_hidden_settings(path, number, line) end
    local key, text = line:match("^%-%- ([%l ]+): *(.-)%s*$")
    if key then settings[key] = text end
  end
  return settings
end

local function make_test(path, options)
  local test = { path = path, exit = 0, timeout = path:find("%.lua$") and 60 or 180 }
  local probe = io.open(path, "rb")
  if not probe then usage("cannot open " .. path) end
  probe:close()
  if path:find("%.lua$") then
    local settings = header(path)
    test.timeout = tonumber(settings.timeout) or test.timeout
    test.exit = tonumber(settings.exit) or test.exit
    test.last = settings.after ~= nil
    test.records = (path:find("^tests/lua/") or path:find("^tests/conformance/") or path:find("^scripts/examples/"))
      and not test.last and not settings["not recorded"]
    test.replays = not path:find("^tests/host/") and not path:find("^tests/fuzz/") and not test.last
      and not settings["not replayed"]
    test.is_checked = not path:find("^tests/host/") and not path:find("^tests/hazard/") and not settings["not checked"]
    test.is_stressed = not settings["own pace"]
    test.compares_verdicts = path:find("^tests/hazard/") ~= nil
    test.command = ("%s %s %s %s %s"):format(quote(options.host), test.is_checked and "--check=error" or "",
      settings.options or "",
      test.records and options.calls and [[-e 'require "lua.coverage.record"']] or "", quote(path))
    local name = path:match("^scripts/examples/([^/]+)%.lua$")
    test.expected = name and "tests/examples/" .. name .. ".out"
  else
    test.is_c = true
    test.command = quote(path:find("/") and path or "./" .. path)
  end
  test.timeout = math.ceil(test.timeout * options.times)
  return test
end

-- ---------------------------------------------------------------- how long they took

-- Beside the host, for the next run: a line "SECONDS PATH" for each test.
local function durations_file(options)
  return (options.host:match("^(.*)/[^/]*$") or ".") .. "/test_seconds"
end

local function durations_in(text)
  local known = {}
  for seconds, path in (text or ""):gmatch("([%d.]+) ([^\n]+)\n") do known[path] = tonumber(seconds) end
  return known
end

-- A test that has not run in this build takes as long as in the build above (build/clang, build/san: build), as far as
-- the order goes. C tests have the same names there.
local function load_durations(tests, options)
  local folder = options.host:match("^(.*)/[^/]*$") or "."
  local known, above = durations_in(read(durations_file(options))), durations_in(read(folder .. "/../test_seconds"))
  local parent = folder:match("^(.*)/[^/]*$") or "."
  for _, test in ipairs(tests) do
    local there = test.path:sub(1, #folder) == folder and parent .. test.path:sub(#folder + 1) or test.path
    test.last_seconds = known[test.path] or above[there]
  end
  return known
end

local function save_durations(tests, options, known)
  local lines = {}
  for _, test in ipairs(tests) do known[test.path] = test.seconds or known[test.path] end
  for path, seconds in pairs(known) do lines[#lines + 1] = ("%.2f %s\n"):format(seconds, path) end
  table.sort(lines)
  write(durations_file(options), table.concat(lines))
end

-- ---------------------------------------------------------------- running

local ENVIRONMENT = table.concat({
  "unset MILLRACE_DEVICE MILLRACE_CHECK MILLRACE_COMPILER MILLRACE_CACHE_SIZE",
  -- As many tests run at once as there are processors. OpenBLAS's threads wait for each other without sleeping: where
  -- each has to wait for a processor first, thousands of small products take minutes.
  "export OPENBLAS_NUM_THREADS=1",
  "export NO_COLOR=1 TERM=dumb LC_ALL=C MILLRACE_VERIFY_CLOSE=1 MILLRACE=%s MILLRACE_CALLS=%s MILLRACE_TIMES=%s",
  "export MILLRACE_CACHE=%s", -- none is left in the user's own folder
  -- Some distributions install luaunit for Lua 5.3 only; it runs under 5.4.
  "export LUA_PATH='./tests/?.lua;;/usr/share/lua/5.4/?.lua;/usr/share/lua/5.3/?.lua'",
}, "\n") .. "\n"

-- One shell script a test, so that xargs has only numbers to pass around.
local function write_job(dir, number, test, options)
  local base = dir .. "/" .. number
  local merge = test.expected and ("2>%s.err"):format(base) or "2>&1"
  local calls = options.calls or ""
  if test.records then calls = calls .. "/" .. number end
  local verify = (test.replays and "export MILLRACE_VERIFY_REPLAY=say\n" or "")
    .. (test.is_stressed and "" or "unset MILLRACE_GCSTRESS\n")
  local environment = ENVIRONMENT:format(quote(options.host), quote(options.calls and calls or ""), options.times,
    quote(options.cache or dir .. "/cache"))
  write(base .. ".sh", environment .. verify .. ([[
began=$(date +%%s%%N)
ulimit -t %d
timeout -k 5 %d %s <%s >%s.out %s
echo $? $((($(date +%%s%%N) - began) / 1000000)) >%s.status
times >>%s.status
echo %d
]]):format(2 * test.timeout, 5 * test.timeout, test.command, "/dev/null", base, merge, base, base, number))
end

local function counts_of_luaunit(output)
  local ran, rest = output:match("Ran (%d+) tests? in [%d.]+ seconds, ([^\n]*)")
  if not ran then return nil end
  local function count(word) return tonumber(rest:match("(%d+) " .. word)) or 0 end
  return { passed = count("success"), failed = count("failure") + count("error"), skipped = count("skipped") }
end

local function counts_of_script(output)
  local found = counts_of_luaunit(output)
  if found then return found end
  local passed, failed
  for line in output:gmatch("[^\n]+") do
    local p, f = line:match("^(%d+) passed, (%d+) failed$")
    if p then passed, failed = tonumber(p), tonumber(f) end
    if not passed and (tonumber(line:match("^(%d+) checks?$")) or 0) > 0 then passed, failed = 1, 0 end
  end
  return passed and { passed = passed, failed = failed, skipped = 0 }
end

local function counts_of_cmocka(output)
  local found
  local counts = { passed = 0, failed = 0, skipped = 0 }
  for word, n in output:gmatch("%[  (%u+) *%] [^\n]-(%d+) test%(s%)") do
    local key = word:lower()
    if counts[key] then
      counts[key] = counts[key] + tonumber(n)
      found = true
    end
  end
  return found and counts
end

-- The shell's `times`: of itself, then of what it ran, each "0m1.25s 0m0.10s" for user and system.
local function cpu_seconds(status)
  local sum, n = 0, 0
  for minutes, seconds in status:gmatch("(%d+)m([%d.]+)s") do
    n = n + 1
    if n > 2 then sum = sum + 60 * tonumber(minutes) + tonumber(seconds) end
  end
  return sum
end

-- `text` has the host's line about the replay. nil: nothing is wrong with it.
local function problem_of_replay(test, text)
  local checks = text:match("millrace: replayed: [^\n]*checker on (%d+) times")
  if not checks then
    return "it was not replayed: " .. (text:match("millrace: not re%l+: ([^\n]*)") or "the host did not say why")
  end
  if test.compares_verdicts and checks == "0" then return "the checker was never on" end
end

-- Fills in test.counts, test.seconds, test.cpu, test.output and, where it failed, test.problem.
local function judge(dir, number, test)
  local base = dir .. "/" .. number
  local report = read(base .. ".status") or ""
  local status, ms = report:match("^(%d+) (%d+)")
  status = tonumber(status)
  test.cpu = cpu_seconds(report)
  test.seconds = (tonumber(ms) or 0) / 1000
  test.output = read(base .. ".out") or ""

  local counts = { passed = 0, failed = 0, skipped = 0 }
  if status == SKIPPED then
    counts.skipped = 1
    if not test.output:find("%S") then test.problem = "skipped without saying why" end
  elseif TIMED_OUT[status] then
    test.problem = ("stopped at its time limit of %d s"):format(test.timeout)
  elseif status ~= test.exit then
    test.problem = ("exit status %s, expected %d"):format(status or "unknown", test.exit)
  end

  local err = read(base .. ".err") or ""
  if test.replays and not test.problem and status ~= SKIPPED then
    test.problem = problem_of_replay(test, test.expected and err or test.output)
  end
  if test.expected then
    local expected = read(test.expected)
    if not expected then
      test.problem = test.problem or "there is no " .. test.expected
    elseif expected ~= test.output and status ~= SKIPPED then
      test.problem = test.problem or "output differs from " .. test.expected
      test.output = table.concat(lines_of(("diff -u %s %s.out"):format(quote(test.expected), base)), "\n") .. "\n"
    end
    if err ~= "" then test.output = test.output .. "---- standard error:\n" .. err end
  elseif status ~= SKIPPED then
    counts = (test.is_c and counts_of_cmocka or counts_of_script)(test.output) or counts
    if counts.passed + counts.failed + counts.skipped == 0 then
      test.problem = test.problem or "it counted no test"
    end
  end

  if test.problem then
    counts.failed = math.max(counts.failed, 1)
    counts.skipped = status == SKIPPED and 0 or counts.skipped
  elseif test.expected and status ~= SKIPPED then
    counts.passed = 1
  end
  test.counts = counts
end

local function summary(counts)
  local text = ("%d passed, %d failed"):format(counts.passed, counts.failed)
  return counts.skipped > 0 and text .. (", %d skipped"):format(counts.skipped) or text
end

-- Runs those of `tests` that `wanted` chooses.
local function run_some(tests, options, dir, wanted)
  local numbers = {}
  for number, test in ipairs(tests) do
    if wanted(test) then
      write_job(dir, number, test, options)
      numbers[#numbers + 1] = number
    end
  end
  if #numbers == 0 then return end
  -- The longest ones begin first, so that none of them runs alone at the end. One that has not run yet may take up to
  -- its limit.
  local function duration(number) return tests[number].last_seconds or tests[number].timeout end
  table.sort(numbers, function(a, b)
    local first, second = duration(a), duration(b)
    if first ~= second then return first > second end
    return a < b
  end)
  write(dir .. "/numbers", table.concat(numbers, "\n") .. "\n")
  local finished = assert(io.popen(("xargs -P %d -I {} sh %s/{}.sh <%s/numbers"):format(options.jobs, dir, dir)))
  for line in finished:lines() do
    local number = tonumber(line)
    local test = tests[number]
    judge(dir, number, test)
    print(("%-4s %-52s %s  %.2f s, %.2f s of CPU"):format(test.counts.failed > 0 and "FAIL" or "ok", test.path,
      summary(test.counts), test.seconds, test.cpu))
    io.flush()
  end
  finished:close()
end

local function run(tests, options, dir)
  run_some(tests, options, dir, function(test) return not test.last end)
  run_some(tests, options, dir, function(test) return test.last end)
end

local function report(tests)
  local total, cpu = { passed = 0, failed = 0, skipped = 0 }, 0
  for _, test in ipairs(tests) do
    cpu = cpu + (test.cpu or 0)
    if not test.counts then test.problem, test.counts = "did not run", { passed = 0, failed = 1, skipped = 0 } end
    for key, n in pairs(test.counts) do total[key] = total[key] + n end
    local reason = test.problem or summary(test.counts)
    if test.counts.failed > 0 then
      print(("\n==== FAIL %s: %s\n%s"):format(test.path, reason, test.output or ""))
    elseif test.counts.skipped > 0 then
      print(("\n==== skipped in %s: %s"):format(test.path, test.output))
    end
  end
  print(("\n%.0f s of CPU"):format(cpu))
  print(summary(total))
  return total.failed == 0
end

local options = parse_arguments(arg)
local dir = lines_of("mktemp -d")[1]
if options.all and not options.calls then
  options.calls = dir .. "/calls"
  os.execute("mkdir " .. quote(options.calls))
end
local tests = {}
for i, path in ipairs(options.files) do tests[i] = make_test(path, options) end
local known = load_durations(tests, options)
run(tests, options, dir)
save_durations(tests, options, known)
local ok = report(tests)
os.execute("rm -rf " .. quote(dir))
os.exit(ok)
