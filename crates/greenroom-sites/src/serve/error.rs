use std::fmt;
use std::io;

use greenroom::psgi::StartError;

/// The reason why sites cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum SitesError {
    /// A PSGI application cannot be started.
    #[error(transparent)]
    Application(Box<StartError>),
    /// A file or directory of a route cannot be opened.
    #[error("the route {path}: {source}")]
    Route {
        /// The path of the route.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl SitesError {
    pub(super) fn route(path: impl fmt::Display, source: io::Error) -> Self {
        let path = path.to_string();
        Self::Route { path, source }
    }
}
