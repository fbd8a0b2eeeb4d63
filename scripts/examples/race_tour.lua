-- The tour: a program with a race, next to the same program with its fix. `make try` runs it; it needs no GPU.
-- prints figures of the device
-- not checked: one of its programs races
local mr = require "millrace"

-- ---------------------------------------------------------------- the program

local producer, consumer = mr.stream{name = "producer"}, mr.stream{name = "consumer"}

local function program(n, fixed)
  local x = mr.zeros(n)
  mr.synchronize()
  -- begin
  mr.with(producer, function() x:add_(1); x:add_(1) end)
  if fixed then consumer:wait_stream(producer) end
  local sum = mr.with(consumer, function() return x:sum() end)
  -- end
  mr.synchronize()
  local value = sum:item()
  sum:free() -- now, and not whenever the collector comes by: then each run is the same to the last step
  x:free()
  return value, 2 * n
end

-- ---------------------------------------------------------------- printing

local function on_terminal()
  local no_color = os.getenv("NO_COLOR")
  if (no_color and no_color ~= "") or os.getenv("TERM") == "dumb" then return false end
  return os.execute("test -t 1") == true
end

local COLOURS = { bold = "1", dim = "2", red = "31", green = "32", yellow = "33" }
local colourful = on_terminal()

local function paint(colour, text)
  return colourful and ("\27[%sm%s\27[0m"):format(COLOURS[colour], text) or text
end

local say = print

local function heading(text) say("\n" .. paint("bold", text) .. "\n") end

-- The lines of `program` between its two markers, so that what is shown is what runs.
local function show_source()
  local path = debug.getinfo(program, "S").source:match("^@(.*)")
  local shown = false
  for line in io.lines(path) do
    if line:find("^  %-%- end") then return end
    if shown then
      local only = line:match("^  if fixed then (.*) end$")
      if only then
        say("  " .. paint("green", ("+ %-64s"):format(only)) .. paint("dim", "only in the fixed one"))
      else
        say("    " .. line:sub(3))
      end
    end
    shown = shown or line:find("^  %-%- begin") ~= nil
  end
end

local function number(n)
  local text = ("%d"):format(n)
  local grouped = text:reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (grouped:gsub("^,", ""))
end

local function verdict(sum, expected)
  local right = sum == expected
  return ("%11s  %s"):format(number(sum), paint(right and "green" or "red", right and "right" or "wrong"))
end

local function row(title, racy, fixed) say(("  %-34s %s   %s"):format(title, racy, fixed)) end

-- ---------------------------------------------------------------- running

local function compare(title, n)
  row(title, verdict(program(n, false)), verdict(program(n, true)))
end

local function count_wrong(n, seeds, fixed)
  local wrong = 0
  for seed = 1, seeds do
    mr.machine.chooser("random:" .. seed)
    if program(n, fixed) ~= 2 * n then wrong = wrong + 1 end
  end
  local text = ("%4d of %d  wrong"):format(wrong, seeds)
  return paint(wrong > 0 and "red" or "green", ("%18s"):format(text))
end

local SMALL, LARGE, SEEDS = 1000, 8000000, 200

if mr.machine then mr.machine.chooser("timed") end -- whatever the command line says
say(paint("bold", "millrace") .. " on " .. mr.device(0).name)
heading("A tensor of zeros: one stream adds 1 to each element, twice; another one sums them.")
show_source()

heading(("%37s%-20s%s"):format("", "racy", "fixed"))
compare(number(SMALL) .. " elements", SMALL)
compare(number(LARGE) .. " elements", LARGE)
if mr.machine then
  local before = mr.machine.chooser("adversarial")
  compare(number(SMALL) .. ", the worst order", SMALL)
  row(number(SMALL) .. ", any order, by chance",
    count_wrong(SMALL, SEEDS, false), count_wrong(SMALL, SEEDS, true))
  mr.machine.chooser(before)
end

heading("What happened")
say [[
  The host submits add_, add_, sum, in this order; but streams have no order between them. With few
  elements both add_ are done before sum is even submitted: the racy program is right, by luck, and
  a test of it would pass. With many, sum gets in between, or sees a tensor half written. It may as
  well go first, on a busier device: that is what the worst order shows. CUDA allows all of these.]]

heading("What to add")
say("  " .. paint("green", "consumer:wait_stream(producer)"))
say [[
  after the producer's work and before the consumer's: the consumer's later work waits for it, on
  the device, and the host waits for nothing. To wait for a part of the producer's work only, mark
  where it ends with an event:]]
say("  " .. paint("green", "local done = producer:record_event()") .. "    then    " ..
  paint("green", "consumer:wait_event(done)"))

heading("Where to go from here")
say [[
  build/millrace scripts/examples/fan_out.lua     the next program; the folder holds more of them
  build/millrace                                  a prompt: help() shows the first steps
  docs/design.md                                  how all this works]]

return { -- for the tests
  fixed = function(n) return program(n, true) end,
  racy = function(n) return program(n, false) end,
}
