//! Every kind of response that PSGI defines.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{Response, Rig, ask, text, within};

const APP: &str = r#"
    use strict; use warnings;
    my $path = $0;
    my %responses = (
        '/short'     => sub {
            [200, ['Content-Type' => 'text/plain', 'X-A' => 1, 'X-A' => 2], ["one ", "two"]]
        },
        '/long'      => sub { [200, [], ['x' x 3_000_000]] },
        '/file'      => sub { open my $file, '<', $path or die; [200, [], $file] },
        '/rest'      => sub {
            open my $file, '<', $path or die;
            seek $file, 7, 0;
            [200, [], $file];
        },
        '/lines'     => sub { [200, [], Lines->new(map { "line $_\n" } 1 .. 3)] },
        '/delayed'   => sub { sub { $_[0]->([202, [], ['later']]) } },
        '/empty'     => sub { [204, [], []] },
        '/unchanged' => sub { [304, [ETag => '"1"'], []] },
        '/dies'      => sub { die "on purpose\n" },
        '/split'     => sub { [200, ['X-A' => "one\r\nX-B: two"], []] },
        '/wide'      => sub { [200, [], ["\x{263a}"]] },
        '/wide-text' => sub { sub { $_[0]->([200, []])->write(bless [], 'Wide') } },
        '/renamed'   => sub { $_[0]{REQUEST_URI} = "/\x{263a}"; die "on purpose\n" },
        '/nothing'   => sub { undef },
        '/silent'    => sub { sub { } },
    );
    package Wide;
    use overload '""' => sub { "\x{263a}" };
    package Lines;
    sub new { my ($class, @lines) = @_; bless {lines => \@lines}, $class }
    sub getline { shift @{ $_[0]{lines} } }
    sub close { }
    package main;
    sub { my $env = shift; $responses{$env->{PATH_INFO}}->($env) };
"#;

async fn head(rig: &Rig, path: &str) -> Response {
    let request = Request::builder().method(Method::HEAD).uri(rig.url(path));
    ask(request.body(Full::<Bytes>::default()).unwrap()).await
}

#[tokio::test]
async fn lists_of_strings_are_sent_in_one_piece() {
    within(async {
        let rig = Rig::serve(APP).await;
        let response = rig.get("/short").await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-length"], "7");
        let values: Vec<_> = response.headers().get_all("x-a").iter().collect();
        assert_eq!(values, ["1", "2"]);
        assert_eq!(text(&response), "one two");
        let long = rig.get("/long").await;
        assert_eq!(long.headers()["content-length"], "3000000");
        assert!(long.body().iter().all(|&byte| byte == b'x') && long.body().len() == 3_000_000);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn files_are_sent_from_where_they_stand() {
    within(async {
        let rig = Rig::serve(APP).await;
        let response = rig.get("/file").await;
        assert_eq!(response.headers()["content-length"], APP.len().to_string());
        assert_eq!(text(&response), APP);
        assert_eq!(text(&rig.get("/rest").await), APP[7..]);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn objects_are_read_line_by_line() {
    within(async {
        let rig = Rig::serve(APP).await;
        assert_eq!(text(&rig.get("/lines").await), "line 1\nline 2\nline 3\n");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_response_may_come_by_a_callback() {
    within(async {
        let rig = Rig::serve(APP).await;
        let response = rig.get("/delayed").await;
        assert_eq!(
            (response.status(), text(&response)),
            (StatusCode::ACCEPTED, "later".to_owned())
        );
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn responses_without_a_body_have_none() {
    within(async {
        let rig = Rig::serve(APP).await;
        for (path, status) in [("/empty", 204), ("/unchanged", 304)] {
            let asked = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let response = rig.exchange(asked.as_bytes()).await;
            assert!(
                response.starts_with(&format!("HTTP/1.1 {status} ")),
                "{response}"
            );
            assert!(response.ends_with("\r\n\r\n"), "{response}");
        }
        for path in ["/short", "/long", "/file", "/lines", "/delayed"] {
            let response = head(&rig, path).await;
            assert!(
                response.status().is_success() && response.body().is_empty(),
                "{path}"
            );
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn what_goes_wrong_is_a_500_and_the_worker_lives_on() {
    within(async {
        let rig = Rig::serve(APP).await;
        for path in [
            "/dies",
            "/split",
            "/wide",
            "/renamed",
            "/nothing",
            "/silent",
            "/no-such-sub",
        ] {
            let response = rig.get(path).await;
            assert_eq!(
                response.status(),
                StatusCode::INTERNAL_SERVER_ERROR,
                "{path}"
            );
            assert!(
                !text(&response).contains("purpose"),
                "it tells what is for the log"
            );
        }
        // It has begun, so it is broken off.
        let mut broken = rig.connect().await;
        let asked = b"GET /wide-text HTTP/1.1\r\nHost: a\r\n\r\n";
        broken.write_all(asked).await.unwrap();
        let mut response = Vec::new();
        _ = broken.read_to_end(&mut response).await;
        assert!(!response.ends_with(b"0\r\n\r\n"), "{response:?}");
        assert_eq!(text(&rig.get("/short").await), "one two");
        rig.end().await;
    })
    .await;
}

const SPELLED: &str = r#"
    sub {
        [200, ['X-CamelCase' => 1, 'ETag' => '"a"', 'Set-Cookie' => 'a=1',
            'WWW-Authenticate' => 'Basic', 'set-cookie' => 'b=2', 'x-lower' => 1,
            'DNT' => 0], ['spelled']];
    };
"#;

#[tokio::test]
async fn header_names_keep_their_case() {
    within(async {
        let rig = Rig::serve(SPELLED).await;
        for line in ["GET / HTTP/1.1", "GET / HTTP/1.0"] {
            let ask = format!("{line}\r\nHost: a\r\nConnection: close\r\n\r\n");
            let response = rig.exchange(ask.as_bytes()).await;
            for field in [
                "X-CamelCase: 1",
                "ETag: \"a\"",
                "Set-Cookie: a=1",
                "set-cookie: b=2",
                "WWW-Authenticate: Basic",
                "x-lower: 1",
                "DNT: 0",
            ] {
                assert!(
                    response.contains(&format!("\r\n{field}\r\n")),
                    "{field}: {response}"
                );
            }
        }
        rig.end().await;
    })
    .await;
}
