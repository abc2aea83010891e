# What Lattice's web server, Reel, is made of: an actor of Celluloid::IO that accepts and serves each
# connection in a fiber of its own, and http_parser.rb. Reel itself is not to be had.
#
#   ruby celluloid.rb HOST PORT
require 'celluloid/io'
require 'http/parser'

Celluloid.logger.level = Logger::ERROR

class Server
  include Celluloid::IO
  finalizer :close

  def initialize(host, port)
    @server = TCPServer.new(host, port)
    async.run
  end

  def run
    loop { async.serve @server.accept }
  end

  def close
    @server&.close
  end

  def serve(socket)
    parser = Http::Parser.new
    parser.on_message_complete = proc { respond(socket, parser) }
    loop { parser << socket.readpartial(4096) }
  rescue EOFError, SystemCallError, HTTP::Parser::Error
    # The client has gone.
  ensure
    socket.close
  end

  def respond(socket, parser)
    body = case parser.request_url
           when '/hello' then "Hello World\n"
           when '/steps' then "#{(1..4).each { sleep 0.005 }.last}\n"
           # The only way to a future's result is to wait; within an actor, only its fiber does.
           when '/query' then Celluloid::Future.new { Kernel.sleep 0.02; "contact 123\n" }.value
           end
    socket.write "HTTP/1.1 #{body ? '200 OK' : '404 Not Found'}\r\nContent-Type: text/plain\r\n" \
                 "Content-Length: #{body.to_s.bytesize}\r\n\r\n#{body}"
  end
end

Server.new(ARGV[0], ARGV[1].to_i)
sleep
