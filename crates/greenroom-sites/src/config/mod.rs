//! Sites and routes as the file defines them.

mod check;
mod headers;
mod host;
mod kinds;
mod passwords;
mod path;
mod proxy;
mod route;
mod site;

pub(crate) use check::check;
pub(crate) use headers::HeaderChanges;
pub use host::is_public_name;
pub(crate) use host::{Host, normal};
pub(crate) use kinds::{CompressTable, FilesTable, PsgiTable, RedirectTable, RespondTable};
pub(crate) use path::RoutePath;
pub(crate) use route::{Auth, Kind, Route};
pub(crate) use site::{Site, SiteTable};
