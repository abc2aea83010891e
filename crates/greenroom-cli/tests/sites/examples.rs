//! The files in `examples/sites`, served as they are and asked by curl. That of the social network
//! is served by the network's own tests.

use std::process::Command;

use crate::program::Running;
use crate::site::serve;

fn example(name: &str) -> Running {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sites");
    serve(&format!("{directory}/{name}.toml"), &[])
}

/// Asks by curl, and returns what it writes: the head and the body of the response.
fn curl(address: &str, path: &str, flags: &[&str]) -> String {
    let url = format!("http://{address}{path}");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--include", "--max-time", "60"]);
    let output = curl.args(flags).arg(url).output().expect("curl");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_tutorial_s_application_echoes_to_many_at_once() {
    let server = example("application");
    assert!(curl(&server.address, "/", &[]).contains("<form>"));
    assert!(curl(&server.address, "/health", &[]).ends_with("fine\n"));
    // One after the other they would take longer than curl waits.
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..40)
            .map(|number| {
                let address = &server.address;
                scope.spawn(move || curl(address, &format!("/?field=number+{number}+%3Cb"), &[]))
            })
            .collect();
        for (number, asked) in asked.into_iter().enumerate() {
            let said = asked.join().expect("it responds");
            let expected = format!("You said: number {number} &lt;b<br>");
            assert!(said.contains(&expected), "{said}");
        }
    });
}

#[test]
fn the_pixel_server_shows_no_advertisement() {
    let server = example("pixel");
    for flags in [&[][..], &["--data", "a=b"], &["--request", "OPTIONS"]] {
        let pixel = curl(&server.address, "/any/advertisement.js?a=b", flags);
        assert!(pixel.starts_with("HTTP/1.1 200"), "{pixel}");
        assert!(pixel.contains("content-type: image/gif"), "{pixel}");
        assert!(pixel.contains("cache-control: public"), "{pixel}");
        assert!(pixel.contains("GIF89a"), "{pixel}");
    }
    for path in ["/proxy.pac", "/wpad.dat"] {
        let script = curl(&server.address, path, &[]);
        assert!(script.contains("x-ns-proxy-autoconfig"), "{script}");
        assert!(script.contains("FindProxyForURL"), "{script}");
    }
}

#[test]
fn the_site_of_files_has_pages_and_tells_what_is_missing() {
    let server = example("static");
    let page = curl(&server.address, "/", &["--compressed"]);
    assert!(page.contains("cache-control: max-age=600"), "{page}");
    let missing = curl(&server.address, "/nowhere", &[]);
    assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
    // Its upstreams are not there.
    let api = curl(&server.address, "/api/x", &[]);
    assert!(api.starts_with("HTTP/1.1 502"), "{api}");
    let home = curl(&server.address, "/home", &[]);
    assert!(home.starts_with("HTTP/1.1 301"), "{home}");
}
