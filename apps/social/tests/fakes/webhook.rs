//! A user's program that takes webhooks.

use std::sync::Arc;

use axum::extract::{Json, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use serde_json::Value;
use url::Url;

use super::{Behaviour, Cell, Local, Log};

pub(crate) struct Webhook {
    local: Local,
    state: Arc<Shared>,
}

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) behaviour: Cell<Behaviour>,
    /// The posted notifications, accepted or not.
    pub(crate) posted: Log<Value>,
}

impl std::ops::Deref for Webhook {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.state
    }
}

impl Webhook {
    pub(crate) fn start() -> Self {
        let state = Arc::new(Shared::default());
        let router = Router::new()
            .route("/hook", routing::post(hook))
            .with_state(Arc::clone(&state));
        let local = Local::serve(router);
        Self { local, state }
    }

    pub(crate) fn url(&self) -> Url {
        self.local.url("/hook")
    }
}

async fn hook(State(state): State<Arc<Shared>>, Json(body): Json<Value>) -> Response {
    let behaviour = state.behaviour.get();
    state.posted.push(body);
    let response = behaviour.misbehave().await;
    response.unwrap_or_else(|| StatusCode::NO_CONTENT.into_response())
}
