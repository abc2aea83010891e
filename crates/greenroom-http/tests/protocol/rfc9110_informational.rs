//! RFC 9110, 15.2, and RFC 8297: informational responses before the final one.

use greenroom_http::{
    BodySize, Connection, Context, Event, FieldNames, NotInformational, informational,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use crate::support::{GET, GET_10, GET_10_KEEP_ALIVE, HEAD, text};

fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).expect("a status")
}

fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let named = lines.iter().map(|(name, value)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_static(value))
    });
    let mut fields = HeaderMap::new();
    for (name, value) in named {
        fields.append(name, value);
    }
    fields
}

fn encoded(number: u16, lines: &[(&'static str, &'static str)]) -> String {
    let mut out = Vec::new();
    informational(status(number), &fields(lines), None, &mut out).expect("an informational status");
    text(&out)
}

/// Creates a connection that has received this request.
fn received(request: &str) -> (Connection, Context) {
    let (mut connection, mut context) = (Connection::new(), Context::default());
    let received = connection.receive(request.as_bytes(), &mut context);
    assert!(matches!(
        received.expect("well-formed").event,
        Event::Head(_)
    ));
    (connection, context)
}

#[test]
fn rfc8297_2_early_hints_have_their_fields_and_no_content() {
    let links = [
        ("link", "</style.css>; rel=preload"),
        ("link", "</script.js>"),
    ];
    assert_eq!(
        encoded(103, &links),
        "HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\nlink: </script.js>\r\n\r\n"
    );
    assert_eq!(encoded(102, &[]), "HTTP/1.1 102 Processing\r\n\r\n");
    assert_eq!(encoded(199, &[]), "HTTP/1.1 199 \r\n\r\n");
}

#[test]
fn rfc9110_5_1_names_are_sent_as_the_application_spells_them() {
    let fields = fields(&[("link", "</style.css>"), ("x-other", "a")]);
    let mut out = Vec::new();
    let names = FieldNames::new(["Link"]);
    informational(status(103), &fields, Some(&names), &mut out).expect("an informational status");
    assert_eq!(
        text(&out),
        "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\nx-other: a\r\n\r\n"
    );
}

#[test]
fn rfc9110_8_6_and_rfc9112_6_1_an_informational_response_is_not_framed() {
    let framing = [
        ("content-length", "5"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
        ("keep-alive", "timeout=1"),
        ("upgrade", "websocket"),
        ("link", "</a>"),
    ];
    assert_eq!(
        encoded(103, &framing),
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    );
}

#[test]
fn rfc9110_15_2_statuses_that_mean_something_to_the_connection_are_the_servers() {
    for number in [100, 101, 200, 404, 599] {
        let mut out = Vec::new();
        let refused = informational(status(number), &HeaderMap::new(), None, &mut out);
        assert_eq!(refused, Err(NotInformational(status(number))));
        assert_eq!(text(&out), "");
    }
}

#[test]
fn rfc9110_15_2_a_1_1_client_takes_them_until_its_response_begins() {
    for request in [GET, HEAD] {
        let (mut connection, context) = received(request);
        assert!(connection.takes_informational());
        let mut out = Vec::new();
        connection.respond(&Response::new(()), BodySize::Exact(0), &context, &mut out);
        assert!(!connection.takes_informational());
        connection
            .finish(None, &mut out)
            .expect("nothing was promised");
        assert!(!connection.takes_informational());
    }
}

#[test]
fn rfc9110_15_2_a_1_0_client_takes_none() {
    assert!(!Connection::new().takes_informational());
    for request in [GET_10, GET_10_KEEP_ALIVE] {
        assert!(!received(request).0.takes_informational());
    }
}
