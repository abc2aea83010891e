/// The error of a text that is not allowed, with the rule that it breaks.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{field}: {rule}")]
pub struct TextError {
    /// The field's name in JSON and in forms.
    pub field: &'static str,
    /// The rule, in a sentence.
    pub rule: String,
}

fn violated(field: &'static str, rule: impl Into<String>) -> TextError {
    let rule = rule.into();
    TextError { field, rule }
}

/// Checks a user's unique name: 3 to 30 of `a` to `z`, `0` to `9`, `_` and `-`, beginning with a
/// letter. Returns it in lower case.
///
/// # Errors
/// Fails with the field `name`.
pub fn check_name(name: &str) -> Result<String, TextError> {
    let name = name.to_ascii_lowercase();
    let is_allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    let begins_well = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_lowercase());
    if begins_well && (3..=30).contains(&name.len()) && name.bytes().all(is_allowed) {
        return Ok(name);
    }
    let rule = "a name has 3 to 30 letters a to z, digits, _ or -, and begins with a letter";
    Err(violated("name", rule))
}

/// Checks a password: 10 to 200 characters of any kind.
///
/// # Errors
/// Fails with the field `password`.
pub fn check_password(password: &str) -> Result<(), TextError> {
    if (10..=200).contains(&password.chars().count()) {
        return Ok(());
    }
    Err(violated("password", "a password has 10 to 200 characters"))
}

/// Checks the form of an address for mails. Returns it in lower case, so that it is found again
/// however it is written.
///
/// # Errors
/// Fails with the field `email`.
pub fn check_email(email: &str) -> Result<String, TextError> {
    let email = email.trim();
    let is_short = email.len() <= 254;
    match email.parse::<lettre::Address>() {
        Ok(_) if is_short => Ok(email.to_ascii_lowercase()),
        _ => Err(violated(
            "email",
            "an address for mails is needed, such as ada@example.org",
        )),
    }
}

/// Checks a text for people: `least` to `most` characters, without control characters other than
/// line ends. Returns it trimmed.
///
/// # Errors
/// Fails with `field`.
pub fn check_text(
    field: &'static str,
    text: &str,
    least: usize,
    most: usize,
) -> Result<String, TextError> {
    let text = text.trim().replace("\r\n", "\n");
    let has_control = text
        .chars()
        .any(|character| character.is_control() && character != '\n');
    if has_control {
        return Err(violated(field, "no control characters are allowed"));
    }
    if !(least..=most).contains(&text.chars().count()) {
        return Err(violated(
            field,
            format!("{least} to {most} characters are allowed"),
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(check_name("Ada_L-1"), Ok("ada_l-1".to_owned()));
        for name in [
            "",
            "ab",
            "1ada",
            "-ada",
            "ada lovelace",
            "ädä",
            &"a".repeat(31),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn texts_are_counted_in_characters() {
        assert_eq!(check_text("title", "  äöü ", 3, 3), Ok("äöü".to_owned()));
        assert!(check_text("title", "äöü", 4, 9).is_err());
        assert!(check_text("title", "a\u{7}b", 1, 9).is_err());
        assert_eq!(check_text("about", "a\r\nb", 1, 9), Ok("a\nb".to_owned()));
    }

    #[test]
    fn emails() {
        assert_eq!(
            check_email(" Ada@Example.org "),
            Ok("ada@example.org".to_owned())
        );
        for email in [
            "",
            "ada",
            "ada@",
            "@x",
            "ada@example.org\r\nBcc: all@example.org",
        ] {
            assert!(check_email(email).is_err(), "{email}");
        }
    }
}
