//! Responses that come in pieces.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::rig::{Rig, text, within};

const ENDLESS_BLOCKING: &str = r#"
    my $gone = "$0.gone";
    sub {
        my $env = shift;
        return [200, [], [-e $gone ? 'gone' : 'there']] if $env->{PATH_INFO} eq '/gone';
        return [200, [], ["pid $$"]] if $env->{PATH_INFO} eq '/pid';
        sub {
            my $writer = shift->([200, []]);
            eval { $writer->write('z' x 10_000) while 1; 1 } or do {
                my $why = $@;
                open my $file, '>', $gone or die;
                die $why;
            };
        };
    };
"#;

pub(crate) const ENDLESS_EVENTS: &str = r#"
    use AnyEvent;
    my ($written, $gone) = (0, 0);
    sub {
        my $env = shift;
        return [200, [], ["$written $gone"]] if $env->{PATH_INFO} eq '/written';
        sub {
            my $writer = shift->([200, []]);
            $writer->poll_cb(sub {
                my $writer = shift;
                return $gone = 1 if !$writer->write('z' x 10_000);
                $written += 10_000;
            });
        };
    };
"#;

/// Writes a second piece of `/stream`'s response when another path is requested.
pub(crate) const TWO_PIECES: &str = r#"
    use AnyEvent;
    my $writer;
    sub {
        my $env = shift;
        if ($env->{PATH_INFO} eq '/stream') {
            return sub { $writer = shift->([200, []]); $writer->write("first\n") };
        }
        $writer->write("second\n");
        $writer->close;
        [200, [], ['done']];
    };
"#;

#[tokio::test]
async fn a_piece_is_a_whole_chunk_before_the_next_is_written() {
    within(async {
        let rig = Rig::serve(TWO_PIECES).await;
        let mut stream = BufReader::new(rig.connect().await);
        let asked = b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n";
        stream.write_all(asked).await.unwrap();
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).await.unwrap();
        }
        let mut first = [0; b"6\r\nfirst\n\r\n".len()];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"6\r\nfirst\n\r\n");
        assert_eq!(text(&rig.get("/go-on").await), "done");
        let mut rest = [0; b"7\r\nsecond\n\r\n0\r\n\r\n".len()];
        stream.read_exact(&mut rest).await.unwrap();
        assert_eq!(&rest, b"7\r\nsecond\n\r\n0\r\n\r\n");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn pieces_are_sent_as_they_are_written() {
    within(async {
        let rig = Rig::serve(TWO_PIECES).await;
        let mut stream = BufReader::new(rig.connect().await);
        let asked = b"GET /stream HTTP/1.0\r\n\r\n";
        stream.write_all(asked).await.unwrap();
        let mut line = String::new();
        while line != "first\n" {
            line.clear();
            stream.read_line(&mut line).await.unwrap();
        }
        assert_eq!(text(&rig.get("/go-on").await), "done");
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "second\n");
        rig.end().await;
    })
    .await;
}

/// Requests an endless response and reads none of it.
pub(crate) async fn ask_and_do_not_read(rig: &Rig) -> tokio::net::TcpStream {
    let mut stream = rig.connect().await;
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    stream
}

#[tokio::test]
async fn a_reader_that_stops_stops_the_writer_and_nobody_else() {
    within(async {
        let rig = Rig::serve(ENDLESS_EVENTS).await;
        let reader = ask_and_do_not_read(&rig).await;
        let mut before = String::new();
        loop {
            // Each response comes after the worker had its chance to write more.
            let now = text(&rig.get("/written").await);
            if now == before && now != "0 0" {
                break;
            }
            before = now;
        }
        let written: usize = before.split(' ').next().unwrap().parse().unwrap();
        assert!(
            written < 64 * 1_024 * 1_024,
            "{written} bytes were written ahead"
        );
        drop(reader);
        while text(&rig.get("/written").await).ends_with(" 0") {}
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_a_blocking_writer() {
    within(async {
        let rig = Rig::with(ENDLESS_BLOCKING, |builder| builder.workers(2)).await;
        let reader = ask_and_do_not_read(&rig).await;
        assert!(text(&rig.get("/pid").await).starts_with("pid "));
        drop(reader);
        while text(&rig.get("/gone").await) != "gone" {}
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_response_that_breaks_off_is_not_taken_for_a_whole_one() {
    within(async {
        let rig = Rig::serve(
            "sub { sub { my $w = shift->([200, []]); $w->write('half'); die \"enough\\n\" } }",
        )
        .await;
        let response = rig.exchange(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(
            response.starts_with("HTTP/1.1 200 ") && response.contains("half"),
            "{response}"
        );
        assert!(!response.ends_with("0\r\n\r\n"), "{response}");
        rig.end().await;
    })
    .await;
}
