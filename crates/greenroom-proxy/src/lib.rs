//! A reverse proxy as a tower service: requests go on to upstreams by pooled connections, with
//! passive health checks, safe retries and tunnels.
//!
//! ```
//! use axum::{Router, routing::get};
//! use greenroom_proxy::{Proxy, Settings};
//!
//! # fn router() -> Result<Router, Box<dyn std::error::Error>> {
//! let api = Proxy::new(Settings::new(["http://127.0.0.1:9000".parse()?]))?;
//! let router = Router::new()
//!     .route("/hello", get(|| async { "Hello from Rust\n" }))
//!     .fallback_service(api);
//! # Ok(router)
//! # }
//! ```

mod address;
mod attempt;
mod checked;
mod exchange;
mod headers;
mod proxy;
mod rejection;
mod response_body;
mod settings;
mod shared;
mod status;
mod target;
mod throttle;
mod tls;
mod tunnel;
mod upload;
mod upstream;

pub use address::{UpstreamAddress, UpstreamAddressError};
pub use checked::CheckedSettings;
pub use proxy::{Proxy, ProxyFuture, status, status_within};
pub use response_body::ResponseBody;
pub use settings::{
    ForwardedFields, HostHeader, IN_FLIGHT_MAX, RETRY_BODY_BYTES_MAX, Settings, SettingsError,
    TIME_MAX, UPSTREAMS_MAX,
};
pub use status::{ProxyStatus, UpstreamFailures, UpstreamState, UpstreamStatus};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
