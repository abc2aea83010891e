use std::net::SocketAddr;

use axum::ServiceExt;
use axum::extract::Request;
use greenroom::Placement;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::Layer;
use tower_http::normalize_path::NormalizePathLayer;

use super::{App, PATIENCE, Rig};

/// What serves an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `axum::serve`.
    Axum,
    /// `greenroom::serve`, whose routes begin on a stage.
    Greenroom,
    /// `greenroom::serve`, with all routes on the loops.
    Inline,
}

/// A server on a free port.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    serving: JoinHandle<()>,
}

macro_rules! serve {
    ($kind:expr, $listener:expr, $app:expr, $stopped:expr) => {{
        let (listener, app, stopped) = ($listener, $app, $stopped);
        let ended = async move {
            // Whoever forgets to stop it stops it by going away.
            let _gone = stopped.await;
        };
        if $kind == Kind::Axum {
            let server = axum::serve(listener, app).with_graceful_shutdown(ended);
            tokio::spawn(async move {
                let _ended = server.await;
            })
        } else {
            let server = greenroom::serve(listener, app).with_graceful_shutdown(ended);
            tokio::spawn(async move {
                let _ended = server.await;
            })
        }
    }};
}

impl Running {
    pub(crate) async fn start(
        kind: Kind,
        app: App,
        rig: Rig,
        stopped: oneshot::Receiver<()>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let place = |router: axum::Router| match kind {
            Kind::Inline => router.layer(Placement::inline()),
            Kind::Axum | Kind::Greenroom => router,
        };
        let serving = match app {
            App::Router(router) => serve!(kind, listener, place(router(rig)), stopped),
            App::ConnectInfo(router) => {
                let app = place(router(rig)).into_make_service_with_connect_info::<SocketAddr>();
                serve!(kind, listener, app, stopped)
            }
            App::Normalized(router) => {
                let layer = NormalizePathLayer::trim_trailing_slash();
                let app = layer.layer(place(router(rig)));
                let app = ServiceExt::<Request>::into_make_service(app);
                serve!(kind, listener, app, stopped)
            }
        };
        Self { address, serving }
    }

    /// Whether the server, which was told to, ended.
    pub(crate) async fn ends(mut self) -> bool {
        let ended = timeout(PATIENCE, &mut self.serving).await.is_ok();
        self.serving.abort();
        ended
    }
}
