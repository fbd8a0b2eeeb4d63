-- Pages of timelines in a real browser: page.mjs looks, clicks, zooms and types. Needs Node.js and Chromium.
-- not replayed: it starts other programs
-- not recorded: it starts other programs
-- timeout: 300
local samples = require "timelines.support.samples"

-- Sanitizers see nothing of what a browser does. Under them each sample is written alone.
local folder = (os.getenv("MILLRACE") or "build/millrace"):match("^(.*)/[^/]*$")
if not io.open(folder .. "/millrace.so") then -- their build has no module
  local count = 0
  for _, name in ipairs(samples.names) do
    for _, ending in ipairs { "html", "svg" } do
      assert(#samples.text(name, ending) > 1000, name)
      count = count + 1
    end
  end
  print(count .. " checks")
  os.exit(0)
end

local function has(command)
  return os.execute(("command -v %s >/dev/null 2>&1"):format(command)) == true
end

local browser = os.getenv("MILLRACE_BROWSER")
for _, name in ipairs { "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome" } do
  browser = browser or has(name) and name
end
if not has("node") or not browser then
  local missing = browser and "Node.js" or "Chromium"
  print("not available: no " .. missing .. "; scripts/setup --browser installs what is needed")
  os.exit(77)
end
-- The runner counts the last line that it prints.
os.exit((os.execute(("node tests/timelines/page.mjs '%s' 2>&1"):format(samples.program))) == true)
