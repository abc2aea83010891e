use http::header::CONTENT_LENGTH;
use http::{Response, StatusCode};
use http_body::Body;

/// Returns `true` if a response has no content, whatever its body: one to HEAD, and a 204, 205 or
/// 304 (RFC 9110, 6.4.1 and 15.3.6).
pub(super) fn is_without_content(is_head: bool, status: StatusCode) -> bool {
    is_head || is_bodyless(status)
}

fn is_bodyless(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    )
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

/// Corrects a `Content-Length` that is wrong, as greenroom-http does: of a 204 there is none, of a
/// 304 none that only says how long the body at hand is (RFC 9110, 8.6), of a 205 it is 0, and else
/// it is that of the body, if that is known and is sent.
pub(super) fn correct<B: Body>(response: &mut Response<B>, is_head: bool) {
    let Some(said) = response.headers().get(CONTENT_LENGTH) else {
        return;
    };
    let said = said.to_str().ok().and_then(|said| said.parse().ok());
    let known = response.body().size_hint().exact();
    let right = match response.status() {
        StatusCode::NO_CONTENT => None,
        StatusCode::NOT_MODIFIED => said.filter(|_| said != known),
        StatusCode::RESET_CONTENT => Some(0),
        _ if is_head => said,
        _ => known.or(said),
    };
    let headers = response.headers_mut();
    match right {
        None => _ = headers.remove(CONTENT_LENGTH),
        Some(right) if said != Some(right) => _ = headers.insert(CONTENT_LENGTH, right.into()),
        Some(_) => {}
    }
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
        correct(&mut response, false);
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
        assert_eq!(length_of(200, "7", "hello").as_deref(), Some("5"));
        assert_eq!(length_of(200, "five", "hello").as_deref(), Some("5"));
        assert_eq!(length_of(205, "5", "hello").as_deref(), Some("0"));
        assert_eq!(length_of(204, "5", "").as_deref(), None);
        assert_eq!(length_of(304, "5", "").as_deref(), Some("5"));
        assert_eq!(length_of(304, "0", "").as_deref(), None);
        assert_eq!(length_of(304, "5", "hello").as_deref(), None);
    }
}
