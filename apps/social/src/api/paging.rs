use serde::Deserialize;
use utoipa::IntoParams;

use crate::model::Id;

/// The number of entries of a page by default.
const PAGE_DEFAULT: u32 = 30;

/// The page of a list of pictures to return.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Before {
    /// Only pictures older than this one: the `next` of the page before.
    before: Option<Id>,
    /// The number of pictures, from 1 to 60; 30 by default.
    #[param(minimum = 1, maximum = 60)]
    limit: Option<u32>,
}

impl Before {
    pub(super) fn id(&self) -> Option<Id> {
        self.before
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit.unwrap_or(PAGE_DEFAULT)
    }
}

/// The page of a list of comments to return.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct After {
    /// Only comments newer than this one: the `next` of the page before.
    after: Option<Id>,
    /// The number of comments, from 1 to 60; 30 by default.
    #[param(minimum = 1, maximum = 60)]
    limit: Option<u32>,
}

impl After {
    pub(super) fn id(&self) -> Option<Id> {
        self.after
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit.unwrap_or(PAGE_DEFAULT)
    }
}
