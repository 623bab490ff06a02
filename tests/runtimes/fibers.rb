# Four Fibers: 60, 30, 10 % of the work, and one that only yields. SECONDS ROUNDS; see shares.h.
def cpu
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
end

start = cpu
$slice = ARGV[0].to_f / ARGV[1].to_i
$booked = Hash.new(0.0)

def burn(name, seconds)
  start = cpu
  now = start
  while now < start + seconds
    x = 0.0
    200.times { |i| x += i * 0.5 }
    now = cpu
  end
  $booked[name] += now - start
end

fibers = { alpha: 0.6, beta: 0.3, gamma: 0.1, idle: 0.0 }.map do |name, share|
  Fiber.new do
    ARGV[1].to_i.times do
      burn(name, $slice * share) if share > 0
      Fiber.yield
    end
  end
end
until fibers.empty?
  fibers.each(&:resume)
  fibers.select!(&:alive?)
end
$booked.each { |name, seconds| printf("EXPECT work_%s %.6f\n", name, seconds) }
printf("TOTAL %.6f\n", cpu - start)
exit 7
