-- Follows the recipes of docs/contributing.md on a copy of the tree: applies their lines as they stand, builds, and
-- runs their commands.
--
--     lua5.4 tests/recipes.lua BUILD [RECIPE...]
--
-- All recipes are applied at once, since each change of a central header compiles most of the tree. The copy is
-- compiled without optimisation, which takes a third of the time, and has the kernels for GPUs of BUILD. Prints
-- "N passed, N failed", a recipe being one.
local build = assert(arg[1], "usage: lua5.4 tests/recipes.lua BUILD [RECIPE...]")
local wanted = { table.unpack(arg, 2) }
local PAGE = "docs/contributing.md"

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  assert(file:close())
end

-- ---------------------------------------------------------------- the page

-- The blocks of code of a recipe, each with the paragraph in front of it.
local function steps_of(text)
  local steps = {}
  for before, kind, code in text:gmatch "(.-)\n```(%l*)\n(.-)\n```" do
    local paragraph = before:match "([^\n]+)%s*$" or ""
    local step = { kind = kind, code = code .. "\n" }
    step.file, step.side, step.anchor = paragraph:match "^In `(.-)`, (%l+) `(.+)`:$"
    step.new = paragraph:match "^New file `(.-)`:$"
    if kind ~= "sh" then assert(step.new or step.side == "above" or step.side == "below", paragraph) end
    steps[#steps + 1] = step
  end
  return steps
end

local function recipes()
  local list = {}
  for line in read(PAGE):gmatch "[^\n]*\n" do
    local title = line:match "^## (.+)\n"
    if title then list[#list + 1] = { title = title, text = "" }
    elseif #list > 0 then list[#list].text = list[#list].text .. line end
  end
  return list
end

-- ---------------------------------------------------------------- the copy

local function apply(folder, step)
  if step.new then return write(folder .. "/" .. step.new, step.code) end
  local path, lines, at = folder .. "/" .. step.file, {}, nil
  for line in read(path):gmatch "([^\n]*)\n" do
    lines[#lines + 1] = line
    if line:find(step.anchor, 1, true) then
      if at then error(("%s: several lines have `%s`"):format(step.file, step.anchor), 0) end
      at = #lines
    end
  end
  if not at then error(("%s: no line has `%s`"):format(step.file, step.anchor), 0) end
  table.insert(lines, step.side == "below" and at + 1 or at, (step.code:gsub("\n$", "")))
  write(path, table.concat(lines, "\n") .. "\n")
end

local function make_copy()
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute(([[
    set -e
    mkdir -p '%s/build/gen'
    cp -a Makefile .clang-format docs lua scripts src tests '%s'
    if [ -e '%s/gen/kernels' ]; then cp -a '%s/gen/kernels' '%s/build/gen'; fi]])
    :format(folder, folder, build, build, folder)))
  return folder
end

-- Kernels for the GPU are not compiled anew: their images are made younger than any source.
local function keep_kernels(folder)
  os.execute(("find '%s/build/gen/kernels' -type f -exec touch {} + 2> /dev/null"):format(folder))
end

-- ---------------------------------------------------------------- following them

local function is_wanted(title)
  for _, w in ipairs(wanted) do
    if title:find(w, 1, true) then return true end
  end
  return #wanted == 0
end

local function run(folder, recipe)
  for _, step in ipairs(recipe.steps) do
    -- The copy gets none of the settings of the make that calls this.
    local set = "unset MAKEFLAGS MAKEOVERRIDES MFLAGS BUILD && export CFLAGS=-O0 && set -e"
    if step.kind == "sh" and not os.execute(("cd '%s' && %s && %s"):format(folder, set,
        step.code:gsub("\n(.)", " && %1"))) then
      return false
    end
  end
  return true
end

local folder, followed = make_copy(), {}
for _, recipe in ipairs(recipes()) do
  recipe.steps = steps_of(recipe.text)
  if #recipe.steps > 0 and is_wanted(recipe.title) then followed[#followed + 1] = recipe end
end
assert(#followed > 0, "no recipe was found")
local passed, failed = 0, 0
for _, recipe in ipairs(followed) do
  for _, step in ipairs(recipe.steps) do
    local ok, problem = pcall(function() if step.kind ~= "sh" then apply(folder, step) end end)
    if not ok then
      print(("FAIL %s: %s"):format(recipe.title, problem))
      recipe.failed = true
    end
  end
end
keep_kernels(folder)
for _, recipe in ipairs(followed) do
  print("==== " .. recipe.title)
  io.flush()
  if not recipe.failed and run(folder, recipe) then passed = passed + 1 else failed = failed + 1 end
end
os.execute(("rm -rf '%s'"):format(folder))
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0)
