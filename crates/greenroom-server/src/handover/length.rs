use http::header::CONTENT_LENGTH;
use http::{Response, StatusCode};
use http_body::Body;

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
    fn rfc9110_8_6_only_a_304_may_say_another_length_than_its_own() {
        assert_eq!(length_of(200, "5", "hello").as_deref(), Some("5"));
        assert_eq!(length_of(204, "5", "").as_deref(), None);
        assert_eq!(length_of(304, "5", "").as_deref(), Some("5"));
        assert_eq!(length_of(304, "0", "").as_deref(), None);
        assert_eq!(length_of(304, "5", "hello").as_deref(), None);
    }
}
