-- Functions that are made, called, dropped and collected at a high rate. The name of each says which lines it has. SECONDS
local load = loadstring or load
local until_then, n = os.clock() + tonumber(arg[1]), 0
while os.clock() < until_then do
    n = n + 1
    local empty, more = string.rep('\n', n % 7), string.rep('x = x + 1\n', n % 5)
    local text = empty .. 'function storm_' .. n .. '(x)\n' .. more ..
        'for i = 1, 1500 do\nx = x + i\nend\nreturn x\nend\nlocal t = storm_' .. n .. '\nstorm_' .. n .. ' = nil\nreturn t'
    local made = load(text, n % 2 == 0 and '=(storm ' .. n .. ')' or '=same')()
    coroutine.wrap(made)(1)
    made(1)
    made = nil
    if n % 20 == 0 then collectgarbage() end
end
print(n)
