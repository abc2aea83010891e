//! PSGI's extensions: cleanup, harakiri, informational responses.

use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::load::{ready, until};
use crate::rig::{Rig, text, within};

/// A cleanup handler that waits for the file `go`, and leaves the file `done`.
const CLEANUP: &str = r#"
    my $base = $0;
    my $touch = sub { open my $file, '>', "$base.$_[0]" or die "$!" };
    sub {
        my $env = shift;
        return [200, [], ['plain']] if $env->{PATH_INFO} ne '/cleanup';
        push @{ $env->{'psgix.cleanup.handlers'} },
            sub { $touch->('begun'); select undef, undef, undef, 0.01 until -e "$base.go" },
            sub { die "on purpose\n" },
            sub { $touch->('done') };
        [200, [], ['served']];
    };
"#;

#[tokio::test]
async fn cleanup_handlers_run_after_the_response() {
    within(async {
        let rig = Rig::serve(CLEANUP).await;
        let is_there = |name: &str| rig.source.file(&format!("app.psgi.{name}")).exists();
        assert_eq!(text(&rig.get("/cleanup").await), "served");
        assert!(!is_there("done"));
        until(|| is_there("begun")).await;
        rig.source.write("app.psgi.go", "");
        assert_eq!(text(&rig.get("/").await), "plain");
        assert!(is_there("done"));
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn cleanup_handlers_are_done_before_a_worker_ends() {
    within(async {
        let rig = Rig::serve(CLEANUP).await;
        assert_eq!(text(&rig.get("/cleanup").await), "served");
        let gateway = rig.gateway.clone();
        let shutdown = tokio::spawn(async move { gateway.shutdown().await });
        until(|| rig.source.file("app.psgi.begun").exists()).await;
        rig.source.write("app.psgi.go", "");
        let report = shutdown.await.unwrap();
        assert!(report.killed.is_empty(), "{report:?}");
        assert!(rig.source.file("app.psgi.done").exists());
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_asks_for_its_end_is_replaced() {
    within(async {
        let app = r"
            sub {
                my $env = shift;
                $env->{'psgix.harakiri.commit'} = 1 if $env->{PATH_INFO} eq '/end';
                [200, [], [$$]];
            };
        ";
        let rig = Rig::serve(app).await;
        let pid = text(&rig.get("/").await);
        assert_eq!(text(&rig.get("/end").await), pid);
        until(|| {
            let ready = ready(&rig.gateway.status());
            ready.len() == 1 && ready[0].to_string() != pid
        })
        .await;
        let status = rig.gateway.status();
        assert_eq!((status.retired, status.restarts), (1, 0));
        while text(&rig.get("/").await) == pid {}
        rig.end().await;
    })
    .await;
}

/// Waits for the file `go` after it has given hints.
pub(crate) const HINTS: &str = r#"
    my $go = "$0.go";
    sub {
        my $env = shift;
        my $inform = $env->{'psgix.informational'};
        $inform->(103, ['Link' => '</style.css>; rel=preload']) if $inform;
        select undef, undef, undef, 0.01 until -e $go;
        [200, [], [$inform ? 'informed' : 'cannot']];
    };
"#;

#[tokio::test]
async fn hints_come_before_the_response() {
    within(async {
        let rig = Rig::serve(HINTS).await;
        let mut stream = rig.connect().await;
        let asked = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        stream.write_all(asked).await.unwrap();
        let mut hints = Vec::new();
        while !hints.ends_with(b"\r\n\r\n") {
            hints.push(stream.read_u8().await.unwrap());
        }
        let hints = String::from_utf8(hints).unwrap();
        assert!(hints.starts_with("HTTP/1.1 103 "), "{hints}");
        assert!(
            hints.contains("\r\nLink: </style.css>; rel=preload\r\n"),
            "{hints}"
        );
        rig.source.write("app.psgi.go", "");
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        assert!(
            response.starts_with("HTTP/1.1 200 ") && response.ends_with("\r\n\r\ninformed"),
            "{response}"
        );
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn clients_that_do_not_know_hints_get_none() {
    within(async {
        let rig = Rig::serve(HINTS).await;
        rig.source.write("app.psgi.go", "");
        let response = rig.exchange(b"GET / HTTP/1.0\r\n\r\n").await;
        assert!(!response.contains("103"), "{response}");
        assert!(
            response.contains(" 200 ") && response.ends_with("\r\n\r\ncannot"),
            "{response}"
        );
        assert_eq!(rig.get("/").await.status(), StatusCode::OK);
        rig.end().await;
    })
    .await;
}
