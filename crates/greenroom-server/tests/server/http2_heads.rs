//! Heads over HTTP/2 are held to the rules for those of HTTP/1.1 (RFC 9113, 8.2 and 8.3).

use greenroom_server::RequestBody;
use http::Request;
use http::header::HOST;

use crate::http2_frames::{END_HEADERS, Frames, HEADERS, packed};
use crate::rig::{Reply, Rig, app, local, text};

type Fields<'a> = Vec<(&'a str, &'a str)>;

const WINDOW: u32 = 65_535;

/// Names what whoever looks for the host would find.
async fn named(request: Request<RequestBody>) -> Reply {
    let host = request.headers().get(HOST);
    let host = host.map_or("none", |host| host.to_str().unwrap());
    let authority = request.uri().authority().map(http::uri::Authority::as_str);
    Ok(text(format!("{host} {}", authority.unwrap_or("none"))))
}

async fn asked(fields: &[(&str, &str)]) -> (u16, String) {
    let server = Rig::start(app(named));
    let mut client = Frames::with_window(&server.path, WINDOW).await;
    client.request(1, fields).await;
    client.response(1).await
}

fn target<'a>(method: &'a str, authority: &'a str, path: &'a str) -> Fields<'a> {
    vec![
        (":method", method),
        (":scheme", "http"),
        (":authority", authority),
        (":path", path),
    ]
}

/// A GET with these fields.
fn with<'a>(fields: &[(&'a str, &'a str)]) -> Fields<'a> {
    let mut head = target("GET", "example.org", "/");
    head.extend(fields);
    head
}

#[tokio::test(start_paused = true)]
async fn rfc9113_8_3_1_host_and_authority_name_one_server() {
    local(async {
        let bare = &with(&[])[..];
        let named = |said: &str| (200, said.to_owned());
        assert_eq!(asked(bare).await, named("none example.org"));
        for host in ["example.org", "Example.ORG", "example.org:80"] {
            let head = with(&[("host", host)]);
            assert_eq!(asked(&head).await, named("example.org example.org"));
        }
        let by_host = [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            ("host", "a.example"),
        ];
        assert_eq!(asked(&by_host).await, named("a.example none"));
        let refused = |reason: &str| (400, format!("{reason}\n"));
        let evil = with(&[("host", "evil.example")]);
        let disagrees = refused("Host disagrees with the request target");
        assert_eq!(asked(&evil).await, disagrees);
        let two = with(&[("host", "example.org"), ("host", "example.org")]);
        assert_eq!(asked(&two).await, refused("repeated Host"));
        let mut by_head = evil.clone();
        by_head[0] = (":method", "HEAD");
        assert_eq!(asked(&by_head).await, (400, String::new()));
        let none = &by_host[..3];
        assert_eq!(asked(none).await, refused("missing Host"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn rfc9113_8_3_1_targets_that_http_1_1_refuses_are_refused() {
    local(async {
        let malformed = (400, "malformed request target\n".to_owned());
        for authority in ["user@example.org", "a.example,b.example", "a:b", "[::1"] {
            let response = asked(&target("GET", authority, "/")).await;
            // Some never come so far: hyper's parser resets their streams.
            assert!(
                response == malformed || response.0 == 0,
                "{authority}: {response:?}"
            );
        }
        for path in ["*", "path", "/a b", "/\u{80}"] {
            let response = asked(&target("GET", "example.org", path)).await;
            assert!(
                response == malformed || response.0 == 0,
                "{path}: {response:?}"
            );
        }
        assert_eq!(asked(&target("OPTIONS", "example.org", "*")).await.0, 200);
        assert_eq!(asked(&target("GET", "example.org", "/\u{e9}")).await.0, 200);
        let long = "M".repeat(33);
        assert_eq!(asked(&target(&long, "example.org", "/")).await.0, 501);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn rfc9113_8_5_connect_names_a_host_and_a_port() {
    local(async {
        let connect = |authority| vec![(":method", "CONNECT"), (":authority", authority)];
        assert_eq!(asked(&connect("example.org:443")).await.0, 200);
        for authority in ["example.org", "user@example.org:443"] {
            assert_eq!(asked(&connect(authority)).await.0, 400, "{authority}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn rfc9110_8_6_a_repeated_length_and_10_1_1_an_unknown_expectation_are_refused() {
    local(async {
        let lengths = with(&[("content-length", "0"), ("content-length", "0")]);
        let repeated = (400, "repeated Content-Length\n".to_owned());
        assert_eq!(asked(&lengths).await, repeated);
        let expects = with(&[("expect", "200-maybe")]);
        assert_eq!(
            asked(&expects).await,
            (417, "unknown expectation\n".to_owned())
        );
        assert_eq!(asked(&with(&[("expect", "100-continue")])).await.0, 200);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn targets_and_fields_have_the_limits_of_http_1_1() {
    local(async {
        let path = |bytes: usize| format!("/{}", "t".repeat(bytes - 1));
        let (fits, exceeds) = (path(8_192), path(8_193));
        assert_eq!(asked(&target("GET", "example.org", &fits)).await.0, 200);
        assert_eq!(asked(&target("GET", "example.org", &exceeds)).await.0, 414);
        let names: Vec<_> = (0..101).map(|number| format!("x-{number}")).collect();
        let fields: Vec<_> = names.iter().map(|name| (name.as_str(), "y")).collect();
        assert_eq!(asked(&with(&fields[..100])).await.0, 200);
        assert_eq!(asked(&with(&fields)).await.0, 431);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_leaves_its_connection_to_others() {
    local(async {
        let server = Rig::start(app(named));
        let mut client = Frames::with_window(&server.path, WINDOW).await;
        let head = packed(&with(&[("host", "evil.example")]));
        // It has a body, which nobody reads.
        client.send(HEADERS, END_HEADERS, 1, &head).await;
        assert_eq!(client.response(1).await.0, 400);
        client.get(3, "/").await;
        assert_eq!(client.response(3).await.1, "none test");
    })
    .await;
}
