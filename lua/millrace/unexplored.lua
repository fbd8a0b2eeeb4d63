-- Actions of tasks (tasks.lua) in an exploration that its search does not vary. mr.explore clears the notes before the
-- function runs, and reads them for its verdict (explore.lua).
local unexplored = {}

local notes = {}

-- "sleep": a task slept, which takes no time there.
function unexplored.note(what) notes[what] = true end

function unexplored.clear() notes = {} end

-- As a sentence; nil: nothing.
function unexplored.reason()
  if notes.sleep then return "mr.sleep took no time: orders of tasks by time were not tried" end
  return nil
end

return unexplored
