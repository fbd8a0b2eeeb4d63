-- The duration of an entry, as a line after its output.
local format = require "millrace.words".format
local _, tools = ...

local times = {}

local clock = os.clock
local LEAST_OWN = 1000 -- ms of this computer: shorter times differ from run to run, and are not noticed

-- The clocks in ms: the host's, which is virtual on the virtual GPU, the device's, nil on hardware, and the processor
-- time of this computer.
function times.now()
  local machine = tools.mr.machine
  return { host = tools.clock(), device = machine and machine.time(), own = clock() * 1000 }
end

-- "12.3 ms", "1.57 s", "217 s"
function times.text(ms)
  if ms < 999.5 then return format("%.3g ms", ms) end
  return format(ms < 999500 and "%.3g s" or "%.0f s", ms / 1000)
end

-- Shows the time passed since then, if it is long enough: a terminal only, as times of hardware differ from run to run.
function times.say(before)
  local least = tools.require("settings").get("times")
  if least == "off" or not tools.is_terminal() then return end
  local now, parts = times.now(), {}
  local host, device = now.host - before.host, now.device and now.device - before.device or 0
  if math.max(host, device) >= least then
    parts[1] = "host " .. times.text(host)
    if now.device then parts[1] = parts[1] .. (", device %s (virtual)"):format(times.text(device)) end
  end
  local own = now.own - before.own
  local is_long = now.device and own >= math.max(least, LEAST_OWN)
  if is_long then parts[#parts + 1] = times.text(own) .. " of this computer" end
  if #parts > 0 then tools.write(tools.style("dim", "-- " .. table.concat(parts, "; ")) .. "\n") end
end

return times
