-- mr.stress: a function again and again, with delays at random or under one schedule.
local mr = require "millrace"

return function(tools, core)
  local values, show, runner, call = core.values, core.show, core.runner, core.call

  local function stressed(fn, seed, ms)
    local results, fine, err
    do
      local _ <close> = tools.delay(seed, ms)
      results = call(fn)
      fine, err = pcall(tools.drain)
    end
    if results[1] and not fine then results = { false, err, n = 2 } end
    return values.pack_whole(results)
  end

  -- One run under a schedule. Returns its outcome's bytes, and why the schedule could not be followed, if so.
  local function steered(fn, schedule, patience, keeper)
    local last = {}
    local why, text = tools.follow(runner(fn, last), keeper, nil, schedule, patience)
    if text:sub(1, 1) ~= "v" then return text, #text, why end
    local raw, text_size = values.pack_whole(last.results)
    return raw, text_size, why
  end

  local function stress(fn, options)
    core.check_function("stress", fn)
    local runs, seed, ms, schedule, patience = core.options.read_stress(options)
    return core.guarded("stress", function(keeper)
      local r = setmetatable({ runs = 0, outcomes = {}, schedule = schedule, followed = schedule and 0 },
        show.stress_meta)
      local met = {}
      local function count(raw, text_size, why)
        local o = met[raw] or values.read_outcome({ raw = raw, text_size = text_size, count = 0 })
        if not met[raw] then
          met[raw] = o
          o.seed = not schedule and seed + r.runs or nil
          r.outcomes[#r.outcomes + 1] = o
        end
        o.count = o.count + 1
        r.runs = r.runs + 1
        if schedule and not why then r.followed = r.followed + 1 end
        r.unfollowed = r.unfollowed or why
      end
      local done = tools.attempt(function()
        -- The first call of a kernel may block in the driver until the device is idle, so all is loaded before.
        if schedule and mr.backend ~= "virtual" then call(fn) pcall(tools.drain) tools.put_back(keeper) end
        for i = 0, runs - 1 do
          if schedule then count(steered(fn, schedule, patience, keeper)) else count(stressed(fn, seed + i, ms)) end
          tools.put_back(keeper)
        end
      end)
      r.interrupted = not done or nil
      return r
    end)
  end

  return stress
end
