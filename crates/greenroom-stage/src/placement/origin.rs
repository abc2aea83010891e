use super::Settings;
use super::route::Route;
use crate::client::Client;
use crate::stage::{Importance, Stage, Submission};

/// Where a request's run began, and for whom: what the body of its response is placed by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) route: &'static Route,
    pub(super) settings: &'static Settings,
    pub(super) importance: Importance,
    pub(super) client: Client,
    pub(super) is_inline: bool,
}

impl Origin {
    /// `None` for what is inline always.
    pub(super) fn stage(&self) -> Option<&'static Stage> {
        self.settings.stage.as_ref()
    }

    pub(super) fn submission(&self) -> Submission {
        // Inline runs are not asked for their client: most never see a stage.
        let client = if self.client.is_known() {
            self.client
        } else {
            Client::current()
        };
        Submission {
            importance: self.importance,
            is_likely_short: self.route.is_likely_short(),
            client,
            route: self.route.name(),
        }
    }
}
