use std::fmt;

use serde::{Deserialize, Serialize};

/// The identity of a node for the time of its connection: made at random when it connects.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(Box<str>);

impl NodeId {
    pub(crate) fn random() -> Self {
        Self(nuid::next().as_str().into())
    }

    /// Creates an identity of what another node wrote. `None` if no node would have written it.
    pub(crate) fn read(text: &str) -> Option<Self> {
        crate::names::check_token("the node", text).ok()?;
        Some(Self(text.into()))
    }

    /// Returns the identity as text: 22 characters of `0-9A-Za-z`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
