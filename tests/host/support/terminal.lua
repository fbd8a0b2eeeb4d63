-- Types at a terminal (support/terminal.c, which make builds beside the host) and looks at its screen.
local command = require "host.support.command"

local terminal = {}

local program = command.host:match("^(.*)/[^/]*$") .. "/terminal"

-- A text as a step of the terminal has it.
function terminal.escape(text)
  return (text:gsub("[\\\n\r\t\27%c ]", function(c)
    return ({ ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", [" "] = "\\s" })[c] or ("\\x%02x"):format(c:byte())
  end))
end

-- terminal.run{ { "wait", "mr:1>" }, { "send", "x = 1\r" }, ..., rows =, columns =, term =, home =, environment = shell
-- words, arguments = of the host } -> {screen = lines of the last "shot" step, cursor = "ROW COLUMN", out = all that the
-- terminal printed, home =}. A home that is not given is a new folder, removed at the end.
function terminal.run(steps)
  local file = io.open(program)
  if not file then error("no " .. program .. ": run make " .. program) end
  file:close()
  local home, list = steps.home, os.tmpname()
  if not home then
    home = os.tmpname()
    os.remove(home)
    assert(os.execute("mkdir " .. home))
  end
  local lines = {}
  for i, step in ipairs(steps) do
    local words = {}
    for k, word in ipairs(step) do
      local is_text = k > 1 and step[1] ~= "paste" and type(word) == "string"
      words[k] = is_text and terminal.escape(word) or tostring(word)
    end
    lines[i] = table.concat(words, " ") .. "\n"
  end
  command.write(list, table.concat(lines))
  local pipe = io.popen(("env -u NO_COLOR HOME=%s TERM=%s MILLRACE_TERMINAL_SECONDS=%d %s timeout -k 5 %d %s %d %d %s %s %s 2>&1")
    :format(home, steps.term or "xterm", 20 * command.times, steps.environment or "", command.limit, program,
    steps.rows or 24, steps.columns or 80, list, command.quote(command.host), steps.arguments or ""))
  local out = pipe:read("a")
  pipe:close()
  os.remove(list)
  if not steps.home then os.execute("rm -rf " .. home) end
  local result = { out = out, screen = {}, cursor = out:match("cursor (%d+ %d+)\n[^|]*$") }
  local last = out:match("^.*()cursor") and out:sub(1, out:match("^.*()cursor")) or ""
  last = last:match("^.*cursor %d+ %d+\n(.*)$") or last
  for line in last:gmatch("|([^\n]*)\n") do result.screen[#result.screen + 1] = line end
  while result.screen[#result.screen] == "" do result.screen[#result.screen] = nil end
  result.text = table.concat(result.screen, "\n")
  result.failed = out:find("failed: ", 1, true) and out or nil
  return result
end

return terminal
