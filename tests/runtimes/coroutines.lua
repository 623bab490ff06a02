-- Lua: four coroutines: 60, 30, 10 % of the work, and one that only yields. MILLION_STEPS ROUNDS; see shares.h. Lua has
-- no clock of its thread, only of the process, which counts greenprof's own threads: the shares are the truth.
local steps, rounds = tonumber(arg[1]) * 1e6, tonumber(arg[2])

local booked = {}

local function burn(name, share)
    local x, start = 0.0, os.clock()
    for i = 1, math.floor(steps * share / rounds) do
        x = x + i * 0.5
    end
    booked[name] = (booked[name] or 0) + os.clock() - start
    return x
end

local function alpha() for _ = 1, rounds do burn('alpha', 0.6) coroutine.yield() end end
local function beta() for _ = 1, rounds do burn('beta', 0.3) coroutine.yield() end end
local function gamma() for _ = 1, rounds do burn('gamma', 0.1) coroutine.yield() end end
local function idle() for _ = 1, rounds do coroutine.yield() end end

local all = {}
for i, run in ipairs {alpha, beta, gamma, idle} do
    all[i] = coroutine.create(run)
end
for _ = 0, rounds do
    for _, each in ipairs(all) do
        assert(coroutine.resume(each))
    end
end
for _, each in ipairs(all) do
    assert(coroutine.status(each) == 'dead')
end
for name, seconds in pairs(booked) do
    print(string.format('EXPECT %s %.6f', name, seconds))
end
os.exit(7)
