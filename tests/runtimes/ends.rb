# SPDX-License-Identifier: MIT
# A Fiber that stays, and one that ends; then a time in which nothing runs. `ends.rb IDLE_SECONDS`
def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
over = nil
staying = Fiber.new { Fiber.yield }
ending = Fiber.new do
  sleep 0.03
  Fiber.yield
  sleep 0.03
  over = now
end
parked = now
staying.resume
born = now
ending.resume
sleep 0.03
ending.resume
sleep ARGV[0].to_f
puts format("LIFE ends.rb:6 %.6f", over - born)
puts format("LIFE ends.rb:5 %.6f", now - parked)
