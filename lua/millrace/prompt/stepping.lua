-- The commands that move the device: steps, the way back, time, the chooser and the model.
local format = require "millrace.words".format
local _, tools = ...

local MOST_SHOWN = 12 -- lines of steps of one command

-- "[stream] [n]" in either order; nil and a message.
local function stream_and_count(commands, words, default)
  local stream, count = nil, default
  for _, word in ipairs(words) do
    if math.tointeger(tonumber(word)) then
      count = math.tointeger(tonumber(word))
      if count < 1 then return nil, "expected a number of steps from 1 on, got " .. word end
    elseif stream then
      return nil, ("expected one stream and a number of steps, got `%s` as well"):format(word)
    else
      local message
      stream, message = commands.stream_of(word)
      if not stream then return nil, message end
    end
  end
  return { stream = stream, count = count }
end

-- Adds a line for each step, the first and the last ones if there are many.
local function take_steps(machine, what)
  local lines, done, last = {}, 0, nil
  while done < what.count do
    local text, why = machine.step(what.stream)
    if not text then
      lines.why = why
      break
    end
    done, last = done + 1, text
    if done < MOST_SHOWN then lines[#lines + 1] = text end
  end
  if done > MOST_SHOWN then lines[#lines + 1] = ("... %d more steps"):format(done - MOST_SHOWN) end
  if done >= MOST_SHOWN then lines[#lines + 1] = last end
  return lines, done
end

local function step(commands, words)
  local machine, message = commands.machine("step")
  if not machine then return nil, message end
  local what, problem = stream_and_count(commands, words, 1)
  if not what then return nil, problem end
  local lines = take_steps(machine, what)
  if lines.why then lines[#lines + 1] = #lines == 0 and "no step: " .. lines.why or "then no step: " .. lines.why end
  return lines
end

local function run(commands, words)
  local machine, message = commands.machine("run")
  if not machine then return nil, message end
  local what, problem = stream_and_count(commands, words, math.maxinteger)
  if not what then return nil, problem end
  local lines, done = take_steps(machine, what)
  lines[#lines + 1] = ("%d step%s; %s"):format(done, done == 1 and "" or "s", lines.why)
  return lines
end

local function back(commands, words)
  local machine, message = commands.machine("back")
  if not machine then return nil, message end
  local count = words[1] == nil and 1 or math.tointeger(tonumber(words[1]))
  if not count or count < 1 then return nil, "expected a number of steps from 1 on, got " .. words[1] end
  local undone, why = machine.back(count)
  if why and tools.require("session").begun_by then -- the user has not called mr.reset
    why = why:gsub("^the history begins after `reset`:", "the history begins after `:" ..
      tools.require("session").begun_by .. "`:")
  end
  if undone == 0 then return nil, "no step was undone: " .. why end
  local left = machine.history().kept
  local lines = { ("%d step%s undone; %d more can be"):format(undone, undone == 1 and "" or "s", left) }
  if why then lines[#lines + 1] = why end
  return lines
end

local function pass(commands, words)
  local machine, message = commands.machine("pass")
  if not machine then return nil, message end
  local ms = tonumber(words[1])
  if not ms then return nil, ":pass needs a number of milliseconds, as in :pass 0.5" end
  if not (ms >= 0 and ms <= 1e12) then
    return nil, (":pass: expected milliseconds from 0 to 1e12, got %s"):format(words[1])
  end
  machine.pass(ms)
  return { format("the host's clock is at %.6g ms, the device at %.6g ms", tools.mr.clock(), machine.time()) }
end

-- A setting with one value: shown, or set and shown.
local function setting(commands, name, words)
  local machine, message = commands.machine(name)
  if not machine then return nil, message end
  if words[1] then machine[name](words[1]) end
  return { name .. ": " .. machine[name]() }
end

local function seed(words)
  local number = math.tointeger(tonumber(words[1]))
  if not number or words[2] then return nil, ":seed needs an integer, as in :seed 7" end
  tools.mr.manual_seed(number)
  return { ("random numbers begin anew, from the seed %d"):format(number) }
end

local function device_text(device, current)
  local mark, memory = device == current and "*" or " ", tools.require("draw").bytes(device.total_memory)
  return ("%s device %d: %s, %d multiprocessors, %s"):format(mark, device.index, device.name, device.sm_count, memory)
end

local function device(words)
  local mr = tools.mr
  if words[1] then mr.set_device(math.tointeger(tonumber(words[1])) or words[1]) end
  local lines = {}
  for i = 0, mr.device_count() - 1 do lines[#lines + 1] = device_text(mr.device(i), mr.current_device()) end
  return lines
end

return function(commands)
  local add = commands.add
  local function is_set(words) return words[1] ~= nil end
  local function streams() return commands.names_of("stream") end
  add{ name = "step", short = "s", usage = "[stream] [n]", is_noted = true, complete = streams,
    text = "Takes n steps of the stream, or of what the chooser picks; says why if there is none.",
    run = function(words) return step(commands, words) end }
  add{ name = "run", usage = "[stream]", is_noted = true, complete = streams,
    text = "Takes steps until the stream, or the whole device, has nothing more that can run.",
    run = function(words) return run(commands, words) end }
  add{ name = "back", short = "b", usage = "[n]", is_noted = true,
    text = "Undoes n steps: memory, events and clocks are as before them.",
    run = function(words) return back(commands, words) end }
  add{ name = "pass", usage = "ms", is_noted = true, text = "Lets time go by on the host's clock.",
    run = function(words) return pass(commands, words) end }
  add{ name = "chooser", usage = "[name]", is_noted = is_set,
    text = "Shows or sets what decides the next step: timed, adversarial, random:SEED, manual.",
    complete = function() return { "timed", "adversarial", "random:", "manual" } end,
    run = function(words) return setting(commands, "chooser", words) end }
  add{ name = "model", usage = "[name]", is_noted = is_set,
    text = "Shows or sets the device model: h200, h100, a100, rtx4090, t4, or a file.",
    complete = function() return { "h200", "a100", "rtx4090", "t4" } end,
    run = function(words) return setting(commands, "model", words) end }
  add{ name = "device", usage = "[ordinal]", is_noted = is_set, text = "Lists the devices, or makes one current.",
    run = device }
  add{ name = "seed", usage = "n", is_noted = true, text = "Sets the seed of the random numbers (mr.manual_seed).",
    run = seed }
  add{ name = "wait", is_noted = true,
    text = "The host waits for all devices; under \"manual\" this runs all that is pending.",
    run = function()
      for i = 0, tools.mr.device_count() - 1 do tools.mr.synchronize(i) end
      return {}
    end }
end
