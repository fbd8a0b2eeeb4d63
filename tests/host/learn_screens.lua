-- timeout: 120
-- own pace: each lesson runs as a whole program
-- What a lesson of `millrace learn` shows at once fits a screen of 80 columns and 24 rows.
local lu = require "luaunit"
local command = require "host.support.command"
local lessons = require "host.support.lessons"

local COLUMNS, ROWS = 80, 24

-- The rows from the first to the last that is not empty.
local function rows_of(text)
  local rows = 0
  for line in (text:gsub("^\n+", "") .. "\n"):gmatch("([^\n]*)\n") do
    rows = rows + math.max(1, math.ceil((utf8.len(line) or #line) / COLUMNS))
  end
  return rows
end

-- What stands on the screen at each prompt, with the prompt.
local function screens_of(out)
  local screens, from = {}, 1
  for before, name, after in out:gmatch("()([%a][%a ,%d]*> )()") do
    if out:sub(before - 1, before - 1) == "\n" or before == from then
      screens[#screens + 1] = out:sub(from, before - 1) .. name
      from = after
    end
  end
  return screens
end

TestScreens = {}

-- Each guess is followed by the run that contradicts it.
for _, name in ipairs(lessons.names()) do
  TestScreens["test_" .. name:match("^(.*)%.lua$")] = function()
    local number, checked = tostring(tonumber(name:match("^%d+"))), 0
    lessons.with_folder(function(home)
      for guess = 1, 9 do
        local out = command.run { "learn", number, environment = "export TERM=dumb HOME=" .. home,
          input = guess .. "\n\n\n\n:show\n" }.out
        lu.skipIf(out:find(" is left out: ", 1, true) ~= nil, out:match("[^\n]*"))
        if out:find("Type a number", 1, true) then break end
        local screens = screens_of(out)
        lu.assertTrue(#screens >= 4, out)
        for _, screen in ipairs(screens) do lu.assertTrue(rows_of(screen) <= ROWS, screen) end
        checked = checked + 1
      end
    end)
    lu.assertTrue(checked >= 2)
  end
end

os.exit(lu.LuaUnit.run())
