local _, tools = ...
local topics = {}
function topics.names()
  local names = {}
  for _, entry in ipairs((tools.mr.docs())) do names[#names + 1] = entry.name end
  return names
end
return topics
