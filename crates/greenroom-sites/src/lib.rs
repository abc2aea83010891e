//! Sites from one file: hosts, paths, and what responds there.
//!
//! A [`File`] is read and checked as a whole: every fault is reported with its line, its column and
//! what is allowed. [`Sites`] serves one, and [replaces](Sites::replace) it by another while
//! requests are under way.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use greenroom::Server;
//! use greenroom_sites::{Defaults, File, NoServerKeys, Sites};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let file = File::read(Path::new("greenroom.toml"), &NoServerKeys)?;
//! let sites = Sites::start(&file, &Defaults::default()).await?;
//! Server::builder()
//!     .listen("127.0.0.1:8080")
//!     .serve(sites.app())
//!     .await?;
//! sites.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! The keys of a file are defined once, in [`keys`]: the reader, the [schema] for editors and the
//! table of the documentation are made of the same definition.

mod config;
mod file;
mod serve;

pub use config::is_public_name;
pub use file::{
    Entry, Fault, Faults, File, KeyDoc, NoServerKeys, Origin, ServerKeys, ServerSetting,
    ServerTable, keys, schema,
};
pub use serve::{Change, Defaults, Sites, SitesApp, SitesError};
