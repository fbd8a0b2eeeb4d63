-- The options of mr.explore and mr.stress, checked.

return function(tools)
  local misuse = tools.misuse

  local BOUNDS = tools.bounds() -- --explore of the command line has the same

  local function whole(options, name, otherwise)
    local value, least = options[name], BOUNDS[name].least
    if value == nil then return otherwise end
    local number = math.tointeger(value)
    if not number or number < least then
      misuse(("explore: %s: expected a whole number%s, got %s"):format(name,
        least > math.mininteger and " of at least " .. least or "", tostring(value)))
    end
    return number
  end

  local function read_options(options)
    if options == nil then options = {} end
    if type(options) ~= "table" then misuse("explore: argument 2: expected a table of options") end
    for name in next, options do
      if not BOUNDS[name] and name ~= "unspecified" and name ~= "full" then
        misuse(("explore: no option `%s`; there are max, time, memory, grain, preempt, polls, unspecified, full, "
          .. "seeds, seed and workers")
          :format(tostring(name)))
      end
    end
    local time = options.time
    if time ~= nil and (type(time) ~= "number" or time ~= time or time <= BOUNDS.time.least) then
      misuse(("explore: time: expected seconds, a number above %d, got %s"):format(BOUNDS.time.least, tostring(time)))
    end
    local MOST = 0x7fffffff -- the limit of C's int, far above any useful value
    return {
      max = whole(options, "max", 1000000),
      time = (time or 10) + 0.0,
      memory = math.min(whole(options, "memory", 1024), MOST),
      preempt = math.min(whole(options, "preempt", -1), MOST),
      grain = math.min(whole(options, "grain", 1), 4096),
      polls = math.min(whole(options, "polls", 2), MOST),
      unspecified = options.unspecified == true,
      full = options.full == true,
      seeds = whole(options, "seeds", 0),
      seed = whole(options, "seed", 0),
      workers = math.min(whole(options, "workers", 0), MOST),
    }
  end

  local STRESS = { runs = true, seed = true, ms = true, schedule = true, patience = true }

  local function read_stress(options)
    if options == nil then options = {} end
    if type(options) ~= "table" then misuse("stress: argument 2: expected a table of options") end
    for name in next, options do
      if not STRESS[name] then
        misuse(("stress: no option `%s`; there are runs, seed, ms, schedule and patience"):format(tostring(name)))
      end
    end
    local runs, seed = math.tointeger(options.runs or 100), math.tointeger(options.seed or 0)
    local ms = options.ms or 1
    if not runs or runs < 1 then misuse("stress: runs: expected a whole number of at least 1") end
    if not seed then misuse("stress: seed: expected a whole number") end
    local schedule = options.schedule
    if schedule ~= nil and type(schedule) ~= "string" then
      misuse("stress: schedule: expected a schedule, a string of mr.explore")
    end
    if schedule and (options.seed or options.ms) then
      misuse("stress: schedule: no delays are drawn under a schedule; leave out seed and ms")
    end
    if type(ms) ~= "number" or not (ms > 0 and ms <= 1000) then
      misuse("stress: ms: expected 0 to 1000 milliseconds")
    end
    local patience = options.patience
    if patience and not schedule then
      misuse("stress: patience: only a schedule is waited for; leave it out, or add schedule")
    end
    if patience ~= nil and (type(patience) ~= "number" or not (patience >= 1 and patience <= 3600000)) then
      misuse("stress: patience: expected 1 to 3600000 milliseconds, got " .. tostring(patience))
    end
    return runs, seed, ms, schedule, patience or 5000
  end

  return { read = read_options, read_stress = read_stress }
end
