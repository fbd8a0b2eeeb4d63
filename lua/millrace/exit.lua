-- os.exit as an error that ends a run or a rank, while the process continues.
local exit = {}

-- The status that os.exit(code) asks for; nil: `code` is none.
function exit.status_of(code)
  if code == nil or code == true then return 0 end
  if code == false then return 1 end
  return math.tointeger(code)
end

-- The script cannot catch the error. `has_ended()`: os.exit was called. Each Lua function that calls code of the script
-- and catches its errors checks this when it returns. coroutine.close runs __close, load a reader, and collectgarbage
-- finalizers.
function exit.let_through(globals, has_ended)
  local function pass(...)
    if has_ended() then error("os.exit", 0) end
    return ...
  end
  local function wrap(library, ...)
    for _, name in ipairs { ... } do
      local call = library and library[name]
      if call then library[name] = function(...) return pass(call(...)) end end
    end
  end
  wrap(globals, "pcall", "xpcall", "load", "collectgarbage")
  wrap(globals.coroutine, "resume", "close")
end

return exit
