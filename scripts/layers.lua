-- Checks who includes whom under src/ (docs/design.md, "The parts, and who may include whom").
--
--     lua5.4 scripts/layers.lua [SRC]
--
-- Prints each offending line as file:line and exits with 1 if there is one.

local src = arg[1] or "src"

local below_backends = { "base", "model", "tensor", "ops", "ptx" }
local below_repl = { "base", "model", "tensor", "ops", "ptx", "hazard", "explore", "trace", "bind" }

-- Folder: the folders that it may include, besides itself.
local may_include = {
  base    = {},
  model   = { "base" },
  tensor  = { "base", "model" },
  ops     = { "base", "model", "tensor" },
  ptx     = { "base", "model", "tensor", "ops" },
  virtual = below_backends,
  cuda    = below_backends,
  hazard  = { "base", "model", "tensor", "ops" },
  explore = { "base", "model", "tensor", "ops" },
  trace   = { "base", "model", "tensor", "ops" },
  bind    = below_repl,
  repl    = below_repl,
  host    = { "base", "model", "tensor", "ops", "ptx", "hazard", "explore", "trace", "bind", "repl",
              "virtual", "cuda" },
}

local is_lua_header = { ["lua.h"] = true, ["lauxlib.h"] = true, ["lualib.h"] = true, ["lua.hpp"] = true }
local may_see_lua = { bind = true, repl = true, host = true }

local allowed = {}
for folder, list in pairs(may_include) do
  allowed[folder] = { [folder] = true }
  for _, name in ipairs(list) do allowed[folder][name] = true end
end

-- What is wrong with a file of `folder` that includes `name`; nil if nothing is.
local function problem(folder, name, is_quoted)
  if is_lua_header[name] then
    return not may_see_lua[folder] and "only bind, repl and host include " .. name or nil
  end
  if not is_quoted then return nil end
  if name:find("..", 1, true) then return "include by the path from src/, without '..'" end
  local target = name:match("^([^/]+)/")
  if not target then return 'include by the path from src/: "' .. folder .. "/" .. name .. '"' end
  if not may_include[target] then return target .. " is no folder of the design" end
  if not allowed[folder][target] then return folder .. " may not include " .. target end
  return nil
end

local offences = 0
local function offend(where, text)
  offences = offences + 1
  print(where .. ": " .. text)
end

local list = "find '%s' -type f -name '*.[ch]' -o -name '*.cu' -o -name '*.inc' | LC_ALL=C sort"
local files = io.popen(list:format(src))
for path in files:lines() do
  local folder = path:sub(#src + 2):match("^([^/]+)/")
  if not allowed[folder] then
    offend(path, "its folder is not one of the design's")
  else
    local number = 0
    for line in io.lines(path) do
      number = number + 1
      local open, name = line:match('^%s*#%s*include%s*([<"])([^>"]+)')
      local text = name and problem(folder, name, open == '"')
      if text then offend(path .. ":" .. number, text) end
    end
  end
end
files:close()
os.exit(offences == 0)
