-- SPDX-License-Identifier: MIT
-- Coroutines that are dropped while they are suspended, beside some that stay: `ends.lua DROPPED`
local function dropped()
  coroutine.yield()
end
local function stays()
  coroutine.yield()
end
local function ends()
end
local staying, dropping = {}, {}
for i = 1, 50 do
  staying[i] = coroutine.create(stays)
  coroutine.resume(staying[i])
end
for i = 1, tonumber(arg[1]) do
  dropping[i] = coroutine.create(dropped)
  coroutine.resume(dropping[i])
end
for i = 1, 25 do
  coroutine.resume(staying[i])
end
dropping = nil
collectgarbage()
collectgarbage()
for _ = 1, tonumber(arg[1]) / 2 do
  coroutine.resume(coroutine.create(ends))
end
print("DONE")
os.exit(0) -- the state stays open
