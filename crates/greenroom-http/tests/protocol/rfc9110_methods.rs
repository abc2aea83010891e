//! RFC 9110, 9.3: the response to `HEAD`, and `CONNECT`.

use greenroom_http::Reason;

use crate::driver::Reply;
use crate::support::{
    GET, HEAD, accepted, assert_refused, response_to, serve, text, with_field, with_status,
};

#[test]
fn rfc9110_9_3_2_head_gets_the_head_of_the_response_to_get() {
    let reply = || Reply::text("hello");
    let response = response_to(HEAD, reply);
    assert_eq!(response.status_line, "HTTP/1.1 200 OK");
    assert_eq!(response.values("content-length"), ["5"]);
    assert_eq!(response.body, "");
    assert!(response.keeps_alive);
}

#[test]
fn rfc9110_9_3_2_head_keeps_the_length_that_the_application_declares() {
    let response = response_to(HEAD, || {
        with_field(Reply::text(""), "content-length", "1234")
    });
    assert_eq!(response.values("content-length"), ["1234"]);
}

#[test]
fn rfc9110_9_3_2_head_does_not_guess_a_length() {
    let empty = response_to(HEAD, || Reply::text(""));
    assert!(!empty.has("content-length"));
    let unknown = response_to(HEAD, || Reply::stream(&["a", "b"]));
    assert!(!unknown.has("content-length") && !unknown.has("transfer-encoding"));
    assert_eq!(unknown.body, "");
    assert!(unknown.keeps_alive);
}

#[test]
fn rfc9110_9_3_2_head_of_a_204_has_no_length() {
    let response = response_to(HEAD, || with_status(Reply::text("x"), 204));
    assert!(!response.has("content-length"));
    assert_eq!(response.body, "");
}

#[test]
fn rfc9110_9_3_2_the_response_after_head_is_whole() {
    let output = text(&serve(&format!("{HEAD}{GET}")).output);
    let (_, second) = output.split_once("\r\n\r\n").expect("the head's end");
    assert!(second.starts_with("HTTP/1.1 200 OK\r\n"), "{second}");
    assert!(
        second.ends_with("\r\n\r\nGET / ") || second.ends_with("0\r\n\r\n"),
        "{second}"
    );
}

#[test]
fn rfc9110_9_3_6_connect_has_no_body() {
    let connect = |fields: &str| format!("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n{fields}\r\n");
    for fields in ["Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n"] {
        let input = connect(fields) + "0\r\n\r\n";
        assert_refused(&input, Reason::Connect, 400);
        assert!(serve(&input).messages.is_empty());
    }
    accepted(&connect("Content-Length: 0\r\n"));
}
