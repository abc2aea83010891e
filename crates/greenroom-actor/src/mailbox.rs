use serde::{Deserialize, Serialize};

/// A bounded queue of messages: its capacity, and the policy for messages beyond it.
///
/// The message that is being handled does not count. Control (stop, restart, notices of other
/// actors' ends) has a lane of its own that overtakes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mailbox {
    /// Messages that may wait. Default: [`Mailbox::CAPACITY_DEFAULT`].
    #[serde(deserialize_with = "checked_capacity")]
    capacity: u32,
    overflow: Overflow,
}

/// The policy for a message to a full mailbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// `tell` returns the message, `send` and `ask` wait for room.
    #[default]
    BackPressure,
    /// `tell`, `send` and `ask` return at once with an error.
    Refuse,
    /// The message becomes a dead letter. `tell` and `send` succeed; an asker gets an error.
    DropNewest,
    /// The message takes the place of the oldest, which becomes a dead letter. Such a mailbox takes
    /// a lock for each message.
    DropOldest,
}

impl Mailbox {
    /// The default capacity, in messages.
    pub const CAPACITY_DEFAULT: u32 = 1_024;
    /// The largest capacity, in messages.
    pub const CAPACITY_MAX: u32 = 1 << 24;

    /// Creates a mailbox for this many messages, from 1 to [`CAPACITY_MAX`](Self::CAPACITY_MAX).
    /// Other numbers mean the nearest allowed.
    #[must_use]
    pub fn bounded(capacity: u32) -> Self {
        Self {
            capacity: capacity.clamp(1, Self::CAPACITY_MAX),
            ..Self::default()
        }
    }

    /// Sets the policy for a full mailbox. Default: [`Overflow::BackPressure`].
    #[must_use]
    pub fn overflow(self, overflow: Overflow) -> Self {
        Self { overflow, ..self }
    }

    pub(crate) fn capacity(self) -> u32 {
        self.capacity.clamp(1, Self::CAPACITY_MAX)
    }

    pub(crate) fn on_overflow(self) -> Overflow {
        self.overflow
    }
}

fn checked_capacity<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let capacity = u32::deserialize(deserializer)?;
    if (1..=Mailbox::CAPACITY_MAX).contains(&capacity) {
        return Ok(capacity);
    }
    let text = format!(
        "a mailbox holds 1 to {} messages, not {capacity}",
        Mailbox::CAPACITY_MAX
    );
    Err(serde::de::Error::custom(text))
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            capacity: Self::CAPACITY_DEFAULT,
            overflow: Overflow::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_says_what_is_not_allowed() {
        let error = toml::from_str::<Mailbox>("capacity = 0").expect_err("it holds nothing");
        assert!(
            error.to_string().contains("1 to 16777216 messages, not 0"),
            "{error}"
        );
        let mailbox = toml::from_str::<Mailbox>("capacity = 7\noverflow = \"drop-oldest\"");
        let expected = Mailbox::bounded(7).overflow(Overflow::DropOldest);
        assert_eq!(mailbox, Ok(expected));
    }
}
