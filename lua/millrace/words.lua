-- Words that the program's own Lua modules put into texts.

local words = {}

-- The bytes that a name given by the library may have: what scripts may use, less room for an ending such as ".grad".
words.LONGEST_NAME = 180

-- 1 wait, 2 waits
function words.plural(count, word)
  return count == 1 and "1 " .. word or count .. " " .. word .. "s"
end

return words
