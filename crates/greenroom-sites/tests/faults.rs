//! Wrong files, with the messages that their users get.

use std::fs;
use std::path::Path;

use greenroom_sites::{File, NoServerKeys, ServerKeys, ServerSetting, ServerTable};

/// Reads a file of this text, in a directory with a few files; the faults without its name.
fn faults(text: &str) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("public")).expect("a directory");
    fs::write(path("app.psgi"), "sub {}").expect("a file");
    fs::write(path("plain"), "alice:secret\n").expect("a file");
    fs::write(path("empty"), "# nobody\n").expect("a file");
    fs::write(path("large"), vec![0; (1 << 20) + 1]).expect("a file");
    let file = path("greenroom.toml");
    match File::parse(&file, text.to_owned(), &NoServerKeys) {
        Ok(_) => Vec::new(),
        Err(faults) => {
            let place = format!("{}/", directory.path().display());
            let text = faults.to_string().replace(&place, "");
            text.lines()
                .map(|line| line.replace("greenroom.toml:", ""))
                .collect()
        }
    }
}

/// A file with one route, which has this line besides its path.
fn with(line: &str) -> String {
    format!("[[site]]\n[[site.route]]\npath = \"/a\"\n{line}\n")
}

#[track_caller]
fn assert_fault(text: &str, expected: &str) {
    let found = faults(text);
    assert_eq!(found, [expected], "{text}");
}

#[test]
fn names_that_are_none_are_told_with_the_nearest_one() {
    assert_fault(
        "[[sites]]\n[[site]]\nroute = { path = \"/\", respond = \"a\" }",
        "1:3: there is no `sites`; did you mean `site`?",
    );
    assert_fault(
        &with("respond = \"a\"\nbody_byte_max = \"1MiB\""),
        "5:1: there is no `body_byte_max`; did you mean `body_bytes_max`?",
    );
    assert_fault(
        &with("files = { root = \"public\", listing = true }"),
        "4:28: there is no `listing`; allowed: root, index, precompressed, well_known, \
         fallback, not_found, cache_control",
    );
    assert_fault(
        &with("proxy = { to = \"http://[::1]:1\", conect_timeout = \"1s\" }"),
        "4:34: there is no `conect_timeout`; did you mean `connect_timeout`?",
    );
}

#[test]
fn values_of_another_type_or_out_of_range_are_told_with_what_is_allowed() {
    for (line, expected) in [
        ("respond = 3", "4:11: expected a string, found an integer"),
        (
            "respond = { status = 99 }",
            "4:22: 99 is not a whole number from 200 to 599",
        ),
        (
            "redirect = { to = \"/b\", status = 304 }",
            "4:34: 304 is not 301, 302, 303, 307 or 308",
        ),
        (
            "redirect = \"b\"",
            "4:12: expected a path such as \"/new\", or a URL such as \"https://example.org/new\"",
        ),
        (
            "redirect = { to = \"/b?c=d\", keep_rest = true }",
            "4:19: with `keep_rest`, the rest of the path follows: no `?` and no `#` are allowed",
        ),
        (
            "respond = \"a\"\nexact = \"yes\"",
            "5:9: expected true or false, found a string",
        ),
        (
            "respond = \"a\"\nbody_bytes_max = \"2 parsecs\"",
            "5:18: \"2 parsecs\" is not a size above 0, such as \"512B\", \"64KiB\" (of 1,024) \
             or \"64kB\" (of 1,000)",
        ),
        (
            "psgi = { app = \"app.psgi\", timeout = \"0s\" }",
            "4:38: \"0s\" is not a time above 0, such as \"250ms\", \"10s\" or \"1m 30s\"",
        ),
        (
            "psgi = { app = \"app.psgi\", workers = 1025 }",
            "4:38: 1025 is not a whole number from 1 to 1024",
        ),
        (
            "respond = \"a\"\npriority = \"high\"",
            "5:12: expected \"critical\", \"normal\" or \"bulk\"",
        ),
        (
            "respond = \"a\"\nheaders = { set = { \"X Y\" = \"b\" } }",
            "5:29: `X Y` is no name of a header field",
        ),
        (
            "respond = \"a\"\nheaders = { remove = [\"Content-Length\"] }",
            "5:23: `content-length` is set by the server only",
        ),
        (
            "proxy = { to = \"http://127.0.0.1:1\", tries_max = 0 }",
            "4:50: tries_max is 0; 1 to 16 are allowed",
        ),
    ] {
        assert_fault(&with(line), expected);
    }
}

#[test]
fn a_route_has_one_kind() {
    assert_fault(
        &with(""),
        "2:1: the route has none of files, psgi, proxy, redirect and respond; exactly one is \
         needed",
    );
    assert_fault(
        &with("files = \"public\"\nredirect = \"/b\""),
        "2:1: the route has more than one of files, psgi, proxy, redirect and respond; exactly \
         one is needed",
    );
    assert_fault(
        "[[site]]\nroute = { respond = \"a\" }",
        "2:9: `path` is missing",
    );
    assert_fault(
        "[[site]]\nhosts = \"a\"",
        "1:1: the site has no route; a route is a table `[[site.route]]`",
    );
    assert_fault("", "1:1: there is no site; a site is a table `[[site]]`");
}

#[test]
fn hosts_and_paths_are_there_once() {
    let site = |hosts: &str, paths: [&str; 2]| {
        let [one, two] = paths.map(|path| format!("{{ path = \"{path}\", respond = \"a\" }}"));
        format!("[[site]]\nhosts = {hosts}\nroute = [{one}, {two}]\n")
    };
    let paths = ["/", "/b"];
    assert_fault(
        &(site("[\"a.org\"]", paths) + &site("[\"b.org\", \"A.ORG.\"]", paths)),
        "5:19: `a.org` is the name of two sites",
    );
    assert_fault(
        &(site("[]", paths) + &site("[]", paths)),
        "4:1: a second site without `hosts`; there is one default site at most",
    );
    assert_fault(
        &site("[\"[::1]\", \"[0::1]\"]", paths),
        "2:19: `[::1]` is the name of two sites",
    );
    assert_fault(
        &site("\"http://a\"", paths),
        "2:9: `http://a` is no host; allowed are names such as example.org, *.example.org, \
         192.0.2.1 or [::1], without scheme, port and path",
    );
    assert_fault(
        &site("\"a\"", ["/b", "/b/"]),
        "3:51: `/b/` is the path of two routes",
    );
    assert_fault(
        &site("\"a\"", ["/b", "/b/../c"]),
        "3:51: `/b/../c` is no path of a route; allowed are paths such as /, /blog or \
         /static/, of visible ASCII without `//`, `?`, `#`, `%`, `\\` and the segments `.` and \
         `..`",
    );
}

#[test]
fn what_is_named_must_be_there() {
    for (line, expected) in [
        (
            "files = \"nowhere\"",
            "4:9: nowhere: No such file or directory (os error 2); expected a directory",
        ),
        ("files = \"app.psgi\"", "4:9: app.psgi is not a directory"),
        (
            "files = { root = \"public\", fallback = \"../app.psgi\" }",
            "4:39: `../app.psgi` is not a file of public",
        ),
        (
            "files = { root = \"public\", fallback = \"nowhere\" }",
            "4:39: `nowhere` is not a file of public",
        ),
        (
            "files = { root = \"public\", not_found = \"large\" }",
            "4:40: the file has 1048577 bytes; allowed are 1048576",
        ),
        ("psgi = \"public\"", "4:8: public is not a file"),
        ("proxy = \"ftp://a\"", "4:9: `ftp://a` is no upstream"),
        (
            "respond = \"a\"\nbasic_auth = \"plain\"",
            "5:14: plain:1: not a hash of bcrypt or argon2; use `htpasswd -B` (plain text, MD5 \
             and crypt are refused)",
        ),
        (
            "respond = \"a\"\nbasic_auth = \"empty\"",
            "5:14: empty: there is no name in it",
        ),
        (
            "respond = \"a\"\nbasic_auth = true",
            "5:14: `file` is missing",
        ),
    ] {
        let found = faults(&with(line));
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        assert!(found[0].starts_with(expected), "{line}: {found:?}");
    }
}

#[test]
fn all_faults_are_told_at_once_in_the_order_of_their_lines() {
    let text = "[[site]]\nhosts = [\"a b\"]\n[[site.route]]\npath = \"b\"\nfile = \"public\"\n\
                [[site.route]]\npath = \"/c\"\nrespond = { status = 1000 }\n";
    let found = faults(text);
    let places: Vec<&str> = found
        .iter()
        .filter_map(|fault| fault.split(": ").next())
        .collect();
    assert_eq!(places, ["2:10", "3:1", "4:8", "5:1", "8:22"], "{found:#?}");
}

#[test]
fn what_is_no_toml_is_told_with_its_place() {
    let found = faults("[[site]]\nhosts = [\n");
    assert_eq!(found, ["2:10: unclosed array, expected `]`"]);
}

/// One setting.
struct Loops;

impl ServerKeys for Loops {
    fn names(&self, table: ServerTable) -> Vec<String> {
        let name = match table {
            ServerTable::Server => "loops",
            ServerTable::Limits => "fields_max",
        };
        vec![name.to_owned()]
    }

    fn check(&self, setting: &ServerSetting) -> Result<(), String> {
        let number: Result<u32, _> = setting.values[0].parse();
        number.map(|_| ()).map_err(|error| error.to_string())
    }

    fn schema(&self) -> Option<serde_json::Value> {
        None
    }
}

#[test]
fn settings_of_the_server_are_checked_by_the_one_who_has_them() {
    let site = "[[site]]\nroute = { path = \"/\", respond = \"a\" }\n";
    let read = |text: &str| File::parse(Path::new("a.toml"), format!("{text}\n{site}"), &Loops);
    let file = read("[server]\nloops = 3\n[server.limits]\nfields_max = 9").expect("it is right");
    let settings: Vec<_> = file.server().iter().map(|setting| setting.line).collect();
    assert_eq!(settings, [2, 4]);
    let found = read("server = { loops = \"x\", lops = 1, limits = { loops = 1 } }");
    let found = found.expect_err("three faults").to_string();
    let expected = "a.toml:1:20: invalid digit found in string\n\
                    a.toml:1:25: there is no `lops`; did you mean `loops`?\n\
                    a.toml:1:46: there is no `loops`; allowed: fields_max";
    assert_eq!(found, expected);
}
