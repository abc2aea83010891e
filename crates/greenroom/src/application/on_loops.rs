use greenroom_stage::ClientKey;

use super::{Application, LocalApplication};
use crate::placing::say_unplaced;

/// An application that stays on the loops, as a whole: for services and futures that are not
/// `Send`, and so cannot go to a stage, and for handlers that use `tokio::task::spawn_local`. One of
/// its handlers that computes or blocks holds up everybody on its loop; the server says so when it
/// starts.
///
/// ```no_run
/// use std::convert::Infallible;
/// use std::rc::Rc;
///
/// use greenroom::{Body, OnLoops};
/// use http::{Request, Response};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = tower::service_fn(|_: Request<Body>| async {
///     let text = Rc::new("no other thread may have this");
///     tokio::task::yield_now().await;
///     Ok::<_, Infallible>(Response::new(Body::from(*text)))
/// });
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:5000").await?;
/// greenroom::serve(listener, OnLoops(app)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OnLoops<A>(pub A);

/// Marks [`OnLoops`], around an application of this kind.
#[derive(Debug)]
pub struct OfLoops<Kind>(Kind);

impl<A: LocalApplication<Kind>, Kind> Application<OfLoops<Kind>> for OnLoops<A> {
    type App = A::App;

    fn into_app(self, client_key: Option<ClientKey>) -> A::App {
        say_unplaced::<A>();
        self.0.into_local_app(client_key)
    }
}
