//! Bodies that the application has chunked by itself.

use http::StatusCode;

use crate::log;
use crate::rig::{Rig, text, within};

/// The unchanged middleware, around every kind of response.
const MIDDLEWARE: &str = r"
    use strict; use warnings;
    use Plack::Middleware::Chunked;
    my $path = $0;
    my %responses = (
        '/list'    => sub { [200, ['Content-Type' => 'text/plain'], ['one ', '', 'two']] },
        '/long'    => sub { [200, [], [('0123456789') x 50_000]] },
        '/file'    => sub { open my $file, '<', $path or die; [200, [], $file] },
        '/delayed' => sub { sub { $_[0]->([202, [], ['later']]) } },
        '/writer'  => sub { sub {
            my $w = $_[0]->([200, []]);
            $w->write($_) for 'a', 'bc', 'd' x 100_000;
            $w->close;
        } },
        '/empty'   => sub { [204, [], []] },
        '/length'  => sub { [200, ['Content-Length' => 5], ['hello']] },
    );
    Plack::Middleware::Chunked->wrap(sub { $responses{$_[0]{PATH_INFO}}->($_[0]) });
";

#[tokio::test]
async fn the_middleware_changes_no_body() {
    within(async {
        let rig = Rig::serve(MIDDLEWARE).await;
        let file = std::fs::read_to_string(rig.source.app()).unwrap();
        let cases = [
            ("/list", String::from("one two")),
            ("/long", "0123456789".repeat(50_000)),
            ("/file", file),
            ("/delayed", String::from("later")),
            ("/writer", format!("abc{}", "d".repeat(100_000))),
            ("/length", String::from("hello")),
        ];
        for (path, body) in cases {
            let response = rig.get(path).await;
            assert!(response.status().is_success(), "{path}: {response:?}");
            assert_eq!(text(&response), body, "{path}");
        }
        assert_eq!(rig.get("/empty").await.status(), StatusCode::NO_CONTENT);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn it_is_framed_once_for_every_client() {
    within(async {
        let rig = Rig::serve(MIDDLEWARE).await;
        let ask = |line: &str| format!("{line}\r\nHost: a\r\nConnection: close\r\n\r\n");
        let whole = rig.exchange(ask("GET /list HTTP/1.1").as_bytes()).await;
        assert!(whole.contains("\r\nContent-Length: 7\r\n"), "{whole}");
        assert!(whole.ends_with("\r\n\r\none two"), "{whole}");
        let head = rig.exchange(ask("HEAD /list HTTP/1.1").as_bytes()).await;
        assert!(
            head.ends_with("\r\n\r\n") && !head.contains("chunked"),
            "{head}"
        );
        let streamed = rig.exchange(ask("GET /writer HTTP/1.1").as_bytes()).await;
        assert_eq!(streamed.matches("Transfer-Encoding: chunked").count(), 1);
        let old = rig.exchange(ask("GET /writer HTTP/1.0").as_bytes()).await;
        assert!(old.contains("\r\n\r\nabcddd"), "{}", &old[..200]);
        rig.end().await;
    })
    .await;
}

/// Declares a chunked body that is none.
const WRONG: &str = r#"
    sub {
        my $path = $_[0]{PATH_INFO};
        my $headers = ['Transfer-Encoding' => $path eq '/gzip' ? 'gzip' : 'Chunked'];
        return [200, $headers, ['hello, not in chunks']] if $path ne '/streamed-wrongly';
        sub {
            my $w = $_[0]->([200, $headers]);
            $w->write($_) for "5\r\nhello\r\n", "nothing\r\n";
            $w->close;
        };
    };
"#;

#[tokio::test]
async fn what_is_not_chunked_is_refused_with_what_to_do() {
    log::keep();
    within(async {
        let rig = Rig::serve(WRONG).await;
        for (path, told) in [
            ("/said-chunked", "without that header it is sent as it is"),
            ("/gzip", "the transfer coding \"gzip\""),
        ] {
            let response = rig.get(path).await;
            assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
            let line = log::line(path, "HTTP forbids").await;
            assert!(line.contains("ERROR psgi: "), "{line}");
            assert!(line.contains(told), "{line}");
        }
        let ask = b"GET /streamed-wrongly HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let response = rig.exchange(ask).await;
        assert!(
            response.contains("hello") && !response.ends_with("0\r\n\r\n"),
            "{response}"
        );
        log::line("/streamed-wrongly", "a response is broken off").await;
        rig.end().await;
    })
    .await;
}

/// `write_chunk` of Mojolicious chunks by itself.
const MOJO: &str = r"
    use Mojolicious::Lite -signatures;
    get '/' => sub ($c) {
        $c->write_chunk('one ' => sub ($c, @) {
            $c->write_chunk('two' => sub ($c, @) { $c->finish });
        });
    };
    app->start;
";

#[tokio::test]
async fn chunks_of_a_framework_are_undone_too() {
    within(async {
        let rig = Rig::serve(MOJO).await;
        assert_eq!(text(&rig.get("/").await), "one two");
        rig.end().await;
    })
    .await;
}
