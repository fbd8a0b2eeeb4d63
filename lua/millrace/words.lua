-- Words that the program's own Lua modules put into texts.

local words = {}

-- The most bytes of a name given by the library: the limit for scripts, minus room for an ending such as ".grad".
words.LONGEST_NAME = 180

-- 1 wait, 2 waits
function words.plural(count, word)
  return count == 1 and "1 " .. word or count .. " " .. word .. "s"
end

-- "a b c": the keys of a table, in order.
function words.keys(set)
  local names = {}
  for name in pairs(set) do names[#names + 1] = tostring(name) end
  table.sort(names)
  return table.concat(names, " ")
end

-- string.format, with a point in each float whatever locale the script has chosen.
function words.format(format, ...)
  local arguments, at = table.pack(...), 0
  return (format:gsub("%%[-+ #%d.]*[%a%%]", function(conversion)
    if conversion == "%%" then return "%" end
    at = at + 1
    local text = conversion:format(arguments[at])
    return conversion:find("[aefgAEFG]$") and text:gsub("[^%w%s+.-]+", ".") or text
  end))
end

return words
