use axum::Json;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

/// The time of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Time {
    /// Milliseconds since 1970.
    unix_millis: i64,
}

/// Returns the time, for programs that sign requests. (The synchronous action of the thesis,
/// section 4.2.1.)
#[utoipa::path(get, path = "/time", tag = "signing", responses((status = 200, body = Time)))]
pub(super) async fn time() -> Json<Time> {
    Json(Time {
        unix_millis: Timestamp::now().as_millisecond(),
    })
}
