-- SPDX-License-Identifier: MIT
-- Handlers of known truth for nginx: one computes, one sleeps, one waits for another service, one does both at once in
-- light threads, one asks by a sub-request.
local app = {}

local function burns(rounds)
  local x = 0
  for i = 1, rounds * 1e6 do
    x = x + i % 7
  end
  return x
end

function app.computes()
  burns(3)
  ngx.say("computed")
end

function app.sleeps()
  ngx.sleep(0.03)
  ngx.say("slept")
end

function app.asks()
  local socket = ngx.socket.tcp()
  assert(socket:connect("127.0.0.1", tonumber(ngx.var.other)))
  assert(socket:send("a question\n"))
  local line = assert(socket:receive("*l"))
  socket:close()
  ngx.say(line)
end

local function naps()
  ngx.sleep(0.02)
end

function app.splits()
  local one, two = ngx.thread.spawn(naps), ngx.thread.spawn(naps)
  ngx.thread.wait(one)
  ngx.thread.wait(two)
  ngx.say("split")
end

function app.captures()
  ngx.print(ngx.location.capture("/inner").body)
end

return app
