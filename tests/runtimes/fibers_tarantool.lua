-- Tarantool: four fibers: 60, 30, 10 % of the work, and one that only yields. SECONDS ROUNDS [off: no JIT]; see shares.h.
local fiber = require('fiber')
local cpu = require('clock').thread
local seconds, rounds = tonumber(arg[1]), tonumber(arg[2])
if arg[3] == 'off' then
    jit.off()
end
local start, slice, booked = cpu(), seconds / rounds, {}

local function burn(name, length)
    local from = cpu()
    local now = from
    while now < from + length do
        local x = 0
        for i = 1, 300 do
            x = x + i * 0.5
        end
        now = cpu()
    end
    booked[name] = (booked[name] or 0) + now - from
end

local left = 0
local function worker(name, share)
    left = left + 1
    fiber.create(function()
        fiber.name(name)
        fiber.yield()
        for _ = 1, rounds do
            if share > 0 then
                burn(name, slice * share)
            end
            fiber.yield()
        end
        left = left - 1
    end)
end

worker('alpha', 0.6)
worker('beta', 0.3)
worker('gamma', 0.1)
worker('idle', 0)
while left > 0 do
    fiber.sleep(0.01)
end
for name, length in pairs(booked) do
    print(string.format('EXPECT work_%s %.6f', name, length))
end
print(string.format('TOTAL %.6f', cpu() - start))
os.exit(7)
