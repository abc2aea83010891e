use std::net::SocketAddr;

use axum::ServiceExt;
use axum::extract::Request;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::Layer;
use tower_http::normalize_path::NormalizePathLayer;

use super::{App, PATIENCE, Rig};

/// A way to serve an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `axum::serve`.
    Axum,
    /// `greenroom::serve`, whose routes begin on a stage.
    Greenroom,
    /// `greenroom::serve`, with all routes on the loops, where short ones end up.
    OnLoops,
}

/// A server on a free port.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    serving: JoinHandle<()>,
}

macro_rules! spawn {
    ($server:expr) => {{
        let server = $server;
        tokio::spawn(async move {
            let _ended = server.await;
        })
    }};
}

macro_rules! serve {
    ($kind:expr, $listener:expr, $app:expr, $stopped:expr) => {{
        let (listener, app, stopped) = ($listener, $app, $stopped);
        let ended = async move {
            // A test that forgets to stop the server stops it by dropping the sender.
            let _gone = stopped.await;
        };
        match $kind {
            Kind::Axum => spawn!(axum::serve(listener, app).with_graceful_shutdown(ended)),
            Kind::Greenroom => {
                spawn!(greenroom::serve(listener, app).with_graceful_shutdown(ended))
            }
            Kind::OnLoops => {
                let app = greenroom::OnLoops(app);
                spawn!(greenroom::serve(listener, app).with_graceful_shutdown(ended))
            }
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
        let serving = match app {
            App::Router(router) => serve!(kind, listener, router(rig), stopped),
            App::MakeService(router) => {
                serve!(kind, listener, router(rig).into_make_service(), stopped)
            }
            App::ConnectInfo(router) => {
                let app = router(rig).into_make_service_with_connect_info::<SocketAddr>();
                serve!(kind, listener, app, stopped)
            }
            App::Normalized(router) => {
                let layer = NormalizePathLayer::trim_trailing_slash();
                let app = layer.layer(router(rig));
                let app = ServiceExt::<Request>::into_make_service(app);
                serve!(kind, listener, app, stopped)
            }
        };
        Self { address, serving }
    }

    /// Returns `true` if the server, which was asked to, ended.
    pub(crate) async fn ends(mut self) -> bool {
        let ended = timeout(PATIENCE, &mut self.serving).await.is_ok();
        self.serving.abort();
        ended
    }
}
