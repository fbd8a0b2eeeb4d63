-- Reads JSON, strictly by RFC 8259: a test must notice what a browser would refuse. null becomes json.null.
local json = { null = setmetatable({}, { __tostring = function() return "null" end }) }

local SHORT = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }

function json.decode(text)
  local at = 1
  local value

  local function fail(what)
    error(("JSON: %s at byte %d: %q"):format(what, at, text:sub(at, at + 30)), 0)
  end
  local function skip() at = text:find("[^ \t\r\n]", at) or #text + 1 end
  local function expect(character)
    skip()
    if text:sub(at, at) ~= character then fail("expected " .. character) end
    at = at + 1
  end

  local function unit() -- four hexadecimal digits
    local digits = text:match("^%x%x%x%x", at) or fail("not four digits")
    at = at + 4
    return tonumber(digits, 16)
  end
  local function escape()
    local letter = text:sub(at, at)
    at = at + 1
    if SHORT[letter] then return SHORT[letter] end
    if letter ~= "u" then fail("not an escape") end
    local code = unit()
    if code >= 0xd800 and code < 0xdc00 then
      if text:sub(at, at + 1) ~= "\\u" then fail("half a character") end
      at = at + 2
      code = 0x10000 + ((code - 0xd800) << 10) + (unit() - 0xdc00)
    end
    return utf8.char(code)
  end
  local function string()
    local parts = {}
    at = at + 1
    while true do
      local plain = text:match('^[^"\\%c]+', at)
      if plain then
        parts[#parts + 1] = plain
        at = at + #plain
      end
      local stop = text:sub(at, at)
      at = at + 1
      if stop == '"' then break end
      if stop ~= "\\" then
        if stop ~= "\127" then fail("a control character, or no end") end
        parts[#parts + 1] = stop
      else
        parts[#parts + 1] = escape()
      end
    end
    local result = table.concat(parts)
    if not utf8.len(result) then fail("not UTF-8") end
    return result
  end

  local function list()
    local result = {}
    at = at + 1
    skip()
    if text:sub(at, at) == "]" then
      at = at + 1
      return result
    end
    while true do
      result[#result + 1] = value()
      skip()
      local stop = text:sub(at, at)
      at = at + 1
      if stop == "]" then return result end
      if stop ~= "," then fail("expected , or ]") end
    end
  end
  local function object()
    local result = {}
    at = at + 1
    skip()
    if text:sub(at, at) == "}" then
      at = at + 1
      return result
    end
    while true do
      skip()
      if text:sub(at, at) ~= '"' then fail("expected a key") end
      local key = string()
      if result[key] ~= nil then fail("the key " .. key .. " a second time") end
      expect(":")
      result[key] = value()
      skip()
      local stop = text:sub(at, at)
      at = at + 1
      if stop == "}" then return result end
      if stop ~= "," then fail("expected , or }") end
    end
  end
  local function number()
    local digits = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
    if not digits or digits:find("^-?0%d") or digits:find("%.$") or digits:find("%.[eE]") then fail("not a value") end
    at = at + #digits
    return tonumber(digits) or fail("not a number")
  end

  local WORDS = { ["true"] = true, ["false"] = false, null = json.null }
  function value()
    skip()
    local first = text:sub(at, at)
    if first == "{" then return object() end
    if first == "[" then return list() end
    if first == '"' then return string() end
    local word = text:match("^%l+", at)
    if word and WORDS[word] ~= nil then
      at = at + #word
      return WORDS[word]
    end
    return number()
  end

  local result = value()
  skip()
  if at <= #text then fail("something behind the value") end
  return result
end

return json
