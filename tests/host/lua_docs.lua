-- What build/lua_docs makes of the comments in front of Lua functions, and what it refuses.
local lu = require "luaunit"

local PROGRAM = assert(os.getenv("MILLRACE"), "MILLRACE must hold the path of the host"):match("^(.*)/") .. "/lua_docs"

local function write(path, text)
  local f = assert(io.open(path, "w"))
  f:write(text)
  f:close()
end

-- What it writes of these files, or nil and what it says of them.
local function run(...)
  local out, paths = os.tmpname(), {}
  for i, text in ipairs { ... } do
    paths[i] = os.tmpname()
    write(paths[i], text)
  end
  local pipe = assert(io.popen(("'%s' '%s' '%s' 2>&1"):format(PROGRAM, out, table.concat(paths, "' '"))))
  local said = pipe:read("a")
  local ok = pipe:close()
  local f = assert(io.open(out))
  local written = f:read("a")
  f:close()
  for i, path in ipairs(paths) do
    said = said:gsub(path:gsub("%p", "%%%0"), "FILE" .. i)
    os.remove(path)
  end
  os.remove(out)
  if ok then return written end
  return nil, said
end

TestLuaDocs = {}

function TestLuaDocs.test_a_function_in_parts()
  local text = run([[
--# parts of mr.parts.Inner: A "table" of two files.
  --- mr.parts.Inner.first(a: integer
  ---   [, b: string="x"]) -> c: integer
  --- One line,
  --- and another.
  -- Why it is so: no part of the help.
  function M.first(a, b) end
]], [[
--# parts
--- mr.parts.Inner.second()
--- Two.
M.second = first
]])
  lu.assertStrContains(text, '"mr.parts.Inner.first(a: integer [, b: string=\\"x\\"]) -> c: integer", ' ..
    '"One line, and another.", mr_call_lua, &mr_lua_parts, "Inner"}')
  lu.assertStrContains(text, '{"second", "mr.parts.Inner.second()", "Two.", mr_call_lua, &mr_lua_parts, "Inner"}')
  lu.assertStrContains(text, "parts_list[] = {&parts[0], &parts[1], NULL}")
  lu.assertStrContains(text, 'mr_parts_class = {"mr.parts.Inner", "A \\"table\\" of two files.", parts_list')
end

function TestLuaDocs.test_methods_of_tensors_are_functions_of_mr_but_not_the_other_way_round()
  local text = run([[
--# both of tensor, mr: Both.
--- mr.grid(x: tensor)
--- No method.
function M.grid(x) end
--- x:tile(n: integer)
--- A method.
function M.tile(x) end
]])
  lu.assertStrContains(text, "both_list[] = {&both[1], NULL}")
  lu.assertStrContains(text, "both_functions_list[] = {&both[0], &both[1], NULL}")
  lu.assertStrContains(text, 'mr_both_class = {"tensor", "Both.", both_list, NULL, &mr_kind_tensor}')
  lu.assertStrContains(text, 'mr_both_functions_class = {"mr", "Both.", both_functions_list, NULL, NULL}')
end

local REFUSED = {
  { "--- mr.f()\n--- Text.\nfunction M.f() end\n", "FILE1:1: no `--#` line names the class" },
  { "--# there\n", "FILE1:1: there is no class `there`" },
  { "--# a of stream: Text.\n", "FILE1:1: stream is no table of mr" },
  { "--# a of mr.a: Text.\n--# a of mr.b: Text.\n", "FILE1:2: the class a is there already" },
  { "--# a of mr.a: Text.\n--- mr.a.f()\n\nfunction a.f() end\n", "FILE1:3: mr.a.f() has no text" },
  { "--# a of mr.a: Text.\n--- mr.a.f()\n--- Text.\n\nfunction a.f() end\n",
    "FILE1:4: the comment of f stands in front of ``" },
  { "--# a of mr.a: Text.\n--- mr.a.f()\n--- Text.\nfunction a.fg() end\n",
    "FILE1:4: the comment of f stands in front of `function a.fg() end`" },
  { "--# a of mr.a: Text.\n--- mr.a.f()\n--- Text.\n", "FILE1:3: nothing follows the comment" },
  { "--# a of mr.a: Text.\n--- some words\n--- Text.\nwords()\n", "FILE1:4: `some words` is no usage line" },
  { "--# a of mr.a: Text.\n" .. ("--- mr.a.f()\n--- Text.\nfunction a.f() end\n"):rep(2),
    "FILE1:7: f has its comment twice" },
}

function TestLuaDocs.test_what_is_refused_names_its_line()
  for _, case in ipairs(REFUSED) do
    local written, said = run(case[1])
    lu.assertNil(written, case[1])
    lu.assertStrContains(said, case[2])
  end
end

os.exit(lu.LuaUnit.run())
