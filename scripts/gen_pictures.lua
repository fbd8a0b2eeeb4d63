-- Makes the pictures of README.md with millrace itself:
-- build/millrace --device virtual scripts/gen_pictures.lua [--check]
--
-- With --check it writes nothing, and fails if a picture is out of date. Each has a ground of its own, so it is right
-- on a light and on a dark page.
local mr = require "millrace"

local FOLDER = "docs/pictures/"

-- ---------------------------------------------------------------- a race, and the same program with its fix

local RACE = [[
local producer, consumer = mr.stream{name = "producer"}, mr.stream{name = "consumer"}
local x = mr.zeros(4096)
mr.synchronize()
producer:run(function() mr.op{name = "produce", ms = 1, writes = {x}} end)
local done = producer:record_event()
WAIT
consumer:run(function() mr.op{name = "consume", ms = 0.5, reads = {x}} end)
mr.synchronize()
]]

local function trace_of(wait)
  local text = RACE:gsub("WAIT", wait)
  mr.reset()
  mr.hazard.mode("collect")
  local trace = mr.timeline(assert(load(text, "@race.lua")))
  mr.hazard.mode("off")
  mr.hazard.clear()
  return trace
end

local function race(path)
  local before = trace_of("")
  trace_of("consumer:wait_event(done)"):save(path, { before = before })
end

-- ---------------------------------------------------------------- the prompt with a report

local SESSION = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(1024) mr.synchronize()
a:run(function() mr.spin{ms = 1} x:fill_(1) end)
y = b:run(function() return x:sum() end)
y
]]

local PROMPT = "^(mr:%d+[^>]*> )(.*)$"

-- What a person sees: the entries behind their prompts, what they show, and reports where they come.
local function session()
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  file:write(SESSION)
  file:close()
  -- This program itself, under its own path.
  local pipe <close> = assert(io.popen(
    ('HOME=/nonexistent NO_COLOR=1 "$(readlink /proc/$PPID/exe)" --device virtual -i < %s 2>&1'):format(name)))
  local text = pipe:read("a")
  os.remove(name)
  local lines, entries = {}, SESSION:gmatch("[^\n]+")
  for line in text:gmatch("[^\n]+") do
    while line:find(PROMPT) do
      local prompt, rest = line:match(PROMPT)
      local entry = entries()
      if entry then lines[#lines + 1] = prompt .. entry end
      line = rest
    end
    if #lines > 0 and line ~= "" then lines[#lines + 1] = line end
  end
  return lines
end

local ESCAPES = { ["<"] = "&lt;", [">"] = "&gt;", ["&"] = "&amp;" }
local ROW, LEFT, CHARACTER = 19, 18, 8.05

local function class_of(line)
  if line:find(PROMPT) then return "entry" end
  if line:find("^hazard:") then return "hazard" end
  if line:find("^fix:") then return "fix" end
  return "shown"
end

local function prompt(path)
  local lines, widest = session(), 0
  for _, line in ipairs(lines) do widest = math.max(widest, utf8.len(line)) end
  local width, height = math.ceil(2 * LEFT + widest * CHARACTER), #lines * ROW + 2 * LEFT
  local file <close> = assert(io.open(path, "w"))
  file:write(([[<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">
<title>The prompt: an entry, and the report of a race</title>
<style>text{font:13.4px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#cbd2e0;white-space:pre}
.entry{fill:#fff}.hazard{fill:#ff7d96;font-weight:600}.fix{fill:#6fd3a0}</style>
<rect width="%d" height="%d" rx="8" fill="#161a22" stroke="#3a4354"/>
]]):format(width, height, width, height, width, height))
  for i, line in ipairs(lines) do
    file:write(('<text x="%d" y="%d" class="%s" xml:space="preserve">%s</text>\n'):format(LEFT, LEFT + i * ROW - 5,
      class_of(line), (line:gsub("[<>&]", ESCAPES))))
  end
  file:write("</svg>\n")
end

-- ---------------------------------------------------------------- all of them

local function read(path)
  local file <close> = io.open(path, "rb")
  return file and file:read("a")
end

local stale = 0
for name, make in pairs { race = race, prompt = prompt } do
  local path = FOLDER .. name .. ".svg"
  if ... == "--check" then
    local other = os.tmpname()
    make(other .. ".svg")
    if read(other .. ".svg") ~= read(path) then
      io.stderr:write(path, " is out of date: make docs\n")
      stale = stale + 1
    end
    os.remove(other)
    os.remove(other .. ".svg")
  else make(path) end
end
os.exit(stale == 0)
