-- Tests that race on purpose, or explore schedules, in a file whose other tests run under --check=error.
local mr = require "millrace"

-- unchecked(class, why, name...): the checker is off in these tests of the class. `why` is for the reader.
return function(class, why, ...)
  assert(#why > 0, "say why these tests are not checked")
  for _, name in ipairs { ... } do
    local test = assert(class[name], name)
    class[name] = function(self)
      local before = mr.hazard.mode("off")
      local ok, err = pcall(test, self)
      mr.hazard.mode(before)
      if not ok then error(err, 0) end
    end
  end
end
