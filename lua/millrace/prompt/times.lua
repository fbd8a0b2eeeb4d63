-- How long an entry took, as a line behind what it shows.
local format = require "millrace.words".format
local _, tools = ...

local times = {}

-- The clocks in ms: the host's, which is virtual on the virtual GPU, and the device's, nil on hardware.
function times.now()
  local machine = tools.mr.machine
  return { host = tools.clock(), device = machine and machine.time() }
end

-- Says what has passed since, if it is worth a line: a terminal only, as times of hardware differ from run to run.
function times.say(before)
  local least = tools.require("settings").get("times")
  if least == "off" or not tools.is_terminal() then return end
  local now = times.now()
  local host, device = now.host - before.host, now.device and now.device - before.device or 0
  if math.max(host, device) < least then return end
  local text = format("-- host %.3g ms", host)
  if now.device then text = text .. format(", device %.3g ms", device) .. " (virtual)" end
  tools.write(tools.style("dim", text) .. "\n")
end

return times
