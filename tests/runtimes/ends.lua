-- SPDX-License-Identifier: MIT
-- Coroutines that are dropped while they are suspended, beside some that stay: `ends.lua DROPPED`
local function dropped()
  coroutine.yield()
end
local function stays()
  coroutine.yield()
end
local staying = {}
for i = 1, 50 do
  staying[i] = coroutine.create(stays)
  coroutine.resume(staying[i])
end
for _ = 1, tonumber(arg[1]) do
  coroutine.resume(coroutine.create(dropped))
end
for i = 1, 25 do
  coroutine.resume(staying[i])
end
collectgarbage()
collectgarbage()
print("DONE")
os.exit(true, false) -- the state stays open
