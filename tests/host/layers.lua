-- scripts/layers.lua finds what goes the wrong way in a tree: types, declarations and requires. `make lint` says what
-- it finds in this one.
-- not replayed: it runs a script of the developers'
local lu = require "luaunit"

TestLayers = {}

local root

local function write(path, text)
  os.execute(("mkdir -p '%s/%s'"):format(root, path:match("^(.*)/") or "."))
  local file <close> = assert(io.open(root .. "/" .. path, "w"))
  file:write("\n" .. text)
end

local function said(script)
  script = script or "scripts/layers.lua"
  local pipe <close> = io.popen(("lua5.4 '%s' '%s/src' '%s/build' '%s/lua'"):format(script, root, root, root))
  return pipe:read("a")
end

function TestLayers.setUp()
  root = os.tmpname()
  os.remove(root)
  write("build/files.stamp", "")
  write("src/base/a.h", "typedef struct mr_a {\n    int x;\n} mr_a;\n")
  write("lua/top.lua", 'local low = require "millrace.low"\n')
  write("lua/low.lua", "return {}\n")
end

function TestLayers.tearDown() os.execute(("rm -r '%s'"):format(root)) end

function TestLayers.test_a_type_has_one_definition()
  lu.assertNotStrContains(said(), "mr_a")
  write("src/model/a.h", "typedef struct {\n    int y;\n} mr_a;\n")
  lu.assertStrContains(said(), "mr_a is a type of")
end

function TestLayers.test_no_folder_declares_what_a_higher_one_defines()
  write("src/hazard/b.h", "struct mr_b {\n    int y;\n};\n")
  write("src/trace/b.h", "typedef struct mr_a mr_a;\n") -- trace may include base
  lu.assertNotStrContains(said(), "declares mr_")
  write("src/model/b.h", "typedef struct mr_b mr_b;\n")
  lu.assertStrContains(said(), "model/b.h: declares mr_b")
end

function TestLayers.test_folders_include_downwards()
  local file <close> = assert(io.open("scripts/layers.lua"))
  local script, count = file:read("a"):gsub('  order   = { "base"', '  order   = { "null", "virtual", "base"')
  lu.assertEquals(count, 1)
  lu.assertNotStrContains(said(), "leads back to it")
  write("layers.lua", script)
  lu.assertStrContains(said(root .. "/layers.lua"), "order: may include virtual, which leads back to it")
  lu.assertNotStrContains(said(root .. "/layers.lua"), "may include null")
end

function TestLayers.test_modules_require_downwards()
  lu.assertNotStrContains(said(), root .. "/lua/")
  write("lua/low.lua", 'return require "millrace.top"\n')
  lu.assertStrContains(said(), "millrace.low requires itself, by other modules")
  write("lua/low.lua", 'return require("millrace.top.part")\n')
  write("lua/top/part.lua", "return {}\n")
  lu.assertStrContains(said(), "millrace.top.part is a part of millrace.top: require that")
  write("lua/low.lua", 'return require("millrace.gone")\n')
  lu.assertStrContains(said(), "requires a module that is not there: millrace.gone")
end

os.exit(lu.LuaUnit.run())
