# Methods, blocks, C functions, two Fibers and two Threads, each with a known part of the CPU time. SECONDS; see shares.h.
def cpu
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
end

module Booked
  BOOKED = Hash.new(0.0)

  def self.run(name, seconds)
    start = cpu
    now = start
    while now < start + seconds
      yield
      now = cpu
    end
    BOOKED[name] += now - start
  end
end

module Helper
  def from_module(seconds)
    Booked.run("Helper#from_module", seconds) { 300.times { |i| i * 3 } }
  end
end

class Work
  include Helper

  def plain(seconds)
    Booked.run("Work#plain", seconds) do
      i = 0
      x = 0
      while i < 2000
        i += 1
        x += i
      end
    end
  end

  def in_c(seconds)
    numbers = (0..2000).map { |i| i * 7919 % 2003 }
    Booked.run("Work#in_c", seconds) { numbers.sort.reverse.sort }
  end

  define_method(:defined) do |seconds|
    Booked.run("Work#defined", seconds) { "abc" * 100 }
  end

  def in_fiber(seconds, name)
    Booked.run(name, seconds) { 200.times { |i| i + 1 } }
  end

  def first_fiber(seconds) = in_fiber(seconds, "Work#first_fiber")
  def second_fiber(seconds) = in_fiber(seconds, "Work#second_fiber")

  def first_thread(seconds)
    Booked.run("Work#first_thread", seconds) { 200.times { |i| i + 1 } }
  end

  def second_thread(seconds)
    Booked.run("Work#second_thread", seconds) { 200.times { |i| i + 1 } }
  end
end

class Blocks
  def self.nested(seconds)
    Booked.run("Blocks", seconds) { [1, 2, 3].each { |a| 100.times { |b| a * b } } }
  end
end

start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
seconds = ARGV[0].to_f
work = Work.new
work.plain(seconds * 0.2)
Blocks.nested(seconds * 0.15)
work.in_c(seconds * 0.15)
work.defined(seconds * 0.05)
work.from_module(seconds * 0.05)
fibers = [Fiber.new { 50.times { work.first_fiber(seconds * 0.1 / 50); Fiber.yield } },
          Fiber.new { 50.times { work.second_fiber(seconds * 0.05 / 50); Fiber.yield } }]
50.times { fibers.each(&:resume) }
[Thread.new { work.first_thread(seconds * 0.15) }, Thread.new { work.second_thread(seconds * 0.1) }].each(&:join)
Booked::BOOKED.each { |name, used| printf("EXPECT %s %.6f\n", name, used) }
printf("TOTAL %.6f\n", Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - start)
exit 7
