-- The same as claims_random.lua, of programs that use two devices.
-- timeout: 300
-- options: --device virtual:2
-- virtual only: other schedules are made by choosers
-- not replayed: choosers are switched in the middle
-- not checked: its programs race
require "lua.support.claims" ("random programs of two devices")
