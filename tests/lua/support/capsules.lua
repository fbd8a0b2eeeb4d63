-- The C module of support/capsules.c, which make builds beside the program; nil where there is none.
local folder = (os.getenv "MILLRACE" or "build/millrace"):match "^(.*)/" or "."

local open = package.loadlib(folder .. "/capsules.so", "luaopen_capsules")
if open then return open() end
print "not available: there is no capsules.so, which `make check` builds"
os.exit(77)
