use greenroom_server::{Address, DrainReport, Error, Handle, ServerBuilder};
use greenroom_stage::ClientKey;

use crate::notices::carry_to_stages;
use crate::{Application, LocalApplication};

/// A server that is bound to its addresses.
///
/// ```no_run
/// use std::time::Duration;
///
/// use axum::{Router, routing::get};
/// use greenroom::{Address, Limits, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder()
///     .listen("[::1]:5000".parse::<Address>()?)
///     .listen("unix:/run/app.sock".parse::<Address>()?)
///     .limits(Limits {
///         keep_alive_timeout: Duration::from_secs(15),
///         ..Limits::default()
///     })
///     .drain_deadline(Duration::from_secs(10))
///     .bind()?;
/// greenroom::end_on_signals(server.handle())?;
/// let report = server
///     .serve(Router::new().route("/hello", get(|| async { "Hello, world!" })))
///     .await?;
/// for cut in &report.cut {
///     eprintln!("cut off: {cut}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    server: greenroom_server::Server,
    client_key: Option<ClientKey>,
}

impl From<greenroom_server::Server> for Server {
    fn from(server: greenroom_server::Server) -> Self {
        Self {
            server,
            client_key: None,
        }
    }
}

impl Server {
    /// Settings, to begin with the defaults.
    #[must_use]
    pub fn builder() -> ServerBuilder<Self> {
        ServerBuilder::default()
    }

    /// Where the server listens, in the order in which the addresses were named; a port 0 is
    /// replaced by the port that the system chose.
    #[must_use]
    pub fn local_addresses(&self) -> &[Address] {
        self.server.local_addresses()
    }

    /// What ends this server.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.server.handle()
    }

    /// Whose a request is, for stages to be fair between clients; by default, the address that it came
    /// from ([`ClientAddr`](crate::ClientAddr)). It is asked of each request, before the application; placements with a
    /// [`client_key`](crate::Placement::client_key) of their own ask that one. An [`App`](crate::App) is not asked
    /// about: what it submits to stages is its own to name.
    #[must_use]
    pub fn client_key(self, client_key: ClientKey) -> Self {
        Self {
            client_key: Some(client_key),
            ..self
        }
    }

    /// Serves `app`, placed by [`Placement::auto`](crate::Placement::auto), until the
    /// [handle](Self::handle) ends it; if the future is dropped, the server ends at once. The report
    /// names whoever was cut off. What is not placed (an [`App`](crate::App) that does not
    /// [place itself](crate::App::places_itself), [`OnLoops`](crate::OnLoops)) is named by a warning.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] if a loop cannot be started, [`Error::LoopPanicked`] if one ended by a
    /// fault of ours.
    ///
    /// # Panics
    ///
    /// If the system has no threads for the default stage.
    pub async fn serve<A, Kind>(self, app: A) -> Result<DrainReport, Error>
    where
        A: Application<Kind>,
    {
        carry_to_stages();
        self.server.serve(app.into_app(self.client_key)).await
    }

    /// Like [`serve`](Self::serve), with all loops on the calling thread, whose runtime must be
    /// able to `spawn_local`: a `LocalRuntime`, or a `LocalSet` on a current-thread runtime. For
    /// programs that own their thread, and for tests, which so can pause the clock. Nothing is placed:
    /// handlers run on the calling thread too, unless the application has placements of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] if a listener cannot be registered with the runtime.
    ///
    /// # Panics
    ///
    /// When polled outside such a runtime.
    pub async fn serve_local<A, Kind>(self, app: A) -> Result<DrainReport, Error>
    where
        A: LocalApplication<Kind>,
    {
        carry_to_stages();
        let app = app.into_local_app(self.client_key);
        self.server.serve_local(app).await
    }
}
