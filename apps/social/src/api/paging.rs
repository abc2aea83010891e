use serde::Deserialize;
use utoipa::IntoParams;

use crate::model::Id;

/// How many entries a page has if nothing is said.
const PAGE_DEFAULT: u32 = 30;

/// Which part of a list of pictures is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Before {
    /// Pictures that are older than this one: the `next` of the page before.
    before: Option<Id>,
    /// 1 to 60 pictures; 30 if it is not given.
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

/// Which part of a list of comments is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct After {
    /// Comments that are newer than this one: the `next` of the page before.
    after: Option<Id>,
    /// 1 to 60 comments; 30 if it is not given.
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
