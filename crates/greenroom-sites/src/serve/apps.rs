//! PSGI applications and proxies: started, kept while their settings stay the same, and ended after
//! their last request.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom::proxy::{CheckedSettings, Proxy, Settings};
use greenroom::psgi::{Builder, Gateway, GatewayService, ShutdownReport, StartError};
use tokio::time::timeout;

use super::defaults::Defaults;
use super::error::SitesError;
use super::layers::Running;
use super::lease::{Lease, Leases};
use crate::config::{Kind, PsgiTable, Route, Site};

/// The outcome of a change of the sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Applications that were started: new ones, and those with other settings.
    pub started: usize,
    /// Applications that keep their workers.
    pub kept: usize,
    /// Applications that end after their last request.
    pub ended: usize,
}

/// The settings that an application was started with.
#[derive(Clone, Debug, PartialEq)]
struct Launch {
    table: PsgiTable,
    mount: String,
    body_bytes_max: u64,
    drain_deadline: Duration,
}

/// An application that runs.
struct Application {
    launch: Launch,
    gateway: Gateway,
    service: GatewayService,
    lease: Lease,
    leases: Leases,
}

/// All that runs for the sites of a file.
#[derive(Default)]
pub(super) struct Apps {
    applications: Vec<Arc<Application>>,
    proxies: Vec<(Settings, Proxy)>,
}

impl Launch {
    fn of(table: &PsgiTable, route: &Route, defaults: &Defaults) -> Self {
        Self {
            table: table.clone(),
            mount: route.path.prefix.clone(),
            body_bytes_max: route.body_bytes_max.unwrap_or(defaults.body_bytes_max),
            drain_deadline: defaults.drain_deadline,
        }
    }

    fn builder(&self) -> Builder {
        let table = &self.table;
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        let mut builder = Gateway::builder(&table.app.0)
            .mount(&self.mount)
            .body_bytes_max(self.body_bytes_max)
            .drain_deadline(self.drain_deadline)
            .concurrency(table.worker_concurrency.0)
            .preload(table.preload)
            .timeout(table.timeout.0)
            .reload_on_change(table.reload)
            .perl(&table.perl.0)
            .start_timeout(table.start_timeout.0)
            .queue_max(bytes(table.worker_queue_max.0))
            .queue_wait_max(table.worker_queue_wait_max.0)
            .body_memory_max(bytes(table.body_memory_max.0.get()))
            .uploads_bytes_max(table.uploads_bytes_max.0.get());
        if let Some(workers) = table.workers {
            builder = builder.workers(bytes(workers.0));
        }
        if let Some(requests) = table.max_requests {
            builder = builder.max_requests(requests.0);
        }
        if let Some(size) = table.max_rss {
            builder = builder.max_rss(size.0.get());
        }
        if let Some(name) = &table.env {
            builder = builder.environment(name);
        }
        for directory in &table.include {
            builder = builder.include(&directory.0);
        }
        for module in &table.module {
            builder = builder.module(module);
        }
        builder
    }

    /// Starts it, with a name for status and metrics.
    async fn start(self, label: &str) -> Result<Application, SitesError> {
        let failed = |error: StartError| SitesError::Application(Box::new(error));
        let gateway = self.builder().label(label).start().await.map_err(failed)?;
        let service = match gateway.service() {
            Ok(service) => service,
            Err(error) => {
                gateway.shutdown().await;
                return Err(SitesError::route(&self.mount, error));
            }
        };
        let (lease, leases) = Leases::new();
        Ok(Application {
            launch: self,
            gateway,
            service,
            lease,
            leases,
        })
    }
}

impl Application {
    /// Ends it after its last request, which may take until the drain deadline to begin.
    async fn end(self) -> ShutdownReport {
        drop(self.lease);
        // Beyond that its requests are not waited for.
        let _late = timeout(self.launch.drain_deadline, self.leases.gone()).await;
        self.gateway.shutdown().await
    }
}

impl Apps {
    /// Starts what the sites need and `before` does not have; the rest is shared with it.
    pub(super) async fn start(
        sites: &[Site],
        defaults: &Defaults,
        before: &Self,
    ) -> Result<Self, SitesError> {
        let mut apps = Self::default();
        for site in sites {
            for route in &site.routes {
                let added = apps.add((site, route), defaults, before).await;
                if let Err(error) = added {
                    join_all(apps.end()).await;
                    return Err(error);
                }
            }
        }
        Ok(apps)
    }

    /// Adds what a route needs.
    async fn add(
        &mut self,
        (site, route): (&Site, &Route),
        defaults: &Defaults,
        before: &Self,
    ) -> Result<(), SitesError> {
        match &route.kind {
            Kind::Psgi(table) => {
                let launch = Launch::of(table, route, defaults);
                // Sites may share an application.
                if self.running(&launch).is_some() {
                    return Ok(());
                }
                let running = match before.running(&launch) {
                    Some(running) => Arc::clone(running),
                    None => Arc::new(launch.start(&site.label(route)).await?),
                };
                self.applications.push(running);
            }
            Kind::Proxy(checked) => self.add_proxy(checked, before),
            _ => {}
        }
        Ok(())
    }

    /// Compares what runs with what ran before.
    pub(super) fn change_from(&self, before: &Self) -> Change {
        let is_there = |running: &&Arc<Application>| before.running(&running.launch).is_some();
        let kept = self.applications.iter().filter(is_there).count();
        Change {
            started: self.applications.len() - kept,
            kept,
            ended: before.applications.len() - kept,
        }
    }

    /// Ends the applications that it does not share.
    pub(super) fn end(self) -> impl Iterator<Item = impl Future<Output = ShutdownReport> + Send> {
        let own = self.applications.into_iter().filter_map(Arc::into_inner);
        own.map(Application::end)
    }

    /// Returns the gateways of all applications.
    pub(super) fn gateways(&self) -> Vec<Gateway> {
        let running = self.applications.iter();
        running.map(|running| running.gateway.clone()).collect()
    }

    fn running(&self, launch: &Launch) -> Option<&Arc<Application>> {
        let mut running = self.applications.iter();
        running.find(|running| running.launch == *launch)
    }

    /// Proxies with the same settings are one, with its connections and what it knows of upstreams.
    /// One that has read files is made anew, as they may have changed.
    fn add_proxy(&mut self, checked: &CheckedSettings, before: &Self) {
        let settings = checked.settings();
        let is_same = |(other, _): &&(Settings, Proxy)| other == settings;
        if self.proxies.iter().any(|proxy| is_same(&proxy)) {
            return;
        }
        let kept = before.proxies.iter().find(is_same);
        let proxy = match kept.filter(|_| !settings.has_files()) {
            Some((_, proxy)) => proxy.clone(),
            None => Proxy::from(checked.clone()),
        };
        self.proxies.push((settings.clone(), proxy));
    }

    /// Returns what runs for a route.
    pub(super) fn of(&self, route: &Route, defaults: &Defaults) -> Running {
        match &route.kind {
            Kind::Psgi(table) => {
                let launch = Launch::of(table, route, defaults);
                self.running(&launch).map_or(Running::Nothing, |running| {
                    Running::Application(running.service.clone(), running.lease.clone())
                })
            }
            Kind::Proxy(checked) => {
                let mut proxies = self.proxies.iter();
                let proxy = proxies.find(|(other, _)| other == checked.settings());
                proxy.map_or(Running::Nothing, |(_, proxy)| Running::Proxy(proxy.clone()))
            }
            _ => Running::Nothing,
        }
    }
}
