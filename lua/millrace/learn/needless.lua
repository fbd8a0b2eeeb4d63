-- Waits and calls of record_stream that a solution does not need: why, in sentences with places of the solution only.

local performed = require "millrace.learn.performed"

local is_here, line_of = performed.is_here, performed.line_of

local needless = {}

-- The line of another wait of the solution that stands in the chain which orders the work without this one, or nil.
local function covering_line(wait, all, name)
  local _, chain = wait.because:match("^(.-):\n(.*)$")
  for place in (chain or ""):gmatch(" at (%S+:%d+)") do
    for _, other in ipairs(all) do
      if other.where == place and place ~= wait.where and is_here(place, name) then return line_of(place) end
    end
  end
  return nil
end

local ONLY_THE_HOST = "it only stops the host. Each stream keeps the order of its own work%s."
local JOINED = "the grader waits for the device before it reads the result"

-- A wait that protects only work of the caller, after the function.
local function of_the_caller(wait, exercise)
  if wait.kind == "synchronize" then
    return ONLY_THE_HOST:format(exercise.join == false and "" or ", and " .. JOINED)
  end
  return exercise.join == false and "the result stays right in each order without it." or
    JOINED .. ", so this wait protects nothing here."
end

-- Why a wait is not needed: a sentence, with places of the solution only. `all`: the waits of the run.
function needless.because_of(wait, all, name, exercise)
  local text = wait.because:gsub(" %(#%d+%)", "")
  local order = text:match("; (without it, too, .- at line %d+ comes after .- at line %d+):%s")
  if order and text:find("by default stream's barrier", 1, true) then
    return order .. ", since the default stream is a barrier for blocking streams."
  end
  local function is_foreign(part) return part:gsub("%f[%S]" .. name:gsub("%p", "%%%0") .. ":%d+", ""):find("%S:%d+") end
  local later = text:match("without it, too, (.-) comes after ")
  if later and is_foreign(later) then return of_the_caller(wait, exercise) end
  local line, own = covering_line(wait, all, name), line_of(wait.where)
  if line then
    return ("the %s wait at line %s covers it."):format(tonumber(line) > tonumber(own) and "later" or "earlier", line)
  end
  text = text:gsub(":\n.*$", "")
  if not is_foreign(text) then return text .. "." end
  local others = text:match("^(it can go alone, but not together with .-): ")
  if others and not is_foreign(others) then return others .. "." end
  local short = text:match("^(.-); without it, too, ")
  if short then return short .. ". Your arguments are ready when your function begins." end
  return of_the_caller(wait, exercise)
end

-- A call whose tensor is not freed in the function is right: a free that comes later, as the collector's, may need it.
function needless.judge_record_streams(result, name)
  for _, call in ipairs(result.record_streams or {}) do
    local is_freed = not call.because:find("is not freed by this code", 1, true)
    if not call.kept and is_freed and is_here(call.where, name) then
      return "wait", ("The result is right, but line %s does nothing: the free of %s is ordered already."):format(
        line_of(call.where), call.tensor)
    end
  end
  return nil
end

return needless
