-- Finds code in src/bind that looks into tables. An object that is taken out of a script's table and popped can be
-- collected before it is used. So only args.c takes objects out of tables. Prints each offence, exits with 1 if any.
--
--     lua5.4 scripts/tables.lua [SOURCES]
local src = (arg[1] or "src") .. "/bind"

-- Other files that look into tables, and why they may.
local MAY_LOOK = {
  ["args.c"] = "the one place for what a script's tables hold",
  -- into tables that no script reaches, or the module's own
  ["object.c"] = true, ["class.c"] = true, ["registry.c"] = true, ["module.c"] = true, ["open.c"] = true,
  ["stream_pool.c"] = true, ["task.c"] = true,
  ["names.c"] = true, ["tensor.c"] = true, ["missing.c"] = true, ["embedded.c"] = true,
  ["error.c"] = true, ["format.c"] = true,
  ["help.c"] = true, ["topics.c"] = true, ["op_list.c"] = true,
  ["tensor_box.c"] = true, ["gradient.c"] = true,
  ["explore_guard.c"] = true,
  -- at entries that are compared with what they were, and at whether they are there
  ["explore_entries.c"] = true,
  ["lua_body.c"] = true, ["nccl.c"] = true, ["graph_inputs.c"] = true,
  ["elementwise.c"] = true, ["explore.c"] = true, ["explore_run.c"] = true,
  ["waits.c"] = true, ["pending.c"] = true, ["hazard_ask.c"] = true,
  -- at the main thread, in the registry
  ["place.c"] = true,
  -- at functions of Lua's libraries, and at texts
  ["source.c"] = true, ["hazard_tables.c"] = true,
  -- pairs of a script's table go into lists of our own at once, of which args.c takes the objects
  ["files.c"] = true,
  -- at the functions of lua/millrace/explore/outside.lua, which stay where they are
  ["outside.c"] = true,
  -- at numbers and names, which are copied at once
  ["shape.c"] = true, ["tensor_index.c"] = true, ["tensor_literal.c"] = true, ["tensor_view.c"] = true,
  ["nn.c"] = true, ["simulator.c"] = true, ["hazard.c"] = true, ["joining.c"] = true, ["stream.c"] = true,
  ["trace_span.c"] = true, ["trace_ask.c"] = true, ["tracer.c"] = true, ["sync_debug.c"] = true,
  ["kernel.c"] = true, ["kernel_module.c"] = true, ["dist.c"] = true,
  ["kernel_profile.c"] = true,
  -- at whether there is a tensor that requires gradients; takes nothing out
  ["record.c"] = true,
  -- at what holds an object, which is known already; makes no value
  ["variable.c"] = true,
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

local files = io.popen(("ls '%s'/*.c | LC_ALL=C sort"):format(src))
for path in files:lines() do
  local name, number = path:match("[^/]+$"), 0
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
