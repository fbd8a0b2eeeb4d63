-- Sessions at the prompt as a page shows them: what a person types behind each prompt, and what comes back.
local command = require "host.support.command"

local transcript = {}

local PROMPT = "mr:%d+[^\n>]*> "

-- The lines that were typed in a transcript.
function transcript.typed(text)
  local typed = {}
  for line in text:gmatch("[^\n]+") do
    typed[#typed + 1] = line:match("^" .. PROMPT .. "(.*)$") or line:match("^%.%.> (.*)$")
  end
  return typed
end

-- The output of the host, errors and reports included, when these lines are typed. arguments: a text for the shell.
function transcript.play(typed, arguments, environment)
  return command.with_file(table.concat(typed, "\n") .. "\n", function(path)
    local pipe = io.popen(("%s timeout -k 5 50 %s -i %s < %s 2>&1"):format(environment or "LC_ALL=C.UTF-8 COLUMNS=100",
      command.quote(command.host), arguments or "", path))
    local out = pipe:read("a")
    pipe:close()
    return out
  end)
end

-- What the host writes, with the lines behind their prompts.
function transcript.weave(out, typed)
  local lines, at = {}, 0
  out = out:sub(out:find("mr:1>", 1, true), -1) -- behind the banner
  while out ~= "" do
    local from, to = out:find("^" .. PROMPT)
    if not from then from, to = out:find("^%.%.> ") end
    if from then
      at = at + 1
      lines[#lines + 1] = out:sub(from, to) .. (typed[at] or "")
      out = out:sub(to + 1)
      if not typed[at] then lines[#lines] = nil end
    else
      local line, rest = out:match("^([^\n]*)\n?(.*)$")
      lines[#lines + 1] = line
      out = rest
    end
  end
  return table.concat(lines, "\n")
end

return transcript
