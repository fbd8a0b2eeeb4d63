-- Finds code in src/bind that looks into tables. An object that is taken out of a script's table and popped can be
-- collected before it is used. So only args.c takes objects out of tables. Prints each offence, exits with 1 if any.
--
--     lua5.4 scripts/tables.lua [SOURCES]
local src = (arg[1] or "src") .. "/bind"

-- Other files that look into tables, and why they may.
local MAY_LOOK = {
  ["args.c"] = "the one place for what a script's tables hold",
  -- into tables that no script reaches, or the module's own
  ["object.c"] = true, ["class.c"] = true, ["registry.c"] = true, ["module.c"] = true, ["module/open.c"] = true,
  ["machine/stream_pool.c"] = true, ["ranks/task.c"] = true,
  ["names.c"] = true, ["tensor/tensor.c"] = true, ["missing.c"] = true, ["embedded.c"] = true,
  ["error.c"] = true, ["tensor/format.c"] = true,
  ["module/help.c"] = true, ["module/topics.c"] = true, ["ops/op_list.c"] = true,
  ["tensor_box.c"] = true, ["nn/gradient.c"] = true,
  ["explore_guard.c"] = true,
  -- at entries that are compared with what they were, and at whether they are there
  ["explore/entries.c"] = true,
  ["lua_body.c"] = true, ["ranks/nccl.c"] = true, ["graph/inputs.c"] = true,
  ["kernel/elementwise.c"] = true, ["explore/explore.c"] = true, ["explore/run.c"] = true,
  ["hazard/waits.c"] = true, ["machine/pending.c"] = true, ["hazard/ask.c"] = true,
  -- at the main thread, in the registry
  ["hazard/place.c"] = true,
  -- at functions of Lua's libraries, and at texts
  ["source.c"] = true, ["hazard/tables.c"] = true,
  -- pairs of a script's table go into lists of our own at once; args.c takes the objects from these
  ["tensor/files.c"] = true,
  -- at the functions of lua/millrace/explore/outside.lua, which stay where they are
  ["outside.c"] = true,
  -- at numbers and names, which are copied at once
  ["ops/shape.c"] = true, ["tensor/index.c"] = true, ["tensor/literal.c"] = true, ["tensor/view.c"] = true,
  ["nn/nn.c"] = true, ["machine/simulator.c"] = true, ["hazard/hazard.c"] = true, ["tensor/joining.c"] = true,
  ["machine/stream.c"] = true,
  ["trace/span.c"] = true, ["trace/ask.c"] = true, ["trace/tracer.c"] = true, ["hazard/sync_debug.c"] = true,
  ["kernel/kernel.c"] = true, ["kernel/module.c"] = true, ["ranks/dist.c"] = true,
  ["kernel/profile.c"] = true,
  -- at whether there is a tensor that requires gradients; takes nothing out
  ["record.c"] = true,
  -- at what holds an object, which is known already; makes no value
  ["hazard/variable.c"] = true, ["quiet.c"] = true,
}
local LOOKS = { "lua_rawgeti?%(", "lua_geti%(", "lua_gettable%(", "lua_getfield%(", "lua_next%(", "lua_rawgetp%(" }
-- An object at the top of the stack is about to be popped.
local BORROWS = { "%*%([%w_ ]+%*%*%) ?mr_test%(L, %-%d" }
for _, class in ipairs { "tensor", "stream", "event", "device", "facts" } do
  table.insert(BORROWS, "mr_check_" .. class .. "%(L, %-%d")
  table.insert(BORROWS, "mr_check_" .. class .. "%(L, lua_gettop%(L%)[,)]")
end

local offences = 0
local function offend(path, number, text)
  offences = offences + 1
  print(("%s:%d: %s"):format(path, number, text))
end

local files = io.popen(("find '%s' -name '*.c' | LC_ALL=C sort"):format(src))
for path in files:lines() do
  local name, number = path:sub(#src + 2), 0
  for line in io.lines(path) do
    number = number + 1
    for _, pattern in ipairs(LOOKS) do
      if not MAY_LOOK[name] and line:find(pattern) then
        offend(path, number, "looks into a table: args.c does that, with mr_check_options or mr_check_tensors")
      end
    end
    for _, pattern in ipairs(BORROWS) do
      if name ~= "args.c" and line:find(pattern) then
        offend(path, number, "takes an object from the top of the stack, where nothing keeps it")
      end
    end
  end
end
files:close()
os.exit(offences == 0)
