# Program 3.6: an echo with a thread for each client. Speaks as much HTTP as a client needs.
#
#   ruby threads.rb HOST PORT
require 'socket'

server = TCPServer.new(ARGV[0], ARGV[1].to_i)
server.listen(1024)
loop do
  Thread.new(server.accept) do |client|
    said = client.gets
    # What is left unread would have the system reset the connection.
    while (line = client.gets)
      break if line == "\r\n"
    end
    body = "You said: #{said}"
    client.write "HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\n" \
                 "Connection: close\r\n\r\n#{body}"
  rescue SystemCallError
    # The client has gone.
  ensure
    client.close
  end
end
