//! RFC 9112, 5: field syntax; RFC 9110, 5: names and values.

use greenroom_http::{FIELDS_CEILING, Limits, Reason};

use crate::driver::run;
use crate::support::{accepted, assert_field_refused, assert_refused, assert_refused_within};

fn with_fields(lines: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
}

#[test]
fn rfc9112_5_trims_whitespace_around_values() {
    let message = accepted(&with_fields("X: \t a b\t \r\nY:c\r\nZ:\r\nW: \t\r\n"));
    assert_eq!(message.fields["x"], "a b");
    assert_eq!(message.fields["y"], "c");
    assert_eq!(message.fields["z"], "");
    assert_eq!(message.fields["w"], "");
}

#[test]
fn rfc9112_5_1_refuses_whitespace_before_the_colon() {
    for line in [
        "X : a",
        "X\t: a",
        "Content-Length : 5",
        "Transfer-Encoding : chunked",
        " : a",
    ] {
        assert_field_refused(line, Reason::Field, 400);
    }
}

#[test]
fn rfc9112_5_2_refuses_folded_lines() {
    for line in [
        "X: a\r\n b",
        "X: a\r\n\tb",
        "X:\r\n b",
        "X: a\r\n ",
        "Transfer-Encoding:\r\n chunked",
    ] {
        assert_field_refused(line, Reason::Field, 400);
    }
}

#[test]
fn rfc9110_5_1_refuses_names_that_are_no_tokens() {
    for line in [
        ": a",
        "X Y: a",
        "X(: a",
        "X\0: a",
        "X\u{7f}: a",
        "\u{e9}: a",
        "X\"Y: a",
        "X",
        "X/Y: a",
        "X{Y: b",
    ] {
        assert_field_refused(line, Reason::Field, 400);
    }
}

#[test]
fn rfc9110_5_5_refuses_control_bytes_in_values() {
    for byte in (0..0x20_u8)
        .chain([0x7f])
        .filter(|byte| !matches!(byte, b'\t' | b'\n' | b'\r'))
    {
        let line = format!("X: a{}b", char::from(byte));
        assert_field_refused(&line, Reason::Field, 400);
    }
}

#[test]
fn rfc9110_5_5_passes_opaque_bytes_in_values() {
    let message = accepted(&with_fields("X: \u{e9}\tz\r\n"));
    assert_eq!(message.fields["x"].as_bytes(), "\u{e9}\tz".as_bytes());
}

#[test]
fn rfc9110_5_3_keeps_repeated_fields_in_their_order() {
    let message = accepted(&with_fields("A: 1\r\nB: 2\r\na: 3\r\n"));
    let values: Vec<_> = message.fields.get_all("a").iter().collect();
    assert_eq!(values, ["1", "3"]);
}

#[test]
fn rfc9110_5_4_refuses_a_head_over_the_limit_with_431() {
    let head = |bytes: usize| {
        let mut head = with_fields("X: ").trim_end().to_owned();
        head.push_str(&"x".repeat(bytes - head.len() - 4));
        head + "\r\n\r\n"
    };
    let limits = Limits {
        head_bytes_max: 100,
        ..Limits::default()
    };
    assert_eq!(head(100).len(), 100);
    assert_eq!(run([head(100).as_bytes()], limits).messages.len(), 1);
    assert_refused_within(head(101).as_bytes(), limits, Reason::HeadTooLarge, 431);

    accepted(&head(65_536));
    assert_refused(&head(65_537), Reason::HeadTooLarge, 431);
}

#[test]
fn rfc9110_5_4_refuses_more_fields_than_the_limit_with_431() {
    let fields = |count: usize| with_fields(&"X: y\r\n".repeat(count - 1));
    assert_eq!(accepted(&fields(100)).fields.len(), 100);
    assert_refused(&fields(101), Reason::TooManyFields, 431);
}

#[test]
fn rfc9110_5_4_a_limit_over_the_ceiling_counts_as_the_ceiling() {
    let limits = Limits {
        fields_max: usize::MAX,
        ..Limits::default()
    };
    let fields = |count: usize| with_fields(&"X: y\r\n".repeat(count - 1));
    let most = run([fields(FIELDS_CEILING).as_bytes()], limits);
    assert_eq!(most.messages.len(), 1);
    let over = fields(FIELDS_CEILING + 1);
    assert_refused_within(over.as_bytes(), limits, Reason::TooManyFields, 431);
}

#[test]
fn rfc9110_5_4_limits_count_for_each_head_anew() {
    let request = with_fields(&"X: y\r\n".repeat(99));
    let many = request.repeat(200);
    assert!(many.len() > 65_536);
    let transcript = run([many.as_bytes()], Limits::default());
    assert_eq!(transcript.messages.len(), 200);
}
