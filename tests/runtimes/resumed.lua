-- Coroutines that are resumed while they run, which Lua refuses, and, where the host can start one of them (lua_script.c),
-- those of a value that can be called and is no function. Prints what each call returns.
local function resumes(other)
    return coroutine.create(function()
        print('inner', coroutine.resume(other and other() or coroutine.running()))
        print('passed', coroutine.yield('yielded'))
        return 'over'
    end)
end

local itself, one, other = resumes(), nil, nil
one = resumes(function() return other end)
other = resumes(function() return one end)
for _, each in ipairs {itself, one, other} do
    for _ = 1, 3 do
        print('outer', coroutine.resume(each, 'again'))
    end
end
for i = 1, 20 do
    coroutine.wrap(function() coroutine.yield(i) end)()
end
if start then
    print('called', start(setmetatable({field = 1}, {__call = function(self, x) return x + self.field end}), 41))
    print('yields', start(function(x) coroutine.yield(x) end, 5))
    print('no function', start(7, 5))
end
os.exit(7)
