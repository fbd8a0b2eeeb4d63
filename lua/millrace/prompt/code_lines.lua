-- The lines of a chunk that have code: those that a breakpoint can stop at.
--
-- debug.getinfo tells them for one function, and not for those that are defined within it. So they are read from what
-- string.dump writes, in the format of Lua 5.4. Easiest to break: that format. Anything unexpected in it gives nil, and
-- then nothing is claimed about a line.
local dump, unpack = string.dump, string.unpack

local HEADER = "\27Lua\x54\0\x19\x93\r\n\x1a\n\4\8\8" -- version, format, sizes of an instruction, an integer, a number
local CONSTANTS = { [0x00] = 0, [0x01] = 0, [0x11] = 0, [0x03] = 8, [0x13] = 8 } -- a type = its bytes; 4, 20: a text
local ABSOLUTE = -128 -- a difference of lines that does not fit, whose line stands in a list of its own

local reader = {}
reader.__index = reader

function reader:byte()
  local value = self.text:byte(self.at)
  self.at = self.at + 1
  return value
end

-- Seven bits in each byte, the highest first; the last byte has its top bit set.
function reader:size()
  local value = 0
  repeat
    local byte = self:byte()
    value = value << 7 | byte & 0x7f
  until byte & 0x80 ~= 0
  return value
end

function reader:skip(count) self.at = self.at + count end

function reader:skip_text()
  local size = self:size()
  if size > 0 then self:skip(size - 1) end
end

function reader:skip_constants()
  for _ = 1, self:size() do
    local kind = self:byte()
    if kind == 0x04 or kind == 0x14 then self:skip_text() else self:skip(CONSTANTS[kind]) end
  end
end

function reader:lines(lines, first, is_vararg)
  local differences, absolute = {}, {}
  for i = 1, self:size() do differences[i], self.at = unpack("b", self.text, self.at) end
  for _ = 1, self:size() do
    local pc = self:size()
    absolute[pc] = self:size()
  end
  local line = first
  for i, difference in ipairs(differences) do
    line = difference == ABSOLUTE and absolute[i - 1] or line + difference
    if not (is_vararg and i == 1) then lines[line] = true end -- the first one prepares the arguments
  end
end

function reader:debug_names()
  for _ = 1, self:size() do
    self:skip_text()
    self:size()
    self:size()
  end
  for _ = 1, self:size() do self:skip_text() end
end

function reader:code(lines)
  self:skip_text()
  local first = self:size()
  self:size() -- the last line
  self:skip(1)
  local is_vararg = self:byte() ~= 0
  self:skip(1)
  self:skip(4 * self:size())
  self:skip_constants()
  self:skip(3 * self:size())
  for _ = 1, self:size() do self:code(lines) end
  self:lines(lines, first, is_vararg)
  self:debug_names()
end

-- line = true of each line that has code; nil: they are not known.
local function lines_of(chunk)
  local text, lines = dump(chunk), {}
  if text:sub(1, #HEADER) ~= HEADER then return nil end
  local one = setmetatable({ text = text, at = #HEADER + 18 }, reader) -- an integer and a number, and a count
  one:code(lines)
  return one.at == #text + 1 and lines or nil
end

return function(chunk)
  if not dump then return nil end -- a sandbox has none
  local done, lines = pcall(lines_of, chunk)
  return done and lines or nil
end
