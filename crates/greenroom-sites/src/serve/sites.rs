use std::fmt;
use std::mem;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use greenroom::App;
use greenroom::psgi::{Gateway, ShutdownReport};
use greenroom_stage::placement::PlacedPath;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::app::SitesApp;
use super::apps::{Apps, Change};
use super::defaults::Defaults;
use super::error::SitesError;
use super::layers::{Placements, endpoint};
use super::table::{Entry, Table};
use crate::config::Site;
use crate::file::File;

/// The sites of a file while they are served. Clones are the same sites.
///
/// They are to be [shut down](Self::shutdown) after the server has drained; else the processes of
/// applications are killed when the last clone is dropped.
#[derive(Clone)]
pub struct Sites {
    table: Arc<ArcSwap<Table>>,
    running: Arc<Mutex<Running>>,
    /// The applications that serve now, to be had while others start.
    applications: Arc<ArcSwap<Vec<Gateway>>>,
}

#[derive(Default)]
struct Running {
    apps: Apps,
    placements: Placements,
    /// Applications that end after their last request.
    ending: JoinSet<ShutdownReport>,
}

impl Sites {
    /// Starts the applications of the file, one after the other.
    ///
    /// # Errors
    ///
    /// The first application or directory that cannot be used. Those that were started have ended
    /// then.
    pub async fn start(file: &File, defaults: &Defaults) -> Result<Self, SitesError> {
        let sites = Self {
            table: Arc::default(),
            running: Arc::default(),
            applications: Arc::default(),
        };
        sites.replace(file, defaults).await?;
        Ok(sites)
    }

    /// Returns the application for a server, which serves these sites as they are at each request.
    #[must_use]
    pub fn app(&self) -> SitesApp<impl App + use<>> {
        SitesApp::of(Arc::clone(&self.table))
    }

    /// Replaces the sites by those of another file, at once for all requests that come then.
    /// Applications whose settings are the same keep their workers; others are started before, and
    /// the old ones end after their last request. Calls wait for each other.
    ///
    /// # Errors
    ///
    /// As of [`start`](Self::start). The sites stay as they are then.
    pub async fn replace(&self, file: &File, defaults: &Defaults) -> Result<Change, SitesError> {
        let mut running = self.running.lock().await;
        let running = &mut *running;
        let apps = Apps::start(&file.sites, defaults, &running.apps).await?;
        let change = apps.change_from(&running.apps);
        match table(&file.sites, &apps, defaults, &mut running.placements) {
            Ok(table) => self.table.store(Arc::new(table)),
            Err(error) => {
                join_all(apps.end()).await;
                return Err(error);
            }
        }
        self.applications.store(Arc::new(apps.gateways()));
        let before = mem::replace(&mut running.apps, apps);
        for ending in before.end() {
            running.ending.spawn(ending);
        }
        while running.ending.try_join_next().is_some() {}
        Ok(change)
    }

    /// Has all applications load their code anew, in new workers; the old ones finish what they
    /// have begun. The log tells the outcome of each; one that cannot load goes on as it was.
    pub async fn reload_applications(&self) {
        let gateways = self.running.lock().await.apps.gateways();
        join_all(gateways.iter().map(Gateway::reload)).await;
    }

    /// Returns the applications that serve now, in the order of their routes. The
    /// [name](Gateway::name) of each is that of the first route that it has.
    #[must_use]
    pub fn applications(&self) -> Vec<Gateway> {
        Vec::clone(&self.applications.load())
    }

    /// Ends all applications, also those of earlier files. The server is to have drained before.
    /// Returns what each had to be told.
    pub async fn shutdown(&self) -> Vec<ShutdownReport> {
        let mut running = self.running.lock().await;
        // The routes hold leases.
        self.table.store(Arc::default());
        self.applications.store(Arc::default());
        let apps = mem::take(&mut running.apps);
        let (mut reports, ended) = tokio::join!(
            join_all(apps.end()),
            mem::take(&mut running.ending).join_all(),
        );
        reports.extend(ended);
        reports
    }
}

impl fmt::Debug for Sites {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sites").finish_non_exhaustive()
    }
}

fn table(
    sites: &[Site],
    apps: &Apps,
    defaults: &Defaults,
    placements: &mut Placements,
) -> Result<Table, SitesError> {
    let mut table = Table::default();
    for site in sites {
        let mut entries = Vec::new();
        for route in &site.routes {
            let endpoint = endpoint(route, apps.of(route, defaults), placements);
            entries.push(Entry {
                path: route.path.clone(),
                name: Arc::new(PlacedPath::new(&site.label(route))),
                endpoint: endpoint.map_err(|error| SitesError::route(&route.path, error))?,
            });
        }
        table.add(&site.hosts, entries);
    }
    Ok(table)
}
