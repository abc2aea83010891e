//! `greenroom bench` as its user sees it: ab's report, the loops, the files, and its end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "bench/mod.rs"]
mod support;

#[allow(dead_code, reason = "these tests use a part of it")]
mod program;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};

use program::Running;
use rustix::process::Signal;
use serde_json::Value;
use support::{Finished, Fixture, Measuring, Reply, Request, bench, quiet, response};

fn json(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).expect("it is JSON")
}

/// Runs it and also reads its JSON file.
fn measured(flags: &[&str], url: &str) -> (Finished, Value) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.json");
    let flags = [&["--json", file.to_str().unwrap()], flags].concat();
    let run = quiet(&flags, url);
    (run, json(&file))
}

#[test]
fn report_is_read_by_the_one_liners_written_for_ab() {
    let server = Running::serve(&[]);
    let url = format!("http://{}/hello", server.address);
    let run = quiet(&["-n40", "-c", "4"], &url).expect_status(0);
    let rate = run.number("grep 'Requests per second' | awk '{print $4}'");
    let mean = run.number("grep '^Time per request' | head -1 | awk '{print $4}'");
    let across = run.number("grep 'across all concurrent requests' | awk '{print $4}'");
    assert!(rate > 0.0);
    // Both are rounded to a microsecond.
    assert!((mean - 4.0 * across).abs() < 0.01, "{mean} {across}");
    let seconds = run.number("sed -n 's/^Time taken for tests: *\\([0-9.]*\\) seconds$/\\1/p'");
    assert!(seconds >= 0.0);
    for (pipeline, expected) in [
        ("awk '/^Complete requests/ {print $3}'", "40"),
        ("grep 'Failed requests' | awk '{print $3}'", "0"),
        ("grep -c 'Non-2xx'", "0"),
        ("awk '/Concurrency Level/ {print $3}'", "4"),
        ("sed -n 's/^Document Length: *//p'", "14 bytes"),
        ("awk '/HTML transferred/ {print $3}'", "560"),
        (
            "tail -1 | awk '{print $1, $3, $4}'",
            "100% (longest request)",
        ),
    ] {
        assert_eq!(
            run.piped_to(pipeline),
            expected,
            "{pipeline}\n{}",
            run.stdout
        );
    }
}

#[test]
fn percentages_close_the_report_in_whole_milliseconds() {
    let server = Fixture::hello();
    let run = quiet(&["-n", "100"], &server.url("/")).expect_status(0);
    let table = run.piped_to("sed -n '/^Percentage of the requests/,$p' | tail -n +2");
    let shares: Vec<_> = table
        .lines()
        .map(|line| line.split_whitespace().next())
        .collect();
    let expected = [
        "50%", "66%", "75%", "80%", "90%", "95%", "98%", "99%", "100%",
    ];
    assert_eq!(shares, expected.map(Some));
    let times = expected.map(|share| run.number(&format!("awk '$1 == \"{share}\" {{print $2}}'")));
    assert!(times.is_sorted() && times.iter().all(|time| time.fract() == 0.0));
    let near_all = run.number("grep ' 99%' | awk '{print $2}'");
    assert!((times[6]..=times[8]).contains(&near_all));
}

#[test]
fn lines_stand_in_the_order_of_ab() {
    let server = Fixture::hello();
    let run = quiet(&["-k", "-n", "3"], &server.url("/path?a=b")).expect_status(0);
    let port = server.address.port();
    let mut rest = run.stdout.as_str();
    for line in [
        "Server Software:        fixture/1.0\n",
        "Server Hostname:        127.0.0.1\n",
        &format!("Server Port:            {port}\n\n"),
        "Document Path:          /path?a=b\n",
        "Document Length:        6 bytes\n\n",
        "Concurrency Level:      1\n",
        "Time taken for tests:   ",
        "Complete requests:      3\n",
        "Failed requests:        0\n",
        "Keep-Alive requests:    3\n",
        "Total transferred:      ",
        "HTML transferred:       18 bytes\n",
        "Requests per second:    ",
        "Time per request:       ",
        "Time per request:       ",
        "Transfer rate:          ",
        "\nConnection Times (ms)\n              min  mean[+/-sd] median   max\nConnect: ",
        "\nProcessing: ",
        "\nWaiting: ",
        "\nTotal: ",
        "\nPercentage of the requests served within a certain time (ms)\n  50% ",
    ] {
        let at = rest.find(line);
        let at = at.unwrap_or_else(|| panic!("{line:?} is not next in\n{}", run.stdout));
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn server_sees_as_many_requests_and_connections_as_were_asked_for() {
    let server = Fixture::hello();
    let run = quiet(&["-n", "23", "-c", "5"], &server.url("/")).expect_status(0);
    assert_eq!(run.count("Complete requests:"), 23);
    assert_eq!((server.requests().len(), server.connections()), (23, 23));
    let server = Fixture::hello();
    quiet(&["-k", "-n", "23", "-c", "5"], &server.url("/")).expect_status(0);
    assert_eq!((server.requests().len(), server.connections()), (23, 5));
    let server = Fixture::hello();
    let run = quiet(&["-n", "2", "-c", "9"], &server.url("/")).expect_status(0);
    assert_eq!(server.requests().len(), 2);
    assert_eq!(run.count("Concurrency Level:"), 2);
}

#[test]
fn all_connections_send_at_once() {
    let together = Arc::new(Barrier::new(12));
    let server = Fixture::start(move |_| {
        // No response is sent before all requests came.
        together.wait();
        Reply::Close(response("200 OK", "together"))
    });
    let run = quiet(&["-n", "12", "-c", "12", "-s", "20"], &server.url("/")).expect_status(0);
    assert_eq!(run.count("Complete requests:"), 12);
}

#[test]
fn flags_of_ab_shape_the_request() {
    let directory = tempfile::tempdir().unwrap();
    let body = directory.path().join("body");
    fs::write(&body, "a=b&c").unwrap();
    let body = body.to_str().unwrap();
    let cases: [(&[&str], &[&str], &str); 8] = [
        (
            &[],
            &["GET /p?q HTTP/1.1\r\n", "\r\nConnection: close\r\n"],
            "",
        ),
        (&["-i"], &["HEAD /p?q "], ""),
        (&["-m", "DELETE"], &["DELETE /p?q "], ""),
        (
            &["-p", body],
            &["POST /p?q ", "\r\nContent-Type: text/plain\r\n"],
            "a=b&c",
        ),
        (
            &["-u", body, "-T", "text/csv"],
            &["PUT /p?q ", "\r\nContent-Type: text/csv\r\n"],
            "a=b&c",
        ),
        (
            &["-C", "a=1", "-C", "b=2"],
            &["\r\nCookie: a=1; b=2\r\n"],
            "",
        ),
        (
            &["-A", "user:pass", "-H", "X-One: 1", "-HHost: elsewhere"],
            &[
                "\r\nAuthorization: Basic dXNlcjpwYXNz\r\n",
                "\r\nX-One: 1\r\n",
                "\r\nHost: elsewhere\r\n",
            ],
            "",
        ),
        (&["-rlk", "-v", "0", "-d", "-S"], &["GET /p?q "], ""),
    ];
    for (flags, fields, body) in cases {
        let server = Fixture::hello();
        let reply = quiet(&[&["-s", "9"], flags].concat(), &server.url("/p?q"));
        // The response to a HEAD has no body, but this fixture sends one.
        assert_eq!(reply.status, Some(0), "{flags:?}: {}", reply.stderr);
        let request = server.requests().remove(0);
        for field in fields {
            assert!(request.head.contains(field), "{flags:?}: {}", request.head);
        }
        assert_eq!(request.body, body, "{flags:?}");
        assert_eq!(request.head.matches("Host: ").count(), 1);
    }
}

#[test]
fn proxy_gets_the_whole_url_and_its_own_credentials() {
    let proxy = Fixture::hello();
    let place = proxy.address.to_string();
    let flags = ["-X", &place, "-P", "user:pass"];
    let run = quiet(&flags, "http://nowhere.invalid:81/path").expect_status(0);
    assert_eq!(run.count("Complete requests:"), 1);
    run.assert_prints(&[
        &format!("Benchmarking nowhere.invalid [through {place}] (be patient)"),
        "Server Hostname:        nowhere.invalid\nServer Port:            81\n",
    ]);
    let request = proxy.requests().remove(0);
    assert_eq!(request.path(), "http://nowhere.invalid:81/path");
    for field in [
        "\r\nHost: nowhere.invalid:81\r\n",
        "\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n",
    ] {
        assert!(request.head.contains(field), "{}", request.head);
    }
}

#[test]
fn further_streams_take_the_same_proxy() {
    let proxy = Fixture::hello();
    let place = proxy.address.to_string();
    let also = "rate=20 http://other.invalid/";
    let flags = ["-X", &place, "--rate", "20", "-t", "500ms", "--also", also];
    let run = quiet(&flags, "http://nowhere.invalid/").expect_status(0);
    assert_eq!(run.count("Complete requests:"), 10);
    let requests = proxy.requests();
    let of = |url| requests.iter().filter(|one| one.path() == url).count();
    let urls = ["http://nowhere.invalid/", "http://other.invalid/"];
    assert_eq!(urls.map(of), [10, 10]);
}

#[test]
fn verbosity_shows_the_first_exchange() {
    let server = Fixture::hello();
    let shows = |level, text| {
        let run = quiet(&["-v", level], &server.url("/seen")).expect_status(0);
        run.stdout.contains(text)
    };
    for (text, from) in [
        ("HTTP/1.1 200 OK\r\nServer: fixture", 2),
        ("GET /seen HTTP/1.1", 3),
        ("\nhello\n", 4),
    ] {
        for (level, number) in [("1", 1), ("2", 2), ("3", 3), ("4", 4)] {
            assert_eq!(shows(level, text), number >= from, "-v {level}: {text:?}");
        }
    }
}

#[test]
fn parts_of_the_report_can_be_left_out() {
    let server = Fixture::hello();
    let whole = quiet(&["-n", "5"], &server.url("/"));
    whole.assert_prints(&["Percentage of the requests", "mean[+/-sd] median"]);
    let part = quiet(&["-n", "5", "-d", "-S"], &server.url("/"));
    assert!(!part.stdout.contains("Percentage of the requests"));
    assert!(!part.stdout.contains("[+/-sd]"));
}

#[test]
fn the_last_of_a_repeated_flag_counts() {
    let server = Fixture::hello();
    quiet(&["-n", "5", "-n", "2", "-k", "-k"], &server.url("/")).expect_status(0);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn progress_is_a_line_an_interval_and_can_be_silenced() {
    let server = Running::serve(&[]);
    let url = format!("http://{}/hello", server.address);
    let flags = ["-k", "-t", "450ms", "--interval", "100ms", &url];
    let run = bench(&flags).expect_status(0);
    assert!(run.stderr.lines().count() >= 2, "{}", run.stderr);
    for line in run.stderr.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!((words[1], words[3]), ("s", "p50"), "{line}");
        assert!(words[2].ends_with("/s") && line.ends_with(" 0 errors"));
    }
    let silent = bench(&[&["-q"], &flags[..]].concat()).expect_status(0);
    assert_eq!(silent.stderr, "");
}

#[test]
fn interval_without_responses_has_no_latency() {
    let server = Fixture::silent();
    let flags = ["-s", "500ms", "--interval", "100ms", &server.url("/")];
    let run = bench(&flags).expect_status(1);
    let first = run.stderr.lines().next().unwrap();
    assert!(first.ends_with("0/s  p50 -  p99 -  0 errors"), "{first}");
}

#[test]
fn files_hold_what_was_measured() {
    let server = Fixture::start(|request| {
        let status = if request.number % 4 == 3 {
            "404 Not Found"
        } else {
            "200 OK"
        };
        Reply::Keep(response(status, "four"))
    });
    let directory = tempfile::tempdir().unwrap();
    let names = ["json", "csv", "e.csv", "tsv", "hdr", "svg", "html"];
    let files = names.map(|name| directory.path().join(name));
    let flags = ["--json", "--csv", "-e", "-g", "--hdr", "--plot", "--html"];
    let paths = files.each_ref().map(|file| file.to_str().unwrap());
    let arguments: Vec<_> = flags
        .into_iter()
        .zip(paths)
        .flat_map(|(flag, file)| [flag, file])
        .collect();
    quiet(
        &[&["-k", "-n", "20"], &arguments[..]].concat(),
        &server.url("/x"),
    )
    .expect_status(0);
    let [_, csv, percentages, gnuplot, hdr, svg, html] = files
        .each_ref()
        .map(|file| fs::read_to_string(file).unwrap());

    let stream = &json(&files[0])["streams"][0];
    assert_eq!(stream["requests"]["answered"], 20);
    assert_eq!(stream["statuses"]["200"], 15);
    assert_eq!(stream["statuses"]["404"], 5);
    assert_eq!(stream["latency_ns"]["count"], 20);

    assert_timeline(&csv);
    assert!(percentages.starts_with("Percentage served,Time in ms\n0,"));
    assert_eq!(percentages.lines().count(), 102);
    assert!(gnuplot.starts_with("starttime\tseconds\tctime\tdtime\tttime\twait\n"));
    assert_eq!(gnuplot.lines().count(), 21);
    assert!(hdr.lines().any(|line| line.starts_with("#[StartTime: ")));
    assert!(hdr.lines().last().unwrap().contains(",HISTFAAAA"));

    assert_pictures(&svg, &html);
}

#[test]
fn a_page_tells_no_secrets() {
    let server = Fixture::hello();
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let flags = [
        "-n",
        "2",
        "-Auser:hidden-1",
        "--cookie=session=hidden-2",
        "-H",
        "authorization: Bearer hidden-3",
        "--html",
        page.to_str().unwrap(),
    ];
    quiet(&flags, &server.url("/")).expect_status(0);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("authorization: ***"), "{page}");
    assert!(!page.contains("hidden"), "{page}");
}

/// Asserts 15 good responses and 5 bad ones.
fn assert_timeline(csv: &str) {
    let rows: Vec<Vec<_>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][..2], ["stream", "begin_seconds"]);
    let column = |name| rows[0].iter().position(|cell| *cell == name).unwrap();
    let sum = |name| {
        rows[1..]
            .iter()
            .map(|row| row[column(name)].parse::<u64>().unwrap())
            .sum::<u64>()
    };
    assert_eq!((sum("good"), sum("bad"), sum("failed")), (15, 5, 0));
    let digits = rows[1][column("latency_max_ms")].split('.').nth(1).unwrap();
    assert!(digits.len() <= 6, "more than nanoseconds: {digits}");
}

fn assert_pictures(svg: &str, html: &str) {
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert!(
        html.trim_start()
            .to_lowercase()
            .starts_with("<!doctype html>")
    );
    for text in [svg, html] {
        assert!(!text.contains("NaN") && !text.contains("\"inf"));
    }
    for outside in [
        "src=\"http",
        "href=\"http",
        "url(",
        "@import",
        "<script src",
    ] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn open_loop_sends_what_its_schedule_asks_for() {
    for (flags, due, asked) in [
        (
            &["--rate", "20", "-t", "1"][..],
            20,
            "20 per second for 1 s",
        ),
        (
            &["--ramp", "0..40", "-t", "1s"],
            20,
            "0 to 40 per second over 1 s",
        ),
        (
            &["--stage", "20@500ms,40@500ms"],
            30,
            "20 per second for 0.5 s, then 40 per second for 0.5 s",
        ),
    ] {
        let server = Fixture::hello();
        let (run, json) = measured(&[&["-k"], flags].concat(), &server.url("/"));
        let run = run.expect_status(0);
        // A busy machine may be late with what is due last.
        let sent = due - run.count("  Never sent:");
        assert!(sent >= due - 1, "{sent}");
        assert_eq!(run.count("Complete requests:"), sent);
        assert_eq!(server.requests().len() as u64, sent);
        run.assert_prints(&[
            &format!("Asked:        {asked}\n"),
            &format!("Due:          {due} requests"),
            "Latency from the intended time",
        ]);
        let plan = &json["streams"][0]["plan"];
        assert_eq!(
            (&plan["requests"], &plan["duration_seconds"]),
            (&Value::Null, &1.0.into())
        );
    }
}

#[test]
fn open_loop_beside_a_silent_server_keeps_its_time() {
    let silent = Fixture::silent();
    let server = Fixture::hello();
    let also = format!("rate=20 name=light {}", server.url("/light"));
    let flags = ["--rate", "20", "-t", "1", "-s", "1", "-k", "--also", &also];
    let (run, json) = measured(&flags, &silent.url("/"));
    let run = run.expect_status(1);
    run.assert_failed(20, &["timeout"]);
    // No stream waited for another: each had a connection of its own.
    assert_eq!(silent.connections(), 20);
    assert_eq!(server.requests().len(), 20);
    let streams = &json["streams"];
    assert_eq!(streams[1]["name"], "light");
    assert_eq!(streams[1]["requests"]["answered"], 20);
    assert_eq!(streams[0]["requests"]["answered"], 0);
    assert_eq!(streams[0]["requests"]["due"], 20);
    run.assert_prints(&["Further streams (latency in ms)", "  light\n"]);
}

#[test]
fn load_of_which_a_part_gives_up_has_failed() {
    let main = Fixture::hello();
    let also = "rate=100 http://127.0.0.1:1/";
    let flags = ["--rate", "20", "-t", "500ms", "-k", "--also", also];
    let (run, json) = measured(&flags, &main.url("/"));
    let run = run.expect_status(1);
    run.assert_prints(&["a part of the load could not connect"]);
    assert_eq!(json["gave_up"], true);
    assert_eq!(json["streams"][0]["requests"]["answered"], 10);
}

#[test]
fn mixed_load_has_statistics_of_its_own_for_each_stream() {
    let main = Fixture::hello();
    let other = Fixture::start(|_| Reply::Close(response("503 Busy", "busy")));
    let closed = format!(
        "connections=2 keep-alive=no method=PUT {}",
        other.url("/closed")
    );
    let flags = ["--rate", "20", "-t", "500ms", "-k", "--also", &closed];
    let (run, json) = measured(&flags, &main.url("/main"));
    let run = run.expect_status(0);
    assert_eq!(run.count("Complete requests:"), 10);
    assert!(!run.stdout.contains("Non-2xx"));
    let streams = json["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 2);
    let busy = streams[1]["statuses"]["503"].as_u64().unwrap();
    assert_eq!(other.requests().len() as u64, busy);
    assert_eq!(streams[0]["statuses"]["200"], 10);
    assert_eq!(streams[1]["name"], other.url("/closed"));
    assert!(
        other
            .requests()
            .iter()
            .all(|one| one.head.starts_with("PUT /closed "))
    );
}

#[test]
fn several_urls_take_turns_by_weight() {
    let server = Fixture::hello();
    let heavy = format!("weight=3 {}", server.url("/heavy"));
    let run = bench(&["-q", "-k", "-n", "40", &heavy, &server.url("/light")]).expect_status(0);
    assert_eq!(run.count("Complete requests:"), 40);
    let requests = server.requests();
    let of = |path| requests.iter().filter(|one| one.path() == path).count();
    assert_eq!((of("/heavy"), of("/light")), (30, 10));
    run.assert_prints(&["Document Length:        Variable\n"]);
}

/// Writes a file of URLs with these paths.
fn url_file(server: &Fixture, paths: impl IntoIterator<Item = String>) -> tempfile::NamedTempFile {
    let lines = paths.into_iter().map(|path| server.url(&path) + "\n");
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, lines.collect::<String>()).unwrap();
    file
}

#[test]
fn urls_of_a_file_go_out_each_once_before_any_again() {
    let server = Fixture::hello();
    let file = url_file(&server, (0..2000).map(|number| format!("/{number}?like")));
    let name = file.path().to_str().unwrap();
    let flags = ["-k", "-c", "16", "--threads", "3", "-m", "PUT"];
    let flags = [&["-q", "--url-file", name, "-n", "5000"], &flags[..]].concat();
    let run = bench(&flags).expect_status(0);
    run.assert_prints(&["Document Path:          /0?like\n"]);
    assert_eq!(run.count("Failed requests:"), 0);
    let mut times = vec![0; 2000];
    for request in server.requests() {
        assert!(request.head.starts_with("PUT "), "{}", request.head);
        let number = request.path()[1..].strip_suffix("?like").unwrap();
        times[number.parse::<usize>().unwrap()] += 1;
    }
    assert!(times[..1000].iter().all(|times| *times == 3));
    assert!(times[1000..].iter().all(|times| *times == 2));
}

#[test]
fn urls_of_a_file_keep_its_order_in_both_loops() {
    for flags in [
        &["-k", "-n", "6"][..],
        &["-k", "--pipeline", "4", "-n", "6"],
        &["-n", "6"],
        &["-k", "-c", "1", "--rate", "30", "-t", "400ms"],
    ] {
        let server = Fixture::hello();
        let file = url_file(&server, ["/b", "/a", "/c"].map(str::to_owned));
        let name = file.path().to_str().unwrap();
        let run = bench(&[&["-q", "--url-file", name], flags].concat());
        let requests = server.requests();
        let paths: Vec<_> = requests.iter().map(Request::path).collect();
        // A machine that is busy may send fewer in the open loop's time.
        assert!(paths.len() >= 3, "{flags:?}: {}", run.stdout);
        let order = ["/b", "/a", "/c"].into_iter().cycle();
        let expected: Vec<_> = order.take(paths.len()).collect();
        assert_eq!(paths, expected, "{flags:?}");
    }
}

#[test]
fn responses_of_other_lengths_fail_unless_they_may_vary() {
    let server = Fixture::start(|request| {
        Reply::Keep(response("200 OK", &"x".repeat(1 + request.number % 2)))
    });
    let strict = quiet(&["-k", "-n", "10"], &server.url("/")).expect_status(0);
    assert_eq!(strict.count("Failed requests:"), 5);
    strict.assert_prints(&["(Connect: 0, Receive: 0, Length: 5, Exceptions: 0)"]);
    let lenient = quiet(&["-k", "-l", "-n", "10"], &server.url("/")).expect_status(0);
    assert_eq!(lenient.count("Failed requests:"), 0);
}

#[test]
fn gates_decide_the_exit_status() {
    let server = Fixture::start(|request| {
        let status = if request.number % 10 == 9 {
            "503 Busy"
        } else {
            "200 OK"
        };
        Reply::Keep(response(status, "same"))
    });
    for (gate, status) in [
        ("p99>0ms", 3),
        ("p50<1h", 3),
        ("p99.9>=1h", 0),
        ("mean>1h", 0),
        ("min<=1h", 3),
        ("max>1h", 0),
        ("errors>0", 3),
        ("errors>10%", 0),
        ("errors>=10%", 3),
        ("non2xx>2", 0),
        ("non2xx>=2", 3),
        ("missed>0", 0),
        ("rate<0.001", 0),
        ("rate > 0", 3),
    ] {
        let run = quiet(&["-k", "-n", "20", "--fail-if", gate], &server.url("/"));
        let run = run.expect_status(status);
        let metric = gate.split(['<', '>', ' ']).next().unwrap();
        let told = run
            .stderr
            .contains(&format!("--fail-if came true: {metric}"));
        assert_eq!(told, status == 3, "{gate}: {}", run.stderr);
        assert_eq!(run.count("Complete requests:"), 20, "{gate}");
    }
}

#[test]
fn missed_rate_is_told_and_has_a_status() {
    let server = Fixture::start(|request| match request.number {
        0 => Reply::Keep(response("200 OK", "once")),
        _ => Reply::Hang(Vec::new()),
    });
    let flags = [
        "-k", "-c", "1", "--rate", "20", "-t", "500ms", "-s", "600ms",
    ];
    let run = quiet(&flags, &server.url("/")).expect_status(3);
    run.assert_prints(&[
        "*** THE ASKED RATE WAS MISSED ***",
        "of the 10 requests that were due",
    ]);
}

#[test]
fn a_signal_ends_the_run_with_what_it_has() {
    let server = Running::serve(&[]);
    let url = format!("http://{}/hello", server.address);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.json");
    for signal in [Signal::INT, Signal::TERM] {
        let flags = ["-k", "-t", "1h", "--interval", "100ms", "--json"];
        let arguments = [&flags[..], &[file.to_str().unwrap(), &url]].concat();
        let mut run = Measuring::start(&arguments);
        run.wait_for_responses();
        run.signal(signal);
        let run = run.finish().expect_status(130);
        let complete = run.count("Complete requests:");
        assert!(complete > 0);
        run.assert_prints(&["Requests per second:", "Interrupted after ", "100% "]);
        let json = json(&file);
        assert_eq!(json["interrupted"], true);
        assert_eq!(json["streams"][0]["requests"]["answered"], complete);
    }
}

#[test]
fn a_signal_does_not_wait_for_a_silent_server() {
    let server = Fixture::silent();
    let mut run = Measuring::start(&["-s", "1h", "--interval", "100ms", &server.url("/")]);
    run.wait_for_line(|line| line.contains("0/s"));
    run.signal(Signal::INT);
    let run = run.finish().expect_status(130);
    run.assert_prints(&["Requests under way that were not waited for: 1"]);
}

#[test]
fn files_are_written_though_nobody_reads_the_report() {
    let server = Fixture::hello();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.json");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let url = server.url("/");
    let arguments = [
        "bench",
        "-q",
        "--csv",
        "/dev/full",
        "--json",
        file.to_str().unwrap(),
        &url,
    ];
    let output = program::command(&arguments)
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("standard output"), "{message}");
    assert_eq!(json(&file)["streams"][0]["requests"]["answered"], 1);
}

#[test]
fn closed_standard_streams_end_nothing() {
    let server = Fixture::hello();
    let program = env!("CARGO_BIN_EXE_greenroom");
    let script = format!("{program} bench -n 3 {} <&- >&- 2>&-", server.url("/"));
    let mut shell = Command::new("sh");
    let status = shell
        .args(["-c", &script])
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(server.requests().len(), 3);
}
