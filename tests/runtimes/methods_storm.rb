# Methods that are made, called, dropped, collected and moved at a high rate. The name of each says which lines it has.
# SECONDS, and what else is to be done: "stress" or "compact".
def used = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

def loop_text = "i = 0\nwhile i < 1500\ni += 1\nx += i\nend\nx\n"

GC.auto_compact = true if ARGV[1] == "compact"
until_then = used + ARGV[0].to_f
n = 0
while used < until_then
  n += 1
  name = "storm_#{n}"
  holder = Class.new
  if n.even?
    holder.class_eval("def #{name}(x)\n" + "x += 1\n" * (n % 7) + loop_text + "end", "(storm #{n})", n % 7 * 1000 + 1)
  else
    holder.define_method(name) { |x| i = 0; while i < 1500; i += 1; x += i; end; x }
  end
  GC.stress = true if ARGV[1] == "stress" && n % 20 == 0
  holder.new.send(name, 1)
  GC.stress = false
  eval("x = 0\n" + loop_text, nil, "(text #{n})", 5)
  GC.start if n % 20 == 0
  GC.compact if n % 50 == 0
end
puts n
