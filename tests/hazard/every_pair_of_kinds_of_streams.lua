-- Two accesses in streams of any two kinds, or in a stream and by the host: each line of a table below is a script.
local pair = require "hazard_pair"

-- How each kind of stream is made, what a sentence calls it, and how the host waits for it.
local STREAMS = {
  default = { "d", "mr.default_stream()", "the default stream", "d:synchronize()" },
  per_thread = { "p", "mr.per_thread_stream()", "the per-thread stream", "mr.synchronize()" },
  blocking = { "b", 'mr.stream{name = "b", nonblocking = false}', "a blocking stream",
    "b:record_event():synchronize()" },
  nonblocking = { "n", 'mr.stream{name = "n"}', "a non-blocking stream", "n:synchronize()" },
  another_blocking = { "c", 'mr.stream{name = "c", nonblocking = false}', "another blocking stream" },
  another_nonblocking = { "o", 'mr.stream{name = "o"}', "another non-blocking stream" },
}
-- What a kind of hazard does first and then.
local KINDS = {
  { "read-after-write", "produce", "consume" },
  { "write-after-read", "consume", "produce" },
  { "write-after-write", "produce", "produce" },
}
local ACCESS = {
  produce = 'mr.op{name = "produce", writes = {x}, stream = %s}',
  consume = 'mr.op{name = "consume", reads = {x}, stream = %s}',
}

-- Nothing orders these.
local RACES = {
  { "blocking", "another_blocking" },
  { "blocking", "nonblocking" },
  { "blocking", "per_thread" },
  { "default", "nonblocking" },
  { "nonblocking", "another_nonblocking" },
  { "nonblocking", "default" },
  { "per_thread", "nonblocking" },
}
-- The default stream is a barrier for blocking streams (R3). The per-thread stream is blocking (R6).
local ORDERED = {
  { "blocking", "default" },
  { "default", "blocking" },
  { "default", "per_thread" },
  { "per_thread", "default" },
}
-- The host touches pinned memory while the stream works on it (R22).
local BESIDE_THE_HOST = { "blocking", "default", "nonblocking", "per_thread" }

local function stream_line(s) return ("local %s = %s"):format(s[1], s[2]) end

local cases = {}
local function add(name, ...) cases[#cases + 1] = { name, table.concat({ ... }, "\n") } end

for _, kind in ipairs(KINDS) do
  local word, earlier, later = table.unpack(kind)
  local function two_streams(pair_of_kinds, what, expected, fix)
    local first, second = STREAMS[pair_of_kinds[1]], STREAMS[pair_of_kinds[2]]
    add(("%s, %s: %s, then %s"):format(what, word, first[3], second[3]),
      "-- expect: " .. expected,
      'local x = mr.zeros(64, {name = "x"})',
      "mr.synchronize()",
      stream_line(first),
      stream_line(second),
      ACCESS[earlier]:format(first[1]),
      fix and "-- fix: " .. fix:format(second[1], first[1]) or "",
      ACCESS[later]:format(second[1]))
  end
  local fix = word == "write-after-read" and "%s:wait_event(%s:record_event())" or "%s:wait_stream(%s)"
  for _, two in ipairs(RACES) do
    two_streams(two, "nothing between", ("kind=%s reason=no-path tensor=x first=6 second=8"):format(word), fix)
  end
  for _, two in ipairs(ORDERED) do two_streams(two, "the barrier", "clean") end
  for _, of in ipairs(BESIDE_THE_HOST) do
    local s = STREAMS[of]
    add(("the host, %s: after %s"):format(word, s[3]),
      ("-- expect: kind=%s reason=host-did-not-wait first=5 second=7 second_stream=host"):format(word),
      'local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})',
      "mr.synchronize()",
      stream_line(s),
      ACCESS[earlier]:format(s[1]),
      "-- fix: " .. s[4],
      word == "read-after-write" and "local _ = x[1]:item()" or "x:fill_(1)")
  end
end

pair.check_all(cases)
