-- Help: the same text for a function, for its name and for the object that has it; and as data.
local lu = require "luaunit"
local mr = require "millrace"

local HOST = assert(os.getenv("MILLRACE"), "MILLRACE must hold the path of the host")

-- `help` prints to standard output, so it runs in a process of its own.
local function help(what)
  local pipe = assert(io.popen(("%s -e 'mr.help(%s)'"):format(HOST, what)))
  local text = pipe:read("a")
  lu.assertTrue(pipe:close())
  return text
end

TestHelp = {}

function TestHelp.test_where_to_begin() lu.assertStrContains(help(""), "mr.stream()") end

function TestHelp.test_a_function_and_its_name()
  local text = help("mr.stream")
  lu.assertStrContains(text, "mr.stream([opts:")
  lu.assertStrContains(text, "non-blocking by default")
  lu.assertEquals(help("\"mr.stream\""), text)
  lu.assertStrContains(help("\"wait_event\""), "s:wait_event(e: event")
  lu.assertStrContains(help("\"s:wait_event\""), "s:wait_event(e: event")
end

function TestHelp.test_operations_of_the_table()
  lu.assertStrContains(help("\"add_\""), "The sum")
  lu.assertStrContains(help("mr.zeros(1).relu"), "relu")
end

function TestHelp.test_an_object_shows_its_class()
  local text = help("mr.event()")
  lu.assertStrContains(text, "e:record(")
  lu.assertStrContains(text, "timing")
  lu.assertEquals(help("\"event\""), text)
end

function TestHelp.test_the_tables_of_functions()
  for _, name in ipairs{ "mr.memory", "mr.hazard", mr.machine and "mr.machine" } do
    local text = help(name)
    lu.assertStrContains(text, "  " .. name .. ".")
    lu.assertEquals(help(("%q"):format(name)), text)
    lu.assertEquals(help(("%q"):format(name:sub(4))), text)
  end
  lu.assertEquals(help("\"mr.hazard.why\""), help("mr.hazard.why"))
  lu.assertEquals(help("\"mr.memory.stats\""), help("mr.memory.stats"))
end

-- Passages about a word have the tables that they announce.
function TestHelp.test_a_table_behind_a_colon()
  local text = help("\"causes\"")
  lu.assertStrMatches(text, ".*in gaps and in `why`:\ncause +the operation did not begin earlier because\n.*" ..
    "\n`same%-stream` .*\n`chooser` .*")
end

function TestHelp.test_tables_inside_tables()
  for _, name in ipairs { "mr.nn.Module", "mr.nn.init", "mr.nn.utils" } do
    lu.assertEquals(help(("%q"):format(name)), help(name))
    lu.assertEquals(help(("%q"):format(name:sub(4))), help(name))
  end
  lu.assertStrContains(help("mr.nn.Module"), "m:eval()")
  lu.assertStrContains(help("\"mr.nn.init.uniform_\""), "which no gradient records")
  lu.assertEquals(help("mr.nn.utils.clip_grad_norm_"), help("\"clip_grad_norm_\""))
  lu.assertEquals(help("mr.nn.ReLU().eval"), help("\"m:eval\""))
  lu.assertStrContains(help("\"Networks\""), "modules")
  lu.assertEquals(help("mr.nn.ReLU()"), help("mr.nn.Module"))
  lu.assertEquals(help("mr.optim.SGD({mr.ones(1)})"), help("mr.optim.Optimizer"))
  lu.assertStrContains(help("mr.optim.SGD({mr.ones(1)}).step"), "o:step([closure")
  lu.assertStrContains(help("mr.optim.lr_scheduler"), "StepLR")
end

function TestHelp.test_the_words_of_reports()
  lu.assertStrContains(help("\"no-path\""), "the script has nothing that orders the two operations")
  lu.assertStrContains(help("\"read-after-write\""), "The second operation reads what the first writes")
  lu.assertStrContains(help("\"unused-record\""), "nothing waited for this record")
  local text = help("\"advice\"") -- a reason, and a function
  lu.assertStrContains(text, "not a hazard")
  lu.assertStrContains(text, "mr.hazard.advice(")
  lu.assertErrorMsgContains("did you mean `no-path`", mr.help, "no-pth")
end

function TestHelp.test_the_words_of_tensors_and_networks()
  for word, text in pairs { indexing = "chooses positions", slicing = "both ends included",
    broadcasting = "from the last dim", promotion = "both promote", networks = "`mr.nn` has modules",
    training = "loss:backward()", optimiser = "o:step()",
    optimizer = "o:step()", gradients = "requires_grad_()", mask = "mask", seed = "manual_seed", losses = "MSELoss" } do
    lu.assertStrContains(help(("%q"):format(word)), text)
  end
end

function TestHelp.test_names_and_words_of_other_libraries()
  for word, text in pairs { memory_allocated = "write mr.memory.allocated()", ddp = "DistributedDataParallel(module)",
    ["torch.cuda.Stream"] = "write mr.stream()", DDP = "DistributedDataParallel(module)",
    ["cuda graph"] = 'help("graphs.md")',
    ["torch.distributed"] = "it is mr.dist here", numpy = "write t:totable()", cudaMalloc = "write mr.empty(n)" } do
    lu.assertStrContains(help(("%q"):format(word)), text)
    lu.assertStrContains(help(("%q"):format(word)), 'help("from_pytorch")')
  end
  lu.assertEquals(help("\"torch.cuda.synchronize\""), help("\"synchronize\""))
  lu.assertStrContains(help("\"from_pytorch\""), "cudaStreamWaitEvent")
  lu.assertErrorMsgContains("DistributedDataParallel", function() return mr.ddp end)
end

function TestHelp.test_a_plural_is_the_class_and_not_a_property()
  lu.assertEquals(help("\"streams\""), help("\"stream\""))
  lu.assertEquals(help("\"trace.streams\""):match("^[%w.]+"), "trace.streams")
  lu.assertStrContains(help("\"Graphs\""), "capture")
end

function TestHelp.test_a_common_word_is_no_long_list()
  local text = help("\"nothing\"")
  lu.assertStrContains(text, "more sections")
  lu.assertTrue(select(2, text:gsub("\n", "")) < 60)
end

function TestHelp.test_what_there_is_no_help_for()
  lu.assertErrorMsgContains("did you mean `wait_event`", mr.help, "wait_evnt")
  lu.assertErrorMsgContains("not one of millrace's functions", mr.help, print == mr.print and string.format or print)
  lu.assertErrorMsgContains("there is no help about true", mr.help, true)
end

function TestHelp.test_the_documentation_as_data()
  local entries, classes = mr.docs()
  lu.assertTrue(#entries > 100 and #classes > 5)
  local kinds = {}
  for _, e in ipairs(entries) do
    kinds[e.kind] = true
    lu.assertIsString(e.owner)
    lu.assertIsString(e.name)
  end
  lu.assertEquals(kinds, { ["function"] = true, property = true, operation = true })
  local _, _, words, foreign = mr.docs()
  lu.assertIsString(words[1].text)
  for _, row in ipairs(foreign) do lu.assertTrue(#row.kind > 0 and #row.name > 0 and #row.text > 4) end
end

-- The longest line of the text, and the text.
local function help_at_width(what, columns)
  local pipe = assert(io.popen(("COLUMNS=%d %s -e 'mr.help(%s)'"):format(columns, HOST, what)))
  local text, longest = pipe:read("a"), 0
  lu.assertTrue(pipe:close())
  for line in text:gmatch("[^\n]+") do longest = math.max(longest, #line) end
  return longest, text
end

function TestHelp.test_lines_are_whole_and_as_wide_as_the_terminal()
  for _, columns in ipairs{ 40, 72, 160 } do
    local longest, text = help_at_width("\"empty_like\"", columns)
    lu.assertTrue(longest <= columns)
    lu.assertStrContains((text:gsub("%s+", " ")), "requires_grad: boolean=false, ipc: boolean=false}]) -> tensor")
  end
  lu.assertEquals(select(2, help_at_width("\"empty_like\"", 1)), select(2, help_at_width("\"empty_like\"", 40)))
end

function TestHelp.test_the_forms_of_an_operation()
  local _, count = help("\"sum\""):gsub("sum%(", "")
  lu.assertEquals(count, 1)
  lu.assertStrContains(help("\"sum\""), "`mr.sum`")
  lu.assertStrContains(help("\"add_\""), "x:add_(y) -> x\n")
  lu.assertStrContains(help("\"add_\""), "In place")
  lu.assertStrContains(help("\"mr.add\""), "mr.add(x, y [, {out=}]) -> tensor")
  lu.assertStrContains(help("\"mr.abs\""), "mr.abs(x [, {out=}]) -> tensor")
  lu.assertStrContains(help("\"mr.sum\""), "mr.sum(x [, dim [, keepdim]] [, {out=}]) -> tensor")
  _, count = help("\"tensor\""):gsub("x:add%(", "")
  lu.assertEquals(count, 1)
end

function TestHelp.test_a_listing_has_parts_and_types()
  lu.assertStrContains(help("\"event\""), ".timing: boolean")
  local text = help("\"mr\"")
  local streams, tensors = text:find("mr.stream(", 1, true), text:find("Functions that make tensors.", 1, true)
  lu.assertTrue(streams < tensors and tensors < text:find("mr.zeros(", 1, true))
end

function TestHelp.test_a_rule()
  lu.assertStrContains(help("\"R4\""), "Non-blocking streams do not take part in it.")
  lu.assertErrorMsgContains("nothing is called `R4000`", mr.help, "R4000")
end

function TestHelp.test_examples_and_topics()
  lu.assertStrContains(help("\"examples\""), "  fan_out ")
  local file = assert(io.open("scripts/examples/fan_out.lua"))
  lu.assertStrContains(help("\"fan_out\""), file:read("a"))
  file:close()
  lu.assertStrContains(help("\"choosers\""), "picks next")
  lu.assertNil(help("\"choosers\""):find("\n|"))
  lu.assertStrContains(help("\"choosers\""), "\n`manual`       the step that the user selects")
  lu.assertStrContains(help("\"adversarial\""), "docs/")
  lu.assertStrContains(help("\"hazards.md\""), "How to read a report")
  lu.assertStrContains(help("\"kernels\""), "help(\"kernels.md\")")
  lu.assertStrContains(help("\"stream-capture-unjoined\""), "docs/graphs.md")
end

-- A plain Lua that has only the module answers, too.
function TestHelp.test_in_a_plain_lua()
  local said = require("host.support.command").run_plain([[require("millrace").help("R13")]])
  if said then lu.assertStrContains(said, "R13") end
end

function TestHelp.test_names_of_pytorch() lu.assertErrorMsgContains("t:to(\"f32\")", mr.help, "tensor.float") end

-- In this process, so that it is seen to be called; the text is looked at above.
function TestHelp.test_returns_nothing() lu.assertEquals(select("#", mr.help("clock")), 0) end

os.exit(lu.LuaUnit.run())
