//! New files: by SIGHUP, by `greenroom reload` and by --watch.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use greenroom_sites::{Defaults, File, NoServerKeys, Sites};
use rustix::process::Signal;

use crate::authority::Authority;
use crate::program::{Running, command, output};
use crate::site::{Directory, Response, Site, begin, serve};

const PID: &str = r#"sub { [200, [], ["$$"]] }"#;

fn responding(text: &str) -> String {
    format!("[[site]]\n[[site.route]]\npath = \"/\"\nrespond = \"{text}\"\n")
}

fn with_applications(workers: u32, further: &str) -> String {
    format!(
        "[[site]]\n[[site.route]]\npath = \"/kept\"\npsgi = {{ app = \"pid.psgi\", workers = 1 }}\n\
         [[site.route]]\npath = \"/changed\"\n\
         psgi = {{ app = \"pid.psgi\", workers = {workers} }}\n{further}"
    )
}

#[test]
fn a_new_file_is_taken_over_and_a_wrong_one_is_not() {
    let site = Site::serve(Directory::new(&responding("one")), &[]);
    assert_eq!(site.get("/").text(), "one");
    site.directory.write("greenroom.toml", responding("two"));
    site.server.signal(Signal::HUP);
    site.server.wait_for_log("in force");
    assert_eq!(site.get("/").text(), "two");
    site.directory
        .write("greenroom.toml", responding("three") + "listing = true\n");
    site.server.signal(Signal::HUP);
    let line = site.server.wait_for_log("listing");
    assert!(
        line.contains("greenroom.toml:5:1: there is no `listing`"),
        "{line}"
    );
    site.server.wait_for_log("stay as they were");
    assert_eq!(site.get("/").text(), "two");
    let other = format!("[server]\nloops = 1\n{}", responding("four"));
    site.directory.write("greenroom.toml", other);
    site.server.signal(Signal::HUP);
    let line = site.server.wait_for_log("stay as they were");
    assert!(line.contains("loops") && line.contains("restart"), "{line}");
    assert_eq!(site.get("/").text(), "two");
}

#[test]
fn applications_keep_their_workers_unless_their_settings_change() {
    let directory = Directory::new(&with_applications(1, ""));
    directory.write("pid.psgi", PID);
    let site = Site::serve(directory, &[]);
    let before = (site.get("/kept").text(), site.get("/changed").text());
    let further = "[[site.route]]\npath = \"/new\"\npsgi = \"pid.psgi\"\n";
    site.directory
        .write("greenroom.toml", with_applications(2, further));
    site.server.signal(Signal::HUP);
    let line = site.server.wait_for_log("in force");
    assert!(line.contains("started=2 kept=1 ended=1"), "{line}");
    assert_eq!(site.get("/kept").text(), before.0);
    assert_ne!(site.get("/changed").text(), before.1);
    assert_eq!(site.get("/new").status, 200);
    // The same file again has the applications load their code anew.
    site.server.signal(Signal::HUP);
    site.server.wait_for_log("started=0 kept=3 ended=0");
    for _ in 0..3 {
        site.server.wait_for_log("is loaded anew");
    }
    assert_ne!(site.get("/kept").text(), before.0);
}

#[test]
fn an_application_that_does_not_load_leaves_the_sites_as_they_were() {
    let directory = Directory::new(&with_applications(1, ""));
    directory.write("pid.psgi", PID);
    let site = Site::serve(directory, &[]);
    let before = site.get("/changed").text();
    site.directory
        .write("broken.psgi", "die 'broken on purpose'");
    let further = "[[site.route]]\npath = \"/new\"\npsgi = \"broken.psgi\"\n";
    site.directory
        .write("greenroom.toml", with_applications(2, further));
    site.server.signal(Signal::HUP);
    site.server.wait_for_log("stay as they were");
    assert_eq!(site.get("/changed").text(), before);
    assert_eq!(site.get("/new").status, 404);
}

#[test]
fn a_request_that_is_under_way_is_finished_by_the_old_application() {
    let directory = Directory::new(&with_applications(1, ""));
    directory.write("pid.psgi", PID);
    directory.write(
        "waits.psgi",
        "sub { my $env = shift; my $input = $env->{'psgi.input'}; [200, [], [\"$$\"]] }",
    );
    let site = Site::serve(directory, &[]);
    // Its body is to come: the route is chosen, and the application has not begun.
    let lines = "Host: localhost\r\nContent-Length: 5\r\n";
    let mut posting = site.begin("POST", "/changed", lines);
    posting.write_all(b"he").expect("it is read");
    assert_eq!(site.get("/changed").status, 200);
    site.directory
        .write("greenroom.toml", with_applications(2, ""));
    site.server.signal(Signal::HUP);
    site.server.wait_for_log("in force");
    posting.write_all(b"llo").expect("it is read");
    let mut bytes = Vec::new();
    posting.read_to_end(&mut bytes).expect("the response ends");
    assert_eq!(Response::parse(&bytes).status, 200);
}

#[test]
fn no_request_is_lost_while_files_are_taken_over() {
    let directory = Directory::new(&with_applications(1, ""));
    directory.write("pid.psgi", PID);
    let site = Site::serve(directory, &[]);
    let address = site.server.address.clone();
    let asking = thread::spawn(move || {
        for _ in 0..300 {
            for path in ["/kept", "/changed"] {
                let mut connection = begin(&address, "GET", path, "Host: localhost\r\n");
                let mut bytes = Vec::new();
                connection.read_to_end(&mut bytes).expect("it ends");
                assert_eq!(Response::parse(&bytes).status, 200, "{path}");
            }
        }
    });
    for workers in [2, 1, 3] {
        site.directory
            .write("greenroom.toml", with_applications(workers, ""));
        site.server.signal(Signal::HUP);
        site.server.wait_for_log("in force");
    }
    asking.join().expect("all get their responses");
}

#[test]
fn reload_and_watch_take_over_too() {
    let directory = Directory::new(&responding("one"));
    let pid = directory.path("greenroom.pid").display().to_string();
    let site = Site::serve(directory, &["--watch", "--pid", &pid]);
    site.directory.write("greenroom.toml", responding("two"));
    site.server.wait_for_log("in force");
    assert_eq!(site.get("/").text(), "two");
    let reloaded = output(&["reload", "--pid", &pid]);
    assert_eq!(reloaded.status.code(), Some(0), "{reloaded:?}");
    site.server.wait_for_log("SIGHUP");
    site.server.wait_for_log("in force");
    fs::write(&pid, "0\n").expect("it can be written");
    let refused = output(&["reload", "--pid", &pid]);
    assert_eq!(refused.status.code(), Some(2));
}

/// A site whose members have their passwords in this file.
fn of_members(file: &str) -> String {
    let site = "[[site]]\n[[site.route]]\npath = \"/\"\nrespond = \"for members\"\n";
    format!("{site}basic_auth = {{ file = \"{file}\", realm = \"members\" }}\n")
}

/// Returns a line of a file of passwords.
fn member(password: &str) -> String {
    let hash = bcrypt::hash(password, 4).expect("a hash");
    format!("alice:{hash}\n")
}

/// Returns the status that alice gets with this password.
fn status(site: &Site, password: &str) -> u16 {
    use base64::Engine;

    let credentials = format!("alice:{password}");
    let encoded = base64::prelude::BASE64_STANDARD.encode(credentials);
    let lines = format!("Host: localhost\r\nAuthorization: Basic {encoded}\r\n");
    site.ask("GET", "/", &lines).status
}

#[test]
fn watch_sees_the_passwords_that_a_new_file_names() {
    let site = Site::serve(Directory::new(&responding("one")), &["--watch"]);
    site.directory.write("elsewhere/passwords", member("first"));
    let file = of_members("elsewhere/passwords");
    site.directory.write("greenroom.toml", file);
    site.server.wait_for_log("in force");
    assert_eq!(
        (status(&site, "first"), status(&site, "second")),
        (200, 401)
    );
    site.directory
        .write("elsewhere/passwords", member("second"));
    site.server.wait_for_log("a file has changed");
    site.server.wait_for_log("in force");
    assert_eq!(
        (status(&site, "first"), status(&site, "second")),
        (401, 200)
    );
    // What is named no more is watched no more, and the rest goes on.
    site.directory.write("greenroom.toml", responding("two"));
    site.server.wait_for_log("in force");
    fs::remove_dir_all(site.directory.path("elsewhere")).expect("it is there");
    site.directory.write("greenroom.toml", responding("three"));
    site.server.wait_for_log("in force");
    assert_eq!(site.get("/").text(), "three");
}

#[test]
fn watch_sees_the_files_of_a_directory_with_two_names() {
    let directory = Directory::new("");
    directory.write("elsewhere/passwords", member("first"));
    directory.write("elsewhere/others", member("other"));
    std::os::unix::fs::symlink("elsewhere", directory.path("linked")).expect("a link");
    let mut sites = of_members("elsewhere/passwords");
    sites.push_str("[[site.route]]\npath = \"/others\"\nrespond = \"for others\"\n");
    sites.push_str("basic_auth = { file = \"linked/others\", realm = \"others\" }\n");
    directory.write("greenroom.toml", sites);
    let site = Site::serve(directory, &["--watch"]);
    for password in ["second", "third"] {
        // In one step: the pause between two would be another change.
        site.directory.write("elsewhere/new", member(password));
        let (new, file) = ("elsewhere/new", "elsewhere/passwords");
        let (new, file) = (site.directory.path(new), site.directory.path(file));
        fs::rename(new, file).expect("it can be moved");
        site.server.wait_for_log("a file has changed");
        site.server.wait_for_log("in force");
        assert_eq!(status(&site, password), 200);
    }
}

#[test]
fn watch_sees_that_a_directory_stands_in_the_place_of_another() {
    let directory = Directory::new("");
    directory.write("elsewhere/passwords", member("first"));
    directory.write("next/passwords", member("second"));
    directory.write("greenroom.toml", of_members("elsewhere/passwords"));
    let site = Site::serve(directory, &["--watch"]);
    let path = |name: &str| site.directory.path(name);
    fs::rename(path("elsewhere"), path("last")).expect("it can be moved");
    fs::rename(path("next"), path("elsewhere")).expect("it can be moved");
    while status(&site, "second") != 200 {
        thread::yield_now();
    }
    // The new one is watched.
    site.directory.write("elsewhere/new", member("third"));
    fs::rename(path("elsewhere/new"), path("elsewhere/passwords")).expect("it can be moved");
    while status(&site, "third") != 200 {
        thread::yield_now();
    }
}

/// A reload reads the files, and whoever looks into one opens it.
#[test]
fn watch_takes_reading_for_no_change() {
    let directory = Directory::new("");
    directory.write("passwords", member("first"));
    directory.write("greenroom.toml", of_members("passwords"));
    let site = Site::serve(directory, &["--watch"]);
    // In one step: the pause between two would be another change.
    site.directory.write("new", member("second"));
    let (new, passwords) = (site.directory.path("new"), site.directory.path("passwords"));
    fs::rename(new, passwords).expect("it can be moved");
    site.server.wait_for_log("in force");
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(1) {
        fs::read(site.directory.path("passwords")).expect("it is there");
        thread::yield_now();
    }
    site.server.signal(Signal::TERM);
    let rest = site.server.rest_of_log();
    let again = rest.iter().any(|line| line.contains("a file has changed"));
    assert!(!again, "{rest:#?}");
}

#[test]
fn watch_sees_that_a_link_on_the_way_leads_elsewhere() {
    use std::os::unix::fs::symlink;

    // As Kubernetes keeps a ConfigMap.
    let directory = Directory::new("");
    let (file, link) = (directory.path("greenroom.toml"), directory.path("..data"));
    let exchange = |version: &str, sites: &str| {
        let new = directory.path("..new");
        directory.write(&format!("{version}/greenroom.toml"), sites);
        symlink(version, &new).expect("a link");
        fs::rename(new, &link).expect("it can be moved");
    };
    fs::remove_file(&file).expect("it is there");
    symlink("..data/greenroom.toml", &file).expect("a link");
    exchange("..1", &responding("1"));
    let server = serve(&directory.file(), &["--watch"]);
    let text = || {
        let mut connection = begin(&server.address, "GET", "/", "Host: localhost\r\n");
        let mut bytes = Vec::new();
        connection.read_to_end(&mut bytes).expect("it ends");
        Response::parse(&bytes).text()
    };
    assert_eq!(text(), "1");
    // One with a fault keeps nobody from seeing the next one.
    for version in ["..2", "..3", "..wrong", "..4"] {
        if version == "..wrong" {
            exchange(version, "[[sites]]");
            server.wait_for_log("stay as they were");
            continue;
        }
        exchange(version, &responding(version));
        server.wait_for_log("in force");
        assert_eq!(text(), version);
    }
    // A file that changes where the links lead is seen, too.
    directory.write("..4/greenroom.toml", responding("5"));
    server.wait_for_log("in force");
    assert_eq!(text(), "5");
}

#[test]
fn the_authorities_of_upstreams_are_read_again() {
    let (authority, other) = (Authority::new(), Authority::new());
    authority.issue("own", "localhost");
    let mut serve = command(&["serve", "-l", "127.0.0.1:0"]);
    let upstream = Running::start(serve.args(authority.flags("own")));
    let (_, port) = upstream.address.rsplit_once(':').unwrap();
    let directory = Directory::new(&format!(
        "[[site]]\n[[site.route]]\npath = \"/\"\n[site.route.proxy]\n\
         to = \"https://localhost:{port}\"\ntls_ca = \"ca.pem\"\n"
    ));
    let trust = |directory: &Directory, whom: &Authority| {
        directory.write("ca.pem", fs::read(whom.path("root.pem")).unwrap());
    };
    trust(&directory, &other);
    let site = Site::serve(directory, &[]);
    assert_eq!(site.get("/hello").status, 502);
    trust(&site.directory, &authority);
    site.server.signal(Signal::HUP);
    site.server.wait_for_log("in force");
    assert!(site.get("/hello").text().contains("Hello"));
    site.directory.write("ca.pem", "nothing");
    site.server.signal(Signal::HUP);
    let line = site.server.wait_for_log("tls_ca");
    assert!(line.contains("greenroom.toml:6:"), "{line}");
    assert!(line.contains("there is no certificate"), "{line}");
    site.server.wait_for_log("stay as they were");
    assert!(site.get("/hello").text().contains("Hello"));
}

#[tokio::test]
async fn the_authorities_of_upstreams_are_used_as_they_were_checked() {
    let authority = Authority::new();
    let directory = Directory::new(
        "[[site]]\n[[site.route]]\npath = \"/\"\n[site.route.proxy]\n\
         to = \"https://localhost:1\"\ntls_ca = \"ca.pem\"\n",
    );
    let path = directory.file();
    let read = || File::read(Path::new(&path), &NoServerKeys);
    directory.write("ca.pem", fs::read(authority.path("root.pem")).unwrap());
    let file = read().expect("it has no fault");
    // Meanwhile somebody begins to write another one.
    directory.write("ca.pem", "nothing");
    assert!(read().is_err());
    let sites = Sites::start(&file, &Defaults::default()).await;
    assert!(sites.is_ok());
}
