//! Placeholders in the words of a declaration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

/// The values of placeholders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(BTreeMap<String, String>);

impl Words {
    /// Creates those that everything knows: `{lab}`, `{repository}`, and `{out}` for files.
    pub(crate) fn common() -> Self {
        let mut words = Self::default();
        words.set("lab", lab().display());
        words.set("repository", lab().join("..").display());
        words.set("out", lab().join("target/peers").display());
        words
    }

    pub(crate) fn set(&mut self, name: &str, value: impl std::fmt::Display) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    /// Replaces each `{name}`; values may have placeholders themselves. Other braces stay: JSON has
    /// them.
    ///
    /// # Errors
    /// If a name is not known.
    pub(crate) fn fill(&self, text: &str) -> anyhow::Result<String> {
        self.fill_within(text, 4)
    }

    fn fill_within(&self, text: &str, depth: usize) -> anyhow::Result<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(begin) = rest.find('{') {
            let (before, from) = rest.split_at(begin);
            out.push_str(before);
            let end = from.find('}').unwrap_or(0);
            let name = &from[1.min(end)..end];
            let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            if name.is_empty() || !name.chars().all(is_name) {
                out.push('{');
                rest = &from[1..];
                continue;
            }
            match self.0.get(name) {
                Some(value) if depth > 0 => out.push_str(&self.fill_within(value, depth - 1)?),
                Some(_) => bail!("{{{name}}} stands for itself"),
                None => bail!("{text:?}: nothing is known for {{{name}}}"),
            }
            rest = &from[end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Fills a command and splits it as a shell does.
    ///
    /// # Errors
    /// If a name is not known, a quote is open, or nothing is left.
    pub(crate) fn command(&self, text: &str) -> anyhow::Result<Vec<String>> {
        let filled = self.fill(text)?;
        let words = shlex::split(&filled).with_context(|| format!("{filled:?}: an open quote"))?;
        ensure!(!words.is_empty(), "{text:?} is no command");
        Ok(words)
    }
}

/// Returns the folder of the lab.
pub(crate) fn lab() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        let mut words = Words::default();
        words.set("run", "perl {file}");
        words.set("file", "a b.pl");
        assert_eq!(
            words.fill("{run} {\"n\": {}}").expect("known"),
            "perl a b.pl {\"n\": {}}"
        );
        assert_eq!(words.command("'{file}' x").expect("known"), ["a b.pl", "x"]);
        let error = words.fill("{ruin}").expect_err("unknown").to_string();
        assert!(error.contains("{ruin}"), "{error}");
    }

    #[test]
    fn a_placeholder_that_stands_for_itself_is_an_error() {
        let mut words = Words::default();
        words.set("a", "{b}");
        words.set("b", "{a}");
        assert!(words.fill("{a}").is_err());
    }
}
