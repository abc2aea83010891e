# The actors' cases with Celluloid: `ruby actors.rb CASE MILLISECONDS ACTORS`. An actor is a thread
# with a mailbox that has no bound; `async.m` tells, a call asks, `.new_link` would supervise.
require 'celluloid'
require 'json'

Celluloid.logger = nil

TELLS = 1_000
RING = 503
HOPS = 2 * RING # two hundred times around take minutes
ASKS = 1_000
SENDERS = 8
SENDER_MESSAGES = 1_000

class Counter
  include Celluloid
  def initialize(batch, done)
    @batch, @done, @left = batch, done, batch
  end

  def count
    @left -= 1
    return unless @left.zero?
    @left = @batch
    @done << true
  end
end

class Member
  include Celluloid
  attr_writer :neighbour
  def initialize(done) = @done = done
  def token(left) = left.zero? ? @done << true : @neighbour.async.token(left - 1)
end

class Responder
  include Celluloid
  def reply(number) = number + 1
end

class Asker
  include Celluloid
  def ask(responder, count) = count.times { |n| raise 'wrong' unless responder.reply(n) == n + 1 }
end

class Sender
  include Celluloid
  def send_all(counter, count) = count.times { counter.async.count }
end

def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
def resident = File.read('/proc/self/statm').split[1].to_i * 4096

def measured(operations, begin_clock, begin_cpu, **more)
  { operations: operations, nanoseconds: (clock - begin_clock).fdiv(operations),
    cpu_nanoseconds: (cpu - begin_cpu).fdiv(operations) }.merge(more)
end

def batches(milliseconds, operations)
  until_ = clock + milliseconds * 500_000
  yield while clock < until_
  done, clock_, cpu_ = 0, clock, cpu
  while clock < clock_ + milliseconds * 1_000_000
    yield
    done += operations
  end
  measured(done, clock_, cpu_)
end

def run(name, milliseconds, actors)
  done = Queue.new
  case name
  when 'tell'
    counter = Counter.new(TELLS, done)
    batches(milliseconds, TELLS) { TELLS.times { counter.async.count }; done.pop }
  when 'hop'
    members = Array.new(RING) { Member.new(done) }
    members.each_with_index { |member, n| member.neighbour = members[(n + 1) % RING] }
    batches(milliseconds, HOPS) { members[0].async.token(HOPS); done.pop }
  when /\Afan-in/
    counter = Counter.new(SENDERS * SENDER_MESSAGES, done)
    senders = Array.new(SENDERS) { Sender.new }
    batches(milliseconds, SENDERS * SENDER_MESSAGES) do
      senders.each { |sender| sender.async.send_all(counter, SENDER_MESSAGES) }
      done.pop
    end
  when 'ask'
    responder = Responder.new
    batches(milliseconds, ASKS) { ASKS.times { |n| raise 'wrong' unless responder.reply(n) == n + 1 } }
  when 'ask-queued'
    responder, asker = Responder.new, Asker.new
    batches(milliseconds, ASKS) { asker.ask(responder, ASKS) }
  when 'spawn', 'idle'
    before, clock_, cpu_ = resident, clock, cpu
    all = Array.new(actors) { Responder.new }
    all.last.reply(1)
    measured(actors, clock_, cpu_, bytes: (resident - before).fdiv(actors))
  else
    { missing: 'not written for Celluloid: it has neither inline replies nor topics of its own' }
  end
end

puts JSON.generate(run(ARGV[0], ARGV[1].to_i, ARGV[2].to_i))
$stdout.flush
exit!(0)
