//! The name that was probably meant.

use strsim::damerau_levenshtein;

/// Returns the name that is nearest to `text`, if it is near: at most a third of it is different.
pub(super) fn nearest<'a>(text: &str, names: &[&'a str]) -> Option<&'a str> {
    let distances = names
        .iter()
        .map(|name| (damerau_levenshtein(text, name), *name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    let is_near = distance <= name.chars().count().div_ceil(3);
    is_near.then_some(name)
}

/// Returns the fault of an unknown key of a table.
pub(super) fn unknown(key: &str, names: &[&str]) -> String {
    match nearest(key, names) {
        Some(name) => format!("there is no `{key}`; did you mean `{name}`?"),
        None => format!("there is no `{key}`; allowed: {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let names = ["files", "psgi", "proxy", "redirect"];
        assert_eq!(nearest("file", &names), Some("files"));
        assert_eq!(nearest("porxy", &names), Some("proxy"));
        assert_eq!(nearest("redirects", &names), Some("redirect"));
        assert_eq!(nearest("cgi-bin", &names), None);
    }
}
