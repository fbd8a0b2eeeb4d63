-- Types at a terminal (support/terminal.c, which make builds beside the host) and looks at its screen.
local command = require "host.support.command"

local terminal = {}

local program = command.host:match("^(.*)/[^/]*$") .. "/terminal"

-- A text as a step of the terminal has it.
function terminal.escape(text)
  return (text:gsub("[\\%c ]", function(c) return c == "\\" and "\\\\" or ("\\x%02x"):format(c:byte()) end))
end

-- terminal.run{ { "wait", "mr:1>" }, { "send", "x = 1\r" }, ..., rows =, columns =, term =, home
-- =, environment =, arguments = } -> {text =, out =, failed =}. `environment` is shell words,
-- `arguments` is for the host. `text` is the screen of the last "shot" step, `out` is all that
-- the terminal printed, `failed` is the same if a step failed. A home that is not given is a new
-- folder, removed at the end.
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
  local pipe = io.popen(table.concat({
    "env -u NO_COLOR HOME=" .. home, "TERM=" .. (steps.term or "xterm"),
    "MILLRACE_TERMINAL_SECONDS=" .. math.ceil(20 * command.times), steps.environment or "",
    "timeout -k 5", command.wall_limit, program, steps.rows or 24, steps.columns or 80, list,
    command.quote(command.host), steps.arguments or "", "2>&1",
  }, " "))
  local out = pipe:read("a")
  pipe:close()
  os.remove(list)
  if not steps.home then os.execute("rm -rf " .. home) end
  local last = ""
  for screen in out:gmatch("(|.-)\ncursor %d+ %d+\n") do last = screen end
  return {
    out = out,
    text = last:gsub("\n|", "\n"):gsub("^|", ""):gsub("\n+$", ""),
    failed = out:find("failed: ", 1, true) and out or nil,
  }
end

return terminal
