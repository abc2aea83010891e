use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The part of the work that a process does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(into = "String", try_from = "String")]
pub enum Role {
    /// Serves pages, API and feed.
    Web,
    /// Computes on pictures, also on those that processes without this role are sent.
    Images,
    /// Sends mails and notifications, and deletes what is to be deleted.
    Outbox,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Web, Self::Images, Self::Outbox];

    /// Returns the name in settings, such as `web`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Images => "images",
            Self::Outbox => "outbox",
        }
    }
}

impl Display for Role {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.trim();
        let role = Self::ALL.into_iter().find(|role| role.name() == name);
        role.ok_or_else(|| format!("`{name}` is no role: `web`, `images` and `outbox` are"))
    }
}

impl TryFrom<String> for Role {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Role> for String {
    fn from(role: Role) -> Self {
        role.name().to_owned()
    }
}

/// Reads roles from a text, with commas between them, or from a list.
pub(super) fn from_text_or_list<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Role>, D::Error> {
    deserializer.deserialize_any(TextOrList)
}

struct TextOrList;

impl<'de> Visitor<'de> for TextOrList {
    type Value = Vec<Role>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("roles, such as `web,outbox`, or a list of them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let roles = text.split(',').map(str::parse);
        roles.collect::<Result<_, String>>().map_err(E::custom)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Self::Value, S::Error> {
        let mut roles = Vec::new();
        while let Some(role) = list.next_element()? {
            roles.push(role);
        }
        Ok(roles)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use figment::Figment;
    use figment::providers::{Format, Serialized, Toml};

    use super::*;
    use crate::config::{Args, Settings};

    fn of_file(toml: &str) -> anyhow::Result<Vec<Role>> {
        let settings = Figment::from(Serialized::defaults(Settings::default()));
        let settings: Settings = settings.merge(Toml::string(toml)).extract()?;
        Ok(settings.role)
    }

    fn of_flags(flags: &[&str]) -> anyhow::Result<Vec<Role>> {
        let flags = ["social"].iter().chain(flags);
        Ok(Args::try_parse_from(flags)?.settings()?.role)
    }

    #[test]
    fn without_a_word_a_process_does_everything() {
        assert_eq!(of_file("").expect("the defaults"), Role::ALL);
        assert_eq!(of_flags(&[]).expect("the defaults"), Role::ALL);
    }

    #[test]
    fn several_roles_are_one_text_a_list_or_several_flags() {
        let both = [Role::Web, Role::Images];
        for toml in ["role = \"web, images\"", "role = [\"web\", \"images\"]"] {
            assert_eq!(of_file(toml).expect(toml), both);
        }
        for flags in [
            &["--role", "web,images"][..],
            &["--role", "web", "--role", "images"],
        ] {
            let flags = [&["--store", "mongodb://127.0.0.1"], flags].concat();
            assert_eq!(of_flags(&flags).expect("they are roles"), both);
        }
    }

    #[test]
    fn what_is_no_role_is_told_with_those_that_are() {
        let of_flag = of_flags(&["--role", "web,image"]).expect_err("there is none");
        let of_file = of_file("role = \"image\"").expect_err("there is none");
        for error in [of_flag.to_string(), of_file.to_string()] {
            let text = "`image` is no role: `web`, `images` and `outbox` are";
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn roles_that_cannot_work_are_told_with_what_is_missing() {
        let nats = ["--nats", "nats://127.0.0.1"];
        for (flags, missing) in [
            (&["--role", "web"][..], "`nats`"),
            (&["--role", "images"], "`nats`"),
            (&["--role", "outbox"], "`base_url`"),
            (
                &["--role", "web,images"],
                "web and outbox go together with SQLite",
            ),
            (
                &["--role", "outbox", "--base-url", "http://a"],
                "web and outbox go together with SQLite",
            ),
        ] {
            let error = of_flags(flags).expect_err("something is missing");
            assert!(format!("{error:#}").contains(missing), "{error:#}");
        }
        let mongo = ["--store", "mongodb://127.0.0.1"];
        for flags in [
            &["--role", "web"][..],
            &["--role", "images"],
            &["--role", "outbox", "--base-url", "http://a"],
        ] {
            let flags: Vec<_> = flags.iter().chain(&nats).chain(&mongo).copied().collect();
            of_flags(&flags).expect("nothing is missing");
        }
        of_flags(&["--role", "web,images,outbox"]).expect("nothing is missing");
    }
}
