use std::time::{Duration, Instant};

use greenroom_quantiles::micros;
use serde::Serialize;

use super::submission::{RouteName, Submission};
use crate::client::Client;
use crate::fair;

/// The use that one client made of a stage on one route. Times are in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    /// The route's method; empty for work that no route submitted.
    pub method: &'static str,
    /// The route's path, as [`RouteStatus`](crate::RouteStatus) has it.
    pub path: &'static str,
    /// The client: its address or network, the name that a [`ClientKey`](crate::ClientKey) gave
    /// it, or `unknown`.
    pub client: Client,
    /// Its percentage of the recent use of the stage: usage fades by half each 10 s
    /// ([`SHOWN_HALF_LIFE`](fair::SHOWN_HALF_LIFE)).
    pub percent: f64,
    /// The time it used since it was first seen, of processors or threads, whichever it used more
    /// of.
    pub used_micros: u64,
    /// Runs that ended or gave way.
    pub runs: u64,
    /// Requests that were rejected, or dropped because their turn came too late.
    pub rejected: u64,
}

/// The use of a stage by each flow.
#[derive(Debug, Default)]
pub(crate) struct Shares(fair::Shares<(RouteName, Client)>);

impl Shares {
    pub(crate) fn used(&mut self, submission: &Submission, used: Duration, now: Instant) {
        self.row(submission, now).add_used(used, now);
    }

    pub(crate) fn rejected(&mut self, submission: &Submission, expected: Duration, now: Instant) {
        self.row(submission, now).add_rejected(expected, now);
    }

    /// Returns the flows, those first that wanted most of late.
    pub(crate) fn shown(&self, now: Instant) -> Vec<Share> {
        let shown = self.0.shown(now).into_iter().map(|share| {
            let (route, client) = share.name;
            Share {
                method: route.method,
                path: route.path,
                client,
                percent: (share.percent * 10.0).round() / 10.0,
                used_micros: micros(share.used),
                runs: share.runs,
                rejected: share.rejected,
            }
        });
        shown.collect()
    }

    fn row(
        &mut self,
        submission: &Submission,
        now: Instant,
    ) -> &mut fair::ShareRow<(RouteName, Client)> {
        let name = (submission.route, submission.client);
        self.0.row(submission.flow(), name, now)
    }
}
