use std::time::Duration;

use crate::{HasSettings, settings};

settings! {
    /// Settings of these tests.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Kettle {
        /// Bytes of tea.
        tea_max: u64 as Size = u64::MAX, 0..=u64::MAX;

        /// Cups, at least one.
        cups: usize as Number = 100, 1..=256;

        /// Time to wait.
        wait: Duration as Time
            = Duration::from_millis(500), Duration::from_millis(1)..=Duration::MAX;
    }
}

#[test]
fn a_table_of_texts_and_numbers_makes_settings_and_the_other_way_round() {
    let json = r#"{"wait": "1s", "cups": 10, "tea_max": "1MiB"}"#;
    let kettle: Kettle = serde_json::from_str(json).expect("these are settings");
    let expected = Kettle {
        wait: Duration::from_secs(1),
        cups: 10,
        tea_max: 1 << 20,
    };
    assert_eq!(kettle, expected);
    let written = serde_json::to_string(&kettle).expect("it can be written");
    assert_eq!(written, r#"{"cups":"10","tea_max":"1MiB","wait":"1s"}"#);
}

#[test]
fn names_and_values_that_are_none_are_told() {
    for (json, told) in [
        (
            r#"{"grace": "1s"}"#,
            "unknown setting `grace`, expected one of tea_max, cups, wait",
        ),
        (r#"{"wait": 1}"#, "wait: `1` is none of the times"),
        (r#"{"wait": true}"#, "a text such as \"10s\""),
        (
            r#"{"cups": 257}"#,
            "cups: 257 is not allowed; allowed: 1 to 256",
        ),
        (
            r#"{"wait": "0s"}"#,
            "wait: 0s is not allowed; allowed: 1ms or more, unlimited",
        ),
    ] {
        let error = serde_json::from_str::<Kettle>(json).expect_err(json);
        assert!(error.to_string().starts_with(told), "{error}");
    }
}

#[test]
fn what_a_program_sets_is_checked_too() {
    let kettle = Kettle {
        cups: 0,
        ..Kettle::default()
    };
    let error = kettle.check().expect_err("there must be a cup");
    assert_eq!(
        (error.name(), error.fault()),
        ("cups", "0 is not allowed; allowed: 1 to 256")
    );
    assert_eq!(Kettle::default().check(), Ok(()));
}
