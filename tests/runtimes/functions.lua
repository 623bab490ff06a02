-- Lua 5.1 to 5.4 and LuaJIT: functions, methods, metamethods, an iterator and coroutines, each with a known part of the CPU
-- time. SECONDS; see shares.h. os.clock() counts the process, of which greenprof's own threads are a little.
local booked, order = {}, {}

local function book(name, used)
    if not booked[name] then
        booked[name] = 0
        order[#order + 1] = name
    end
    booked[name] = booked[name] + used
end

local module = {}

function module.field(seconds)
    local start, x = os.clock(), 0.5
    repeat
        for i = 1, 20000 do x = x * 0.5 + i end
    until os.clock() - start >= seconds
    book('field', os.clock() - start)
    return x
end

function module:method(seconds)
    local start, x = os.clock(), 0
    repeat
        local i = 0
        while i < 20000 do i = i + 1; x = x + i end
    until os.clock() - start >= seconds
    book('method', os.clock() - start)
    return x
end

local function add(x, i) return x + i end

local function plain(seconds)
    local start, x = os.clock(), 0
    repeat
        for i = 1, 10000 do x = add(x, i) end
    until os.clock() - start >= seconds
    book('plain', os.clock() - start)
    return x
end

function global_one(seconds)
    local start, t = os.clock(), {}
    repeat
        for i = 1, 2000 do t[i] = tostring(i) end
        table.concat(t)
    until os.clock() - start >= seconds
    book('global_one', os.clock() - start)
end

local meta = setmetatable({}, {
    __index = function(_, key)
        local start, x = os.clock(), 0
        repeat
            for i = 1, 20000 do x = x + i % 7 end
        until os.clock() - start >= key
        book('__index', os.clock() - start)
        return x
    end,
})

local function sorts(seconds)
    local start = os.clock()
    repeat
        local t = {}
        for i = 1, 2000 do t[i] = i * 7919 % 2003 end
        table.sort(t, function(a, b) return a > b end)
    until os.clock() - start >= seconds
    book('sorts', os.clock() - start)
end

local function within(seconds)
    local start, x = os.clock(), 0
    repeat
        for i = 1, 20000 do x = x + i % 3 end
    until os.clock() - start >= seconds
    book('within', os.clock() - start)
    return x
end

local function body(seconds, rounds)
    for _ = 1, rounds do
        within(seconds / rounds)
        coroutine.yield()
    end
end

local start, seconds = os.clock(), tonumber(arg[1])
module.field(seconds * 0.15)
module:method(seconds * 0.1)
plain(seconds * 0.15)
assert(pcall(global_one, seconds * 0.15))
local _ = meta[seconds * 0.1]
sorts(seconds * 0.15)
local resume = coroutine.wrap(body)
for _ = 1, 20 do resume(seconds * 0.2, 20) end
for _, name in ipairs(order) do
    print(string.format('EXPECT %s %.6f', name, booked[name]))
end
print(string.format('TOTAL %.6f', os.clock() - start))
os.exit(7)
