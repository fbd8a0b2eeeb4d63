-- Hints for habits of other languages: one line that says what it is here.
local hints = {}

-- The text of an entry that failed, and the message; nil: nothing comes to mind.
function hints.of() return nil end

return hints
