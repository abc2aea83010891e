//! An application as another user than root.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

use rustix::process::geteuid;

use crate::http;
use crate::site::{Folder, Site};

/// Shows root's rights in the files that it could read as it was loaded, in its user, and in the
/// owner of its files.
const WHO: &str = r"
my $loading = join '|', $<, $>, (split ' ', $()[0], $), -w '/etc/passwd' ? 'root' : 'not root';
sub {
    my ($env) = @_;
    return [200, [], ['x' x 1_000_000]] if $env->{PATH_INFO} eq '/large';
    return [200, [], [$loading]] if $env->{REQUEST_METHOD} eq 'GET';
    my ($input, $length) = ($env->{'psgi.input'}, 0);
    while (my $read = $input->read(my $bytes, 65_536)) { $length += $read }
    [200, [], [$length]];
};";

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn the_application_is_loaded_and_served_as_the_user() {
    if !geteuid().is_root() {
        eprintln!("SKIPPED: only root can become another user");
        return;
    }
    for flag in ["--workers=2", "--preload"] {
        let folder = Folder::with(WHO);
        for (name, mode) in [(".", 0o755), ("tmp", 0o1777)] {
            set_permissions(folder.path(name), Permissions::from_mode(mode)).unwrap();
        }
        let flags = ["--user", "nobody", "--group", "65534", flag];
        let mut site = Site::serve_app(folder, &flags);
        assert_eq!(
            site.get("/").text(),
            "65534|65534|65534|65534 65534|not root"
        );
        // By a worker's file that the server opens, and by a server's file that the worker opens.
        assert_eq!(site.get("/large").body.len(), 1_000_000);
        let body = vec![b'x'; 300_000];
        let response = http::request(site.address(), "POST", "/", &[], &body);
        assert_eq!(response.text(), "300000");
        site.end(0);
    }
}
