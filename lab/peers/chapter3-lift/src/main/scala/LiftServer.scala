import java.net.InetSocketAddress
import java.util.EnumSet
import javax.servlet.DispatcherType
import net.liftweb.http.{LiftFilter, LiftRules, PlainTextResponse}
import net.liftweb.http.rest.RestHelper
import org.eclipse.jetty.server.Server
import org.eclipse.jetty.servlet.{DefaultServlet, FilterHolder, ServletContextHandler}

/** The server of chapter 3 for Lift, in a Jetty: LiftServer HOST PORT. */
object LiftServer extends App {
  val server = new Server(new InetSocketAddress(args(0), args(1).toInt))
  val context = new ServletContextHandler()
  context.setResourceBase("/nonexistent")
  context.addServlet(classOf[DefaultServlet], "/")
  val filter = new FilterHolder(classOf[LiftFilter])
  filter.setInitParameter("bootloader", "Boot")
  filter.setAsyncSupported(true)
  context.addFilter(filter, "/*", EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC))
  server.setHandler(context)
  server.start()
}

class Boot extends net.liftweb.http.Bootable {
  def boot(): Unit = LiftRules.statelessDispatch.append(Routes)
}

object Routes extends RestHelper {
  serve {
    case "hello" :: Nil Get _ => PlainTextResponse("Hello World\n")
    // Lift gives each request a thread, which may wait.
    case "steps" :: Nil Get _ => PlainTextResponse((1 to 4).map(step).last + "\n")
    case "query" :: Nil Get _ => Thread.sleep(20); PlainTextResponse("contact 123\n")
  }

  def step(value: Int) = { Thread.sleep(5); value }
}
