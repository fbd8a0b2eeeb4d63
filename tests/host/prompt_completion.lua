-- timeout: 240
-- What TAB finds, asked of the completer itself through a pipe: prompt_terminal.lua presses the key.
local lu = require "luaunit"
local command = require "host.support.command"

-- The completer is an upvalue of what mr.prompt has.
local ASK = [[
local function upvalue(f, name)
  for i = 1, 99 do
    local n, v = debug.getupvalue(f, i)
    if n == name then return v end
  end
end
complete = upvalue(upvalue(mr.prompt.step, "carry_out"), "tools").require("complete")
function offered(text) print("offered", table.concat((complete.find(text)), " ")) end
function hinted(text) print("hinted", complete.hint(text)) end
]]

local function ask(lines)
  local result = command.run{ "-i", input = ASK .. lines }
  lu.assertEquals({ result.status, result.err }, { 0, "" })
  return (result.out:gsub("mr:%d+[^\n>]*> ", ""))
end

-- The completions at the end of the text, after these entries.
local function offered(text, before)
  return ask((before or "") .. ("offered(%q)\n"):format(text)):match("offered\t([^\n]*)")
end

local function hinted(text) return ask(("hinted(%q)\n"):format(text)):match("hinted\t([^\n]*)") end

TestOptions = {}

-- Behind each function with a table of options: its names; and nothing fails behind any other one.
function TestOptions.test_in_the_table_of_each_function()
  local out = ask([[
x, s, e = mr.ones(2), mr.stream(), mr.event()
do
  local asked, bare = 0, {}
  for _, one in ipairs((mr.docs())) do
    local name = one.usage and (one.usage:match("^mr[%w_%.]+") or one.owner == "mr" and "mr." .. one.name)
    if one.usage and not name and (one.owner == "tensor" or one.owner == "stream" or one.owner == "event") then
      name = one.owner:gsub("tensor", "x"):gsub("stream", "s"):gsub("event", "e") .. ":" .. one.name
    end
    local in_place = one.name:find("_$") -- its usage line is that of the other one, which has a result
    local options = name and not in_place and one.usage:gsub("%->.*$", ""):match("{([%a_]+)[:=]")
    for _, text in ipairs(name and { name .. "{", name .. "(1, {", name .. "(1, {a" } or {}) do
      local list = complete.find(text)
      complete.listing()
      complete.hint(text)
      asked = asked + 1
      if options and not text:find("a$") and not table.concat(list, " "):find(options .. " = ", 1, true) then
        bare[#bare + 1] = text
      end
    end
  end
  print(asked > 900, "without options:", table.concat(bare, " "))
end
]])
  lu.assertStrContains(out, "true\twithout options:\t\n")
end

function TestOptions.test_of_functions_without_a_result()
  lu.assertEquals(offered("mr.spin{m"), "ms = ")
  lu.assertEquals(offered("mr.memset_async(1, 2, {"), "stream = ")
  lu.assertEquals(offered("mr.ones(2):sum(1, {"), "out = ")
  lu.assertEquals(offered("mr.optim.Adam({}, {b"), "betas = ")
  lu.assertEquals(offered("mr.machine.settings{conn"), "connections = ")
end

TestValues = {}

function TestValues.test_of_options_and_arguments()
  lu.assertEquals(offered('mr.graph(print, {mode="'), "global relaxed thread")
  lu.assertEquals(offered('mr.ones(2):to("c'), "cpu cuda cuda:0")
  lu.assertEquals(offered('mr.ones(2):to("f'), "f16 f32 f64")
  lu.assertEquals(offered('mr.hazard.ignore{tensor="', 'a = mr.zeros(2, {name = "weights"})\n'), "weights")
  lu.assertEquals(offered('mr.hazard.ignore{kind="use'), "use-after-free use-before-alloc")
  lu.assertEquals(offered('mr.machine.fault("la'), "launch-failure launch-timeout")
  lu.assertEquals(offered("mr.zeros(2, {dtype = "), '"bf16" "bool" "f16" "f32" "f64" "i32" "i64" "u8"')
end

-- Names of files stand where files are meant.
function TestValues.test_names_of_files()
  lu.assertEquals(offered('mr.stream{name = "docs/de'), "")
  lu.assertEquals(offered('mr.load("docs/de'), "docs/design.md")
  lu.assertEquals(offered('dofile("docs/de'), "docs/design.md")
end

TestHints = {}

function TestHints.test_behind_a_brace_and_behind_a_call()
  lu.assertStrContains(hinted("mr.stream{"), "priority: integer=0, ")
  lu.assertEquals(hinted("mr.spin{"), "ms: number, stream: stream}")
  lu.assertEquals(hinted("mr.ones(2):view("), "sizes: integer...) -> tensor")
  lu.assertEquals(hinted("mr.ones(2, {dtype = 'f32'}):view(1, "), "  t:view(sizes: integer...) -> tensor")
  lu.assertEquals(hinted("f{"), "nil")
end

os.exit(lu.LuaUnit.run())
