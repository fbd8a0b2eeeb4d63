-- tests/run.lua reads settings from the first comment of a test file, and refuses settings that it would not read.
-- not replayed: it runs the runner
local lu = require "luaunit"

TestSettings = {}

-- The runner's output and exit status for a test file with this text. The runner writes a file beside the host, so it
-- gets a link to the host.
local function run(text)
  local folder = os.tmpname()
  os.remove(folder)
  os.execute(("mkdir '%s' && ln -s \"$(realpath '%s')\" '%s/host'"):format(folder, os.getenv "MILLRACE", folder))
  local file <close> = assert(io.open(folder .. "/a.lua", "w"))
  file:write(text)
  file:close()
  local pipe = assert(io.popen(("lua5.4 tests/run.lua --host '%s/host' '%s/a.lua' 2>&1"):format(folder, folder)))
  local said = pipe:read "a"
  local _, _, status = pipe:close()
  os.execute(("rm -r '%s'"):format(folder))
  return said, status
end

local PASSED = 'print "1 passed, 0 failed"\n'

function TestSettings.test_a_setting_at_the_beginning_of_a_line_is_read()
  local said, status = run("-- About something.\n-- exit: 3\n" .. PASSED .. "os.exit(3)\n")
  lu.assertStrContains(said, "1 passed, 0 failed")
  lu.assertEquals(status, 0)
  said, status = run("-- About something.\n" .. PASSED .. "os.exit(3)\n")
  lu.assertStrContains(said, "exit status 3, expected 0")
  lu.assertEquals(status, 1)
end

function TestSettings.test_a_setting_inside_a_line_is_refused()
  for _, setting in ipairs { "timeout: 5", "options: --check", "exit: 3", "after: the others", "not recorded: x",
                             "not replayed: x", "not checked: x", "own pace: x", "virtual only: x" } do
    local key = setting:match "^[%l ]+"
    for _, before in ipairs { "-- About something. ", "--  ", "--     -- " } do
      local said, status = run("-- A test.\n" .. before .. setting .. "\n")
      lu.assertStrContains(said, ".lua:2: `" .. key .. ":` has an effect only at the beginning of its line")
      lu.assertEquals(status, 2)
    end
  end
end

function TestSettings.test_other_sentences_are_not()
  for _, text in ipairs { "-- It is not checked. A timeout is none.\n", "-- expect: place=after:16\n",
                          "-- A test.\nlocal x = 1 -- not checked: x\n" } do
    local said, status = run(text .. PASSED)
    lu.assertStrContains(said, "1 passed, 0 failed")
    lu.assertEquals(status, 0)
  end
end

os.exit(lu.LuaUnit.run())
