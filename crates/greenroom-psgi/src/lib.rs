//! Perl PSGI applications behind Greenroom: supervised worker processes, and the queue before them.
//!
//! ```no_run
//! use greenroom_psgi::Gateway;
//!
//! # async fn example() -> Result<(), greenroom_psgi::StartError> {
//! let gateway = Gateway::builder("app.psgi").workers(4).max_requests(10_000).start().await?;
//! # gateway.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod app;
mod body;
mod builder;
mod chunks;
mod environment;
mod error;
mod exchange;
mod frame;
mod gateway;
mod link;
mod perl;
mod pool;
mod pump;
mod raw_body;
mod sent_file;
mod service;
mod settings;
mod start;
mod status;
mod supervisor;
mod timed;
mod upgrade;
mod upload;
mod uploads;

pub use app::{Connected, Mounts};
pub use body::ResponseBody;
pub use builder::Builder;
pub use error::{EndStatus, StartError};
pub use gateway::{Gateway, KilledWorker, ShutdownReport, status, status_within};
pub use greenroom_stage::{Client, ClientKey};
pub use pool::{QueueStatus, Share};
pub use service::GatewayService;
pub use settings::{
    BODY_MEMORY_MAX, CONCURRENCY_MAX, Concurrency, GatewaySettings, REQUESTS_MAX, WORKERS_MAX,
    is_mount,
};
pub use status::{GatewayStatus, WorkerState, WorkerStatus};
