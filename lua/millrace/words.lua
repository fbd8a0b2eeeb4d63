-- Words that the program's own Lua modules put into texts.

local words = {}

-- 1 wait, 2 waits
function words.plural(count, word)
  return count == 1 and "1 " .. word or count .. " " .. word .. "s"
end

return words
