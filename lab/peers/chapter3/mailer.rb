# Program 3.12 for Celluloid: a mailer as an actor.
#
#   ruby mailer.rb LETTERS QUESTIONS
require 'celluloid'

Celluloid.logger.level = Logger::ERROR

class Mailer
  include Celluloid

  def initialize
    @sent = 0
  end

  attr_reader :sent

  def send_default_mail(email, content)
    send_mail(email, content)
  end

  def send_image_mail(email, image)
    send_mail(email, image)
  end

  private

  def send_mail(_email, _content)
    @sent += 1
  end
end

def nanoseconds_each(number)
  begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  yield
  (Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun) * 1e9 / number
end

letters, questions = ARGV.map(&:to_i)
mailer = Mailer.new
tell = lambda do
  (letters / 2).times do
    mailer.async.send_default_mail('john@doe.com', 'Hello John')
    mailer.async.send_image_mail('john@doe.com', 'cat.png')
  end
  mailer.sent # comes after the letters
end
tell.call # Ruby warms up
message = nanoseconds_each(letters, &tell)
question = nanoseconds_each(questions) { questions.times { mailer.future.sent.value } }
raise "#{mailer.sent} letters" unless mailer.sent == letters / 2 * 4

puts format('{"message_ns": %.1f, "question_ns": %.1f}', message, question)
$stdout.flush
exit!(true) # without a goodbye to each thread
