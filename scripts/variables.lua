-- Which variables of the whole process there are: each state and thread shares them, so none comes unseen. Reads the
-- symbol tables of what was compiled, and the table in docs/contributing.md ("Several Lua states, threads, forks"),
-- which says why each is safe. Prints each offence, exits with 1 if any.
--
--     lua5.4 scripts/variables.lua [BUILD]
local build = arg[1] or "build"

-- By the column "Where" of that table: the files of src/ and their variables. For `host` and `repl` all are allowed.
local KNOWN = {
  ["base/parallel.c"] = { ["base/parallel.c"] = "pool threads once" },
  ["base/output.c"] = { ["base/output.c"] = "limit on_failure state is_told problem written" },
  ["base/number.c"] = { ["base/number.c"] = "plain once" },
  ["base/status.c"] = { ["base/status.c"] = "no_memory" },
  ["compile/compiler/clang.c"] = { ["compile/compiler/clang.c"] = "answered" },
  ["compile/compiler/nvrtc.c"] = { ["compile/compiler/nvrtc.c"] = "found_once found include_folder" },
  ["collective/slots.c"] = { ["collective/slots.c"] = "own" },
  ["compile/compiler/worker.c"] = { ["compile/compiler/worker.c"] = "idle_lock idle idle_owner" },
  ["ops/kernel/code.c"] = { ["ops/kernel/code.c"] = "ids" },
  ["hazard/find/unset.c"] = { ["hazard/find/unset.c"] = "whole nothing" },
  ["ops/body/blas.c"] = { ["ops/body/blas.c"] = "turn is_bounded found blas missing once" },
  ["bind/explore/run.c"] = { ["bind/explore/run.c"] = "mr_bind_explore_host" },
  ["cuda/context.c"] = { ["cuda/context.c"] = "mr_cuda_current forked" },
  ["cuda/backend/device.c"] = { ["cuda/backend/device.c"] = "is_kept kept" },
  ["cuda/library.c"] = { ["cuda/library.c"] = "mr_cu mr_cublas mr_nccl mr_cupti lock found version once" },
  ["cuda/driver.c"] = { ["cuda/driver.c"] = "once eager" },
  ["cuda/runs/cupti.c"] = { ["cuda/runs/cupti.c"] = "lock shared calling" },
  ["cuda/runs/nvtx.c"] = { ["cuda/runs/nvtx.c"] = "nvtxGlobals_v3 InitializeInjectionNvtx2_fnptr" },
  ["cuda/wait/turn.c"] = { ["cuda/wait/turn.c"] = "lock passed ended once" },
}
local FOLDERS = { host = true, repl = true }

local offences = 0
local function offend(text, ...)
  offences = offences + 1
  print(text:format(...))
end

local function words(text)
  local set = {}
  for word in text:gmatch("%S+") do set[word] = true end
  return set
end

local function lines_of(command)
  local lines, pipe = {}, assert(io.popen(command))
  for line in pipe:lines() do lines[#lines + 1] = line end
  assert(pipe:close())
  return lines
end

-- ".data.rel.ro" is written by the loader, and by nobody afterwards.
local function is_writable(section)
  return section == "*COM*" or (section:find("^%.t?bss") or section:find("^%.t?data"))
    and not section:find("^%.data%.rel%.ro")
end

-- For each object file {name = true}; a static of a function is called NAME.NUMBER.
local function variables_of(objects)
  local all, object = {}, nil
  for _, line in ipairs(lines_of("LC_ALL=C objdump -t '" .. table.concat(objects, "' '") .. "'")) do
    object = line:match("^(.*):%s+file format ") or object
    if object then all[object] = all[object] or {} end
    local flags, section, name = line:match("^%x+ (.......) (%S+)\t%x+%s+(.*)$")
    local is_object = flags and (flags:find("O", 1, true) or section:find("^%.t[bd]"))
    if is_object and is_writable(section) and not flags:find("[dF]") then
      all[object][name:gsub("^%.hidden ", ""):gsub("%.%d+$", "")] = true
    end
  end
  return all
end

-- ---------------------------------------------------------------- the objects against the list

local expected, is_compiled = {}, {}
for _, files in pairs(KNOWN) do
  for file, names in pairs(files) do expected[file] = words(names) end
end
-- Without CUDA=1 there may be older objects of src/cuda.
local up_to_date = ([[
  for source in src/*/*.c src/*/*/*.c; do
    if [ 'BUILD/obj/'"${source%c}o" -nt "$source" ]; then echo "$source"; fi
  done]]):gsub("BUILD", build)
local compiled, objects = {}, {}
for _, source in ipairs(lines_of(up_to_date)) do
  if not FOLDERS[source:match("^src/(%w+)")] then
    compiled[#compiled + 1] = source
    objects[#objects + 1] = build .. "/obj/" .. source:gsub("c$", "o")
  end
end
local variables = #objects > 0 and variables_of(objects)
for i, source in ipairs(compiled) do
  local file, found = source:match("^src/(.*)$"), variables[objects[i]]
  is_compiled[file] = true
  for name in pairs(found) do
    if not (expected[file] or {})[name] then
      offend("%s: `%s` is a variable of the whole process: keep it in the machine, or list it here and in " ..
        "docs/contributing.md", source, name)
    end
  end
  for name in pairs(expected[file] or {}) do
    if not found[name] then offend("scripts/variables.lua: %s has no variable `%s`", source, name) end
  end
end
if not is_compiled["base/status.c"] then offend("%s: no object files", build) end

-- ---------------------------------------------------------------- the list against the document

local page = assert(io.open("docs/contributing.md"))
local rows = page:read("a"):match("| What | Where | Why it is safe |\n(.-)\n\n")
page:close()
local told = {}
for cell in rows:gmatch("\n|[^|]*|([^|]*)|") do
  for where in cell:gmatch("`([^`]+)`") do
    told[where] = true
    if not KNOWN[where] and not FOLDERS[where] then
      offend("docs/contributing.md: nothing in %s is shared by the whole process", where)
    end
  end
end
for _, list in ipairs { KNOWN, FOLDERS } do
  for where in pairs(list) do
    if not told[where] then offend("docs/contributing.md: the table of what states share does not name %s", where) end
  end
end
os.exit(offences == 0)
