use http::header::CONTENT_LENGTH;
use http::{Method, Response, StatusCode};
use http_body::Body;

/// Returns `true` if a response to a request by this method has no content, whatever its body: one
/// to HEAD, and a 204 or 304 (RFC 9110, 6.4.1).
pub(super) fn is_without_content(method: &Method, status: StatusCode) -> bool {
    *method == Method::HEAD || is_bodyless(status)
}

fn is_bodyless(status: StatusCode) -> bool {
    status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED
}

/// Has a response to HEAD tell the length of the body that it is not sent with, if that is known,
/// as greenroom-http does: a body without content may be gone already.
pub(super) fn tell_of_head<B: Body>(response: &mut Response<B>) {
    let length = response.body().size_hint().exact();
    let length = length.filter(|length| *length > 0 && !is_bodyless(response.status()));
    if let Some(length) = length {
        let headers = response.headers_mut();
        headers.entry(CONTENT_LENGTH).or_insert(length.into());
    }
}

/// Removes a `Content-Length` that a response without content must not have (RFC 9110, 8.6), as
/// greenroom-http does: of a 204 any, of a 304 one that only says how long the body at hand is.
pub(super) fn correct<B: Body>(response: &mut Response<B>) {
    let wrong = match response.status() {
        StatusCode::NO_CONTENT => true,
        StatusCode::NOT_MODIFIED => is_of_the_body(response),
        _ => false,
    };
    if wrong {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
}

fn is_of_the_body<B: Body>(response: &Response<B>) -> bool {
    let said = response.headers().get(CONTENT_LENGTH);
    let said = said.and_then(|said| said.to_str().ok()?.parse().ok());
    said == response.body().size_hint().exact()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderValue;
    use http_body_util::Full;

    use super::*;

    fn length_of(status: u16, said: &str, body: &'static str) -> Option<String> {
        let response = Response::builder().status(status);
        let response = response.header(CONTENT_LENGTH, said);
        let mut response = response
            .body(Full::<Bytes>::from(body))
            .expect("the response is valid");
        correct(&mut response);
        let left = response.headers().get(CONTENT_LENGTH);
        left.map(|left| left.to_str().expect("it is text").to_owned())
    }

    #[test]
    fn rfc9110_8_6_a_response_to_head_tells_the_length_of_a_get_unless_it_says_one() {
        for (status, said, body, told) in [
            (200, None, "hello", Some("5")),
            (200, Some("7"), "hello", Some("7")),
            (200, Some("7"), "", Some("7")),
            (200, None, "", None),
            (204, None, "hello", None),
            (304, None, "hello", None),
        ] {
            let mut response = Response::builder().status(status);
            if let Some(said) = said {
                response = response.header(CONTENT_LENGTH, said);
            }
            let body = Full::<Bytes>::from(body);
            let mut response = response.body(body).expect("the response is valid");
            tell_of_head(&mut response);
            let length = response.headers().get(CONTENT_LENGTH);
            assert_eq!(length.map(HeaderValue::as_bytes), told.map(str::as_bytes));
        }
    }

    #[test]
    fn rfc9110_8_6_only_a_304_may_say_another_length_than_its_own() {
        assert_eq!(length_of(200, "5", "hello").as_deref(), Some("5"));
        assert_eq!(length_of(204, "5", "").as_deref(), None);
        assert_eq!(length_of(304, "5", "").as_deref(), Some("5"));
        assert_eq!(length_of(304, "0", "").as_deref(), None);
        assert_eq!(length_of(304, "5", "hello").as_deref(), None);
    }
}
