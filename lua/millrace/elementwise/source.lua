-- The text of a kernel of mr.elementwise: the signature, and CUDA C of a form.
local source = {}

-- The types of a signature: the tensors that they take, and the numbers. The statement reads an input of a half type as
-- a `value` (float), and assigns to an output of the half type itself. So the assigned value is computed in float and
-- rounded once.
local TYPES = {
  ["float"] = { dtype = "f32" },
  ["double"] = { dtype = "f64" },
  ["int"] = { dtype = "i32", least = -(1 << 31), most = (1 << 31) - 1 },
  ["long long"] = { dtype = "i64", least = math.mininteger, most = math.maxinteger },
  ["unsigned char"] = { dtype = "u8", least = 0, most = 255 },
  ["bool"] = { dtype = "bool", least = 0, most = 1 },
  ["__half"] = { dtype = "f16", value = "float", header = "cuda_fp16.h" },
  ["__nv_bfloat16"] = { dtype = "bf16", value = "float", header = "cuda_bf16.h" },
}
local TYPE_LIST = "float, double, __half, __nv_bfloat16, int, long long, unsigned char or bool"

-- ---------------------------------------------------------------- the signature

-- Returns parse(signature) -> the inputs and the outputs. `misuse` raises at the script's line.
function source.parser(misuse)
  -- "float x" -> { type = "float", name = "x", ... }
  local function parse_value(text, whole)
    local words = {}
    for word in text:gmatch("%S+") do words[#words + 1] = word end
    local name = table.remove(words) or ""
    local c_type = table.concat(words, " ")
    if not TYPES[c_type] then
      misuse(("elementwise: `%s` in \"%s\": expected a type and a name; the type is %s"):format(
        text:match("^%s*(.-)%s*$"), whole, TYPE_LIST))
    end
    if not name:find("^[%a_][%w_]*$") then
      misuse(("elementwise: `%s` in \"%s\" is no name"):format(name, whole))
    end
    if name == "i" or name == "n" or name:find("^mr_") then
      misuse(("elementwise: `%s` in \"%s\": `i` is the position, `n` the number of elements, and names with mr_ " ..
        "are taken: choose another name"):format(name, whole))
    end
    local facts = TYPES[c_type]
    return { type = c_type, value = facts.value or c_type, header = facts.header, name = name, dtype = facts.dtype,
      least = facts.least, most = facts.most, text = c_type .. " " .. name }
  end

  local function parse_list(text, whole, seen)
    local list = {}
    if not text:find("%S") then return list end
    for item in (text .. ","):gmatch("(.-),") do
      local value = parse_value(item, whole)
      if seen[value.name] then misuse(("elementwise: two values in \"%s\" are `%s`"):format(whole, value.name)) end
      seen[value.name] = true
      list[#list + 1] = value
    end
    return list
  end

  local function shortened(text) return #text > 200 and text:sub(1, 197) .. "..." or text end

  return function(signature)
    local before, after = signature:match("^(.-)%->(.*)$")
    if not before then
      misuse(("elementwise: \"%s\" has no `->`: expected \"inputs -> outputs\", as \"float a, float x -> float z\""):
        format(shortened(signature)))
    end
    local seen = {}
    signature = shortened(signature)
    local inputs, outputs = parse_list(before, signature, seen), parse_list(after, signature, seen)
    if #outputs == 0 then misuse(("elementwise: \"%s\" has no output after `->`"):format(signature)) end
    return inputs, outputs
  end
end

-- ---------------------------------------------------------------- CUDA C

-- The pointers and numbers that the kernel takes, in order: outputs, inputs, n, then sizes and strides of the dims.
local function parameters(f, form, index)
  local list = {}
  for _, output in ipairs(f.outputs) do list[#list + 1] = ("%s *mr_%s"):format(output.type, output.name) end
  for k, input in ipairs(f.inputs) do
    local by_value = form.by_value[k]
    list[#list + 1] = by_value and ("%s %s"):format(input.value, input.name)
      or ("const %s *mr_%s"):format(input.type, input.name)
  end
  list[#list + 1] = ("%s n"):format(index)
  for d = 2, form.dims or 1 do list[#list + 1] = ("%s mr_size_%d"):format(index, d) end
  for _, name in ipairs(form.strided or {}) do
    for d = 1, form.dims do list[#list + 1] = ("%s mr_%s_%d"):format(index, name, d) end
  end
  return table.concat(list, ", ")
end

-- Where the element `i` of each tensor is: the dims of `i`, from the last to the first, times the strides.
local function offsets(form, index, add)
  for _, name in ipairs(form.strided) do add(("    %s mr_at_%s = 0;"):format(index, name)) end
  add(("    %s mr_rest = i;"):format(index))
  for d = form.dims, 1, -1 do
    local at = d > 1 and ("mr_rest %% mr_size_%d"):format(d) or "mr_rest"
    add(("    { %s mr_d = %s;"):format(index, at))
    for _, name in ipairs(form.strided) do add(("      mr_at_%s += mr_d * mr_%s_%d;"):format(name, name, d)) end
    add(d > 1 and ("      mr_rest /= mr_size_%d; }"):format(d) or "    }")
  end
end

-- Outputs are references, so that a statement that leaves one alone leaves its element as it was, and inputs are
-- copies, so that an output may be one of them.
function source.generate(f, form)
  local lines = {}
  local function add(line) lines[#lines + 1] = line end
  local index = form.wide and "long long" or "int"
  local included = {}
  for _, list in ipairs { f.outputs, f.inputs } do
    for _, value in ipairs(list) do
      if value.header and not included[value.header] then add(("#include <%s>"):format(value.header)) end
      included[value.header or ""] = true
    end
  end
  add(("#line %d \"f:source()\""):format(#lines + 2)) -- not the script, where these lines are not
  add(("extern \"C\" __global__ void %s(%s) {"):format(f.name, parameters(f, form, index)))
  add(("    const %s i = (%s)blockIdx.x * blockDim.x + threadIdx.x;"):format(index, index))
  add("    if (i >= n) return;")
  if form.dims then offsets(form, index, add) end
  for k, input in ipairs(f.inputs) do
    if not form.by_value[k] then
      local at = form.dims and "mr_at_" .. input.name or "i"
      add(("    const %s %s = mr_%s[%s]; (void)%s;"):format(input.value, input.name, input.name, at, input.name))
    end
  end
  for _, output in ipairs(f.outputs) do
    local at = form.dims and "mr_at_" .. output.name or "i"
    add(("    %s &%s = mr_%s[%s];"):format(output.type, output.name, output.name, at))
  end
  add("#line 1 \"statement\"")
  add(f.statement)
  add(";")
  add("}")
  return table.concat(lines, "\n") .. "\n"
end

return source
