import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

/**
 * The echo of program 3.7 on Java NIO, which section 3.1.3 names: NioEcho HOST PORT. Speaks as much
 * HTTP as a client needs.
 */
public final class NioEcho {
  private static final int HEAD_BYTES_MAX = 4096;

  public static void main(String[] args) throws IOException {
    var selector = Selector.open();
    var server = ServerSocketChannel.open();
    server.bind(new InetSocketAddress(args[0], Integer.parseInt(args[1])), 1024);
    server.configureBlocking(false);
    server.register(selector, SelectionKey.OP_ACCEPT);
    while (true) {
      selector.select(key -> handle(selector, server, key));
    }
  }

  private static void handle(Selector selector, ServerSocketChannel server, SelectionKey key) {
    try {
      if (key.isAcceptable()) {
        var client = server.accept();
        client.configureBlocking(false);
        client.register(selector, SelectionKey.OP_READ, ByteBuffer.allocate(HEAD_BYTES_MAX));
      } else {
        read((SocketChannel) key.channel(), (ByteBuffer) key.attachment());
      }
    } catch (IOException gone) {
      close(key);
    }
  }

  private static void read(SocketChannel client, ByteBuffer head) throws IOException {
    int bytes = client.read(head);
    var text = new String(head.array(), 0, head.position(), StandardCharsets.ISO_8859_1);
    boolean isWhole = text.endsWith("\r\n\r\n");
    if (isWhole) {
      var body = "You said: " + text.substring(0, text.indexOf("\r\n") + 2);
      var response =
          "HTTP/1.1 200 OK\r\nContent-Length: " + body.length()
              + "\r\nConnection: close\r\n\r\n" + body;
      client.write(ByteBuffer.wrap(response.getBytes(StandardCharsets.ISO_8859_1)));
    }
    if (isWhole || bytes <= 0) client.close();
  }

  private static void close(SelectionKey key) {
    try {
      key.channel().close();
    } catch (IOException closed) {
      key.cancel();
    }
  }
}
