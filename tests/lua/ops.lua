-- mr.ops(): the operation table as data agrees with what the operations do.
local lu = require "luaunit"
local mr = require "millrace"

local RESULTS = { same = true, float = true, bool = true, sum = true, i64 = true }

local by_name = {}
for _, row in ipairs(mr.ops()) do by_name[row.name] = row end

TestOps = {}

function TestOps.test_every_row_has_its_facts()
  for name, row in pairs(by_name) do
    lu.assertTrue(RESULTS[row.result] ~= nil, name)
    lu.assertTrue(row.inputs >= 0 and row.flops >= 0, name)
    lu.assertTrue(#row.help > 6 and #row.usage > 3 and #row.family > 2, name)
    lu.assertTrue(#row.dtypes > 0, name)
  end
end

function TestOps.test_the_forms_can_be_called()
  local t = mr.zeros(1, { device = "cpu" })
  for name, row in pairs(by_name) do
    for form, called in pairs(row.forms) do
      local f = form == "mr" and mr[called] or t[called]
      lu.assertEquals(type(f), "function", name .. ": " .. form)
    end
  end
end

-- The method is called "x:NAME(", "condition:NAME(" or by a function of mr; no usage line names another row.
function TestOps.test_the_usage_line_is_about_the_row()
  for _, row in pairs(by_name) do
    if row.forms.method or row.forms.in_place then
      lu.assertStrContains(row.usage, ":" .. (row.forms.method or row.forms.in_place) .. "(")
    end
  end
end

function TestOps.test_elementwise_rows_take_the_dtypes_that_they_list()
  for name, row in pairs(by_name) do
    if row.family == "unary" then
      local listed = {}
      for _, dtype in ipairs(row.dtypes) do listed[dtype] = true end
      for _, dtype in ipairs{ "bool", "u8", "i32", "i64", "f32", "f64", "f16", "bf16" } do
        local x = mr.ones(2, { dtype = dtype, device = "cpu" })
        local ok, result = pcall(x[name], x)
        lu.assertEquals(ok, listed[dtype] or false, name .. " of " .. dtype)
        if ok and row.result == "bool" then lu.assertEquals(result.dtype, "bool", name) end
        if ok and row.result == "same" then lu.assertEquals(result.dtype, dtype, name) end
        if ok and row.result == "float" then
          lu.assertEquals(result.dtype, (dtype:find("f") and dtype or "f32"), name)
        end
      end
    end
  end
end

function TestOps.test_known_rows()
  lu.assertEquals(by_name.add.forms, { method = "add", in_place = "add_", mr = "add" })
  lu.assertEquals(by_name.add.inputs, 2)
  lu.assertEquals(by_name.div.result, "float")
  lu.assertEquals(by_name.argmax.result, "i64")
  lu.assertEquals(by_name.sum.result, "sum")
  lu.assertEquals(by_name.sigmoid.formula, "mr_sigmoid(a)")
  lu.assertNil(by_name.sum.formula)
end

function TestOps.test_it_is_a_copy()
  local rows = mr.ops()
  for _, row in ipairs(rows) do row.name, row.forms = "gone", nil end
  lu.assertEquals(mr.ops()[1].name, "neg")
  lu.assertEquals(mr.tensor({ 1 }):neg():item(), -1)
end

os.exit(lu.LuaUnit.run())
