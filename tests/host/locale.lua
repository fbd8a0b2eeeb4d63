-- timeout: 60
-- Numbers as text have a point, whatever locale the script has chosen by os.setlocale.
local lu = require "luaunit"
local command = require "host.support.command"

local GERMAN = "de_DE.UTF-8"

-- A folder with that locale, made once; nil: this machine has no definitions of locales.
local function make_locales()
  local folder = os.tmpname()
  os.remove(folder)
  local made = os.execute(("mkdir %s && localedef -i de_DE -f UTF-8 %s/%s 2>/dev/null"):format(folder, folder, GERMAN))
  if made then return folder end
  os.execute("rm -rf " .. folder)
  return nil
end

local folder = make_locales()

TestLocale = {}

-- What `code` prints in that locale: in the host, and by a plain lua5.4 that loads the module after the change.
function TestLocale:prints(code, expected)
  if not folder then return lu.skip("localedef and the package `locales` are not installed") end
  local set = ("assert(os.setlocale(%q)) assert(tostring(1.5) == '1,5') "):format(GERMAN)
  local environment = "export LOCPATH=" .. folder .. "; "
  local result = command.run{ "-e", set .. code, environment = environment }
  lu.assertEquals({ result.status, result.err, result.out }, { 0, "", expected })
  local said, ended_well = command.run_plain(set .. "mr = require 'millrace' " .. code, environment)
  if said then lu.assertEquals({ said, ended_well }, { expected, true }) end
end

function TestLocale:test_tensors()
  self:prints("print(mr.tensor{1.5, 2.25}) print(mr.tensor{1e-7, 3e8})",
    "[1.5000, 2.2500]\nf32[2] on device 0\n[1.0000e-07, 3.0000e+08]\nf32[2] on device 0\n")
end

function TestLocale:test_messages_of_c_and_of_lua()
  self:prints([[
    print((select(2, pcall(mr.zeros, 1.5)):match("size.*")))
    print((select(2, pcall(mr.optim.SGD, {mr.zeros(1):requires_grad_()}, {lr = -0.5})):match("from.*")))
    print(mr.optim.SGD({mr.zeros(1):requires_grad_()}, {lr = 0.5}))]],
    "size 1 is 1.5, expected a whole number\nfrom 0 on\nSGD (1 group, lr 0.5)\n")
end

function TestLocale:test_models_and_pictures()
  self:prints([[
    print(mr.machine.model("h200"))
    local path = os.tmpname()
    local trace = mr.timeline(function() mr.op{name = "a", ms = 1.5} end)
    for _, ending in ipairs{".svg", ".json", ".csv"} do
      trace:save(path .. ending)
      local file = io.open(path .. ending)
      local text = file:read("a")
      file:close()
      os.remove(path .. ending)
      print(ending, text:find("%d,%d+\"") == nil, text:find("%d%.%d") ~= nil)
    end
    os.remove(path)]], "h200\n.svg\ttrue\ttrue\n.json\ttrue\ttrue\n.csv\ttrue\ttrue\n")
end

function TestLocale:test_kernels()
  self:prints([[
    local k = mr.kernel("extern \"C\" __global__ void f(float *x) { x[0] = 1.5f; }")
    local x = mr.zeros(1)
    k[{1, 1}](x)
    print(x:item() == 3 / 2)
    local scaled = mr.elementwise("float a, float x -> float z", "z = a * x")
    print(scaled(0.5, mr.ones(1)):item() == 1 / 2)]], "true\ntrue\n")
end

local failed = lu.LuaUnit.run()
if folder then os.execute("rm -rf " .. folder) end
os.exit(failed)
