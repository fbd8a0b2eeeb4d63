std = "lua54"
read_globals = { "mr" }
max_line_length = 120
codes = true
self = false
exclude_files = { "build*/" }
-- luaunit finds its tests among the globals whose name begins with "test".
files["tests"] = { ignore = { "11[1-3]/[Tt]est.*", "131/[Tt]est.*" } }
-- Scripts say what they discard.
ignore = { "21[123]/_.*" }
-- What a pair of tests/hazard expects is a line, however long; and a variable may be let go of for the collector.
files["tests/hazard"] = { max_line_length = false, ignore = { "311" } }
-- Values that PyTorch computed: a line for each call.
files["tests/data/torch/rows.lua"] = { max_line_length = false }
