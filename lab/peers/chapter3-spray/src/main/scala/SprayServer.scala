import akka.actor.ActorSystem
import akka.pattern.after
import scala.concurrent.{ExecutionContext, Future}
import scala.concurrent.duration._
import spray.routing.SimpleRoutingApp

/** The server of chapter 3 for spray, on Akka: SprayServer HOST PORT. */
object SprayServer extends App with SimpleRoutingApp {
  implicit val system = ActorSystem("chapter3")
  import system.dispatcher

  /** A pool of its own for what blocks. */
  val database = ExecutionContext.fromExecutor(java.util.concurrent.Executors.newFixedThreadPool(20))

  def step(value: Int) = after(5.millis, system.scheduler)(Future.successful(value + 1))

  def steps = step(0).flatMap(step).flatMap(step).flatMap(step).map(_ + "\n")

  def query = Future { Thread.sleep(20); "contact 123\n" }(database)

  startServer(interface = args(0), port = args(1).toInt) {
    get {
      path("hello")(complete("Hello World\n")) ~
        path("steps")(complete(steps)) ~
        path("query")(complete(query))
    }
  }
}
