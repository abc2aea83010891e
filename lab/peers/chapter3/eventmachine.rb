# Programs 3.7 and 3.8 for EventMachine: an echo without threads, and a long operation on the pool
# of threads. It speaks as much HTTP as a client needs, by the parser that Reel has, too.
#
#   ruby eventmachine.rb HOST PORT
require 'eventmachine'
require 'http/parser'

module Server
  STEP = 0.005
  QUERY = 0.02

  def post_init
    @parser = Http::Parser.new
    @parser.on_message_complete = proc { respond }
  end

  def receive_data(data)
    @parser << data
  rescue HTTP::Parser::Error
    close_connection
  end

  def respond
    case @parser.request_url
    when '/hello' then text("Hello World\n")
    when '/echo' then text("You said: #{@parser.http_method} #{@parser.request_url}\n")
    when '/steps' then step(0) { |four| text("#{four}\n") }
    when '/query'
      operation = proc { sleep QUERY; "contact 123\n" }
      callback = proc { |result| text(result) }
      EventMachine.defer(operation, callback)
    else text("not found\n", '404 Not Found')
    end
  end

  def step(value, &done)
    return done.call(value) if value == 4

    EventMachine.add_timer(STEP) { step(value + 1, &done) }
  end

  def text(body, status = '200 OK')
    keep = @parser.keep_alive?
    connection = keep ? '' : "Connection: close\r\n"
    send_data "HTTP/1.1 #{status}\r\nContent-Type: text/plain\r\n" \
              "Content-Length: #{body.bytesize}\r\n#{connection}\r\n#{body}"
    close_connection_after_writing unless keep
  end
end

EventMachine.epoll
EventMachine.run { EventMachine.start_server ARGV[0], ARGV[1].to_i, Server }
