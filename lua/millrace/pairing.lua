-- Whether a loss can compare an input with its target. Shapes that only broadcast to a third one are a mistake: outputs
-- of shape (n, 1) and targets of shape (n) would compare each output with each target.
local function text(shape) return #shape == 0 and "a scalar" or table.concat(shape, "x") end

-- Whether `small` broadcasts to `large`.
local function is_covered(small, large)
  if #small > #large then return false end
  for i = 0, #small - 1 do
    local size = small[#small - i]
    if size ~= 1 and size ~= large[#large - i] then return false end
  end
  return true
end

return function(misuse, name, x, target)
  local a, b = x.shape, target.shape
  if is_covered(a, b) or is_covered(b, a) then return end
  misuse(("%s: the input is %s and the target %s: give both the same shape, for example target:view(input.shape)")
    :format(name, text(a), text(b)))
end
