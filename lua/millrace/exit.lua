-- Lets a call of os.exit, which is an error here, end a run or a rank: nothing of the script catches it.
-- `has_ended()`: it was called. Each function of Lua that calls code of the script and catches its errors looks at that
-- when it comes back. coroutine.close runs __close, load a reader, and collectgarbage finalizers.
return function(globals, has_ended)
  local function pass(...)
    if has_ended() then error("os.exit", 0) end
    return ...
  end
  local function let_through(library, ...)
    for _, name in ipairs { ... } do
      local call = library and library[name]
      if call then library[name] = function(...) return pass(call(...)) end end
    end
  end
  let_through(globals, "pcall", "xpcall", "load", "collectgarbage")
  let_through(globals.coroutine, "resume", "close")
end
