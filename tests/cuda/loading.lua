-- Where there is no usable GPU, --device cuda says why in one sentence, auto takes the virtual GPU without
-- a word, and doctor tells. The driver is the tests' own (tests/fake_cuda), so this runs everywhere.
local luaunit = require "luaunit"
local fake = require "cuda.support.fake"


local PRINT = "print(mr.backend, mr.current_device().index, mr.device_count())"

-- Exit status, output and complaint of the host with these variables and arguments.
local function run(variables, ...)
  local _, status, said = fake.run{ variables = variables, ... }
  return status, said.out, said.err
end

-- Variables, what the sentence must contain, the exit status if it is not 2 (a device that there is not).
local UNUSABLE = {
  { "MILLRACE_LIBCUDA=/nowhere/libcuda.so.1", "cannot be opened: /nowhere/libcuda.so.1" },
  { "MILLRACE_LIBCUDA=" .. fake.folder .. "incomplete.so", "lacks the function cuMemPoolTrimTo" },
  { "FAKE_CUDA_VERSION=11040", "supports CUDA 11.4, and this build needs" },
  { "FAKE_CUDA_INIT=803", "restart the computer" },
  { "FAKE_CUDA_INIT=34", "stub" },
  { "FAKE_CUDA_INIT=999", "does not start", 1 },
  { "FAKE_CUDA_DEVICES=0", "finds no GPU" },
  { "CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES is empty" },
  { "CUDA_VISIBLE_DEVICES=7", "CUDA_VISIBLE_DEVICES is `7`" },
  { "FAKE_CUDA_RETAIN=46", "another process uses it exclusively" },
  { "FAKE_CUDA_RETAIN=2", "no memory left for a context", 1 },
  { "FAKE_CUDA_CAPABILITY=61", "compute capability 6.1" },
}

TestLoading = {}

function TestLoading.test_why_not_is_one_sentence()
  for _, case in ipairs(UNUSABLE) do
    local status, output, complaint = run(case[1], "--device", "cuda", "-e", PRINT)
    luaunit.assertEquals(status, case[3] or 2, case[1])
    luaunit.assertEquals(output, "")
    luaunit.assertStrContains(complaint, case[2])
    luaunit.assertEquals(select(2, complaint:gsub("\n", "")), 1)
  end
end

function TestLoading.test_auto_takes_the_virtual_gpu_without_a_word()
  for _, case in ipairs(UNUSABLE) do
    local status, output, complaint = run(case[1], "-e", PRINT)
    luaunit.assertEquals({ status, output, complaint }, { 0, "virtual\t0\t1\n", "" }, case[1])
  end
end

function TestLoading.test_doctor_tells_what_auto_does_not()
  for _, case in ipairs(UNUSABLE) do
    local status, output = run(case[1], "doctor")
    luaunit.assertEquals(status, 0)
    luaunit.assertStrContains(output, case[2])
    luaunit.assertStrContains(output, "virtual")
  end
  local _, output = run("", "doctor")
  luaunit.assertStrContains(output, fake.driver)
  luaunit.assertStrContains(output, "Fake GPU 0")
end

function TestLoading.test_auto_takes_a_gpu()
  local _, output, complaint = run("", "-e", PRINT)
  luaunit.assertEquals({ output, complaint }, { "cuda\t0\t1\n", "" })
end

function TestLoading.test_the_first_usable_gpu_is_the_current_one()
  local _, output = run("FAKE_CUDA_DEVICES=3 FAKE_CUDA_RETAIN=46 FAKE_CUDA_UNUSABLE=2", "-e", PRINT)
  luaunit.assertEquals(output, "cuda\t2\t3\n")
end

function TestLoading.test_a_named_ordinal_is_the_current_one()
  local _, output = run("FAKE_CUDA_DEVICES=2", "--device", "cuda:1", "-e", PRINT)
  luaunit.assertEquals(output, "cuda\t1\t2\n")
  _, output = run("FAKE_CUDA_DEVICES=2", "--device", "cuda:1", "-e", "mr.set_device(0); mr.reset()", "-e", PRINT)
  luaunit.assertEquals(output, "cuda\t1\t2\n")
end

function TestLoading.test_an_ordinal_that_does_not_exist()
  local function complaint(variables, device, ...)
    local status, _, text = run(variables, "--device", device, "-e", PRINT, ...)
    luaunit.assertEquals(status, 2)
    return text
  end
  luaunit.assertStrContains(complaint("", "cuda:1"), "there is no device 1: the only one is device 0")
  luaunit.assertStrContains(complaint("FAKE_CUDA_DEVICES=4", "cuda:4"), "there are devices 0 to 3")
  luaunit.assertStrContains(complaint("", "cuda:"), "expected cuda, or cuda:I")
  luaunit.assertStrContains(complaint("", "cuda:-1"), "expected cuda, or cuda:I")
  luaunit.assertStrContains(complaint("", "cuda:0", "--chooser", "timed"), "need --device virtual")
end

function TestLoading.test_whoever_asks_for_a_chooser_gets_the_virtual_gpu()
  local _, output = run("", "--chooser", "adversarial", "-e", PRINT)
  luaunit.assertEquals(output, "virtual\t0\t1\n")
end

function TestLoading.test_what_only_a_simulation_can_do_is_absent()
  local _, output = run("", "-e", "print(mr.machine)")
  luaunit.assertEquals(output, "nil\n")
end

os.exit(luaunit.LuaUnit.run())
