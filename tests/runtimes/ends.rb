# SPDX-License-Identifier: MIT
# A Fiber that ends, and one that stays; then a time in which nothing runs. `ends.rb IDLE_SECONDS`
def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
over = nil
ending = Fiber.new do
  sleep 0.03
  Fiber.yield
  sleep 0.03
  over = now
end
staying = Fiber.new { Fiber.yield }
born = now
ending.resume
sleep 0.03
ending.resume
parked = now
staying.resume
sleep ARGV[0].to_f
puts format("LIFE ends.rb:5 %.6f", over - born)
puts format("LIFE ends.rb:11 %.6f", now - parked)
