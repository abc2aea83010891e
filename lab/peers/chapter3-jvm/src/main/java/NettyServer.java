import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandler.Sharable;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpServerKeepAliveHandler;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.util.concurrent.DefaultEventExecutorGroup;
import io.netty.util.concurrent.EventExecutorGroup;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;

/** The web server that Play had, by itself: NettyServer HOST PORT. */
public final class NettyServer {
  private static final int STEP_MILLIS = 5;
  private static final int QUERY_MILLIS = 20;

  public static void main(String[] args) throws InterruptedException {
    var loops = new EpollEventLoopGroup();
    var handler = new Handler();
    new ServerBootstrap()
        .group(loops)
        .channel(EpollServerSocketChannel.class)
        .option(ChannelOption.SO_BACKLOG, 1024)
        .childHandler(
            new ChannelInitializer<SocketChannel>() {
              @Override
              protected void initChannel(SocketChannel channel) {
                channel
                    .pipeline()
                    .addLast(new HttpServerCodec())
                    .addLast(new HttpServerKeepAliveHandler())
                    .addLast(new HttpObjectAggregator(65536))
                    .addLast(handler);
              }
            })
        .bind(args[0], Integer.parseInt(args[1]))
        .sync()
        .channel()
        .closeFuture()
        .sync();
  }

  @Sharable
  private static final class Handler extends SimpleChannelInboundHandler<FullHttpRequest> {
    /** For what blocks, as Netty's guide advises. */
    private final EventExecutorGroup blocking = new DefaultEventExecutorGroup(20);

    @Override
    protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
      switch (request.uri()) {
        case "/hello" -> text(context, HttpResponseStatus.OK, "Hello World\n");
        case "/steps" ->
            step(context, 0, four -> text(context, HttpResponseStatus.OK, four + "\n"));
        case "/query" ->
            blocking.submit(NettyServer::query)
                .addListener(done -> text(context, HttpResponseStatus.OK, (String) done.getNow()));
        default -> text(context, HttpResponseStatus.NOT_FOUND, "not found\n");
      }
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
      context.flush();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
      context.close();
    }

    private static void step(ChannelHandlerContext context, int value, IntConsumer done) {
      if (value == 4) {
        done.accept(value);
        return;
      }
      context
          .executor()
          .schedule(() -> step(context, value + 1, done), STEP_MILLIS, TimeUnit.MILLISECONDS);
    }

    private static void text(ChannelHandlerContext context, HttpResponseStatus status, String body) {
      var bytes = Unpooled.wrappedBuffer(body.getBytes(StandardCharsets.US_ASCII));
      var response =
          new DefaultFullHttpResponse(io.netty.handler.codec.http.HttpVersion.HTTP_1_1, status, bytes);
      response.headers().set("Content-Type", "text/plain");
      HttpUtil.setContentLength(response, bytes.readableBytes());
      context.writeAndFlush(response);
    }
  }

  private static String query() throws InterruptedException {
    Thread.sleep(QUERY_MILLIS);
    return "contact 123\n";
  }
}
