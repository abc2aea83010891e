//! Names of fields that most requests have, in the spellings that most clients send: known by one
//! comparison, where the general way is to put them into lower case, to look for a standard name,
//! and to allocate those that are none.

use http::HeaderName;
use http::header as standard;

/// Writes one look at a name in the spellings of browsers and of libraries.
macro_rules! common_names {
    ($($($spelled:literal)|+ => $name:expr,)+) => {
        /// Returns the name of a field, if it is a common one in a common spelling.
        pub(super) fn common(name: &[u8]) -> Option<HeaderName> {
            Some(match name {
                $($($spelled)|+ => const { $name },)+
                _ => return None,
            })
        }

        #[cfg(test)]
        const SPELLED: &[&[u8]] = &[$($($spelled),+),+];
    };
}

common_names! {
    b"Accept" | b"accept" => standard::ACCEPT,
    b"Accept-Encoding" | b"accept-encoding" => standard::ACCEPT_ENCODING,
    b"Accept-Language" | b"accept-language" => standard::ACCEPT_LANGUAGE,
    b"Authorization" | b"authorization" => standard::AUTHORIZATION,
    b"Cache-Control" | b"cache-control" => standard::CACHE_CONTROL,
    b"Connection" | b"connection" => standard::CONNECTION,
    b"Content-Length" | b"content-length" => standard::CONTENT_LENGTH,
    b"Content-Type" | b"content-type" => standard::CONTENT_TYPE,
    b"Cookie" | b"cookie" => standard::COOKIE,
    b"DNT" | b"dnt" => standard::DNT,
    b"Host" | b"host" => standard::HOST,
    b"If-Modified-Since" | b"if-modified-since" => standard::IF_MODIFIED_SINCE,
    b"If-None-Match" | b"if-none-match" => standard::IF_NONE_MATCH,
    b"Origin" | b"origin" => standard::ORIGIN,
    b"Pragma" | b"pragma" => standard::PRAGMA,
    b"Priority" | b"priority" => HeaderName::from_static("priority"),
    b"Range" | b"range" => standard::RANGE,
    b"Referer" | b"referer" => standard::REFERER,
    b"Sec-CH-UA" | b"sec-ch-ua" => HeaderName::from_static("sec-ch-ua"),
    b"Sec-CH-UA-Mobile" | b"sec-ch-ua-mobile" => HeaderName::from_static("sec-ch-ua-mobile"),
    b"Sec-CH-UA-Platform" | b"sec-ch-ua-platform" => HeaderName::from_static("sec-ch-ua-platform"),
    b"Sec-Fetch-Dest" | b"sec-fetch-dest" => HeaderName::from_static("sec-fetch-dest"),
    b"Sec-Fetch-Mode" | b"sec-fetch-mode" => HeaderName::from_static("sec-fetch-mode"),
    b"Sec-Fetch-Site" | b"sec-fetch-site" => HeaderName::from_static("sec-fetch-site"),
    b"Sec-Fetch-User" | b"sec-fetch-user" => HeaderName::from_static("sec-fetch-user"),
    b"Sec-GPC" | b"sec-gpc" => HeaderName::from_static("sec-gpc"),
    b"TE" | b"te" => standard::TE,
    b"Traceparent" | b"traceparent" => HeaderName::from_static("traceparent"),
    b"Transfer-Encoding" | b"transfer-encoding" => standard::TRANSFER_ENCODING,
    b"Upgrade-Insecure-Requests" | b"upgrade-insecure-requests" =>
        standard::UPGRADE_INSECURE_REQUESTS,
    b"User-Agent" | b"user-agent" => standard::USER_AGENT,
    b"X-Forwarded-For" | b"x-forwarded-for" => HeaderName::from_static("x-forwarded-for"),
    b"X-Forwarded-Host" | b"x-forwarded-host" => HeaderName::from_static("x-forwarded-host"),
    b"X-Forwarded-Proto" | b"x-forwarded-proto" => HeaderName::from_static("x-forwarded-proto"),
    b"X-Real-IP" | b"x-real-ip" => HeaderName::from_static("x-real-ip"),
    b"X-Request-ID" | b"x-request-id" => HeaderName::from_static("x-request-id"),
    b"X-Requested-With" | b"x-requested-with" => HeaderName::from_static("x-requested-with"),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_name_is_the_one_that_parsing_finds() {
        for spelled in SPELLED {
            let parsed = HeaderName::from_bytes(spelled).expect("a field's name");
            assert_eq!(common(spelled), Some(parsed), "{}", spelled.escape_ascii());
        }
    }

    #[test]
    fn no_other_spelling_and_no_part_of_one_is_taken_for_it() {
        for spelled in SPELLED {
            let longer = [spelled, b"x".as_slice()].concat();
            let mut other = spelled.to_vec();
            other[1] ^= 0x20;
            for name in [
                &spelled[1..],
                &spelled[..spelled.len() - 1],
                &longer,
                &other,
            ] {
                assert_eq!(common(name), None, "{}", name.escape_ascii());
            }
        }
    }
}
