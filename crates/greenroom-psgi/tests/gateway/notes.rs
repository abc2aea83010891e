//! An application that can be blocked, and notes its requests.

use tokio::task::yield_now;

use crate::rig::Rig;

/// Responds to any path with the query and the process, after it has noted both, except to `first`.
/// With `hold` in the query it waits for the file `go`.
pub(crate) const APP: &str = r#"
    use strict; use warnings;
    use Fcntl qw(O_WRONLY O_APPEND O_CREAT);
    my $base = $0;
    sub {
        my $env = shift;
        my $name = $env->{QUERY_STRING};
        if ($name ne 'first') {
            sysopen my $notes, "$base.notes", O_WRONLY | O_APPEND | O_CREAT or die "notes: $!";
            syswrite $notes, "$$ $env->{REQUEST_METHOD} $name\n";
        }
        if ($name =~ /hold/) {
            select undef, undef, undef, 0.002 until -e "$base.go";
        }
        [200, [], ["$name $$"]];
    };
"#;

/// Returns the notes of the application of `rig`: process, method, query.
pub(crate) fn noted(rig: &Rig) -> Vec<String> {
    let notes = std::fs::read_to_string(rig.source.file("app.psgi.notes")).unwrap_or_default();
    notes.lines().map(str::to_owned).collect()
}

pub(crate) fn times_noted(rig: &Rig, request: &str) -> usize {
    let notes = noted(rig);
    let ends = notes
        .iter()
        .filter(|note| note.split_once(' ').is_some_and(|(_, did)| did == request));
    ends.count()
}

pub(crate) async fn until_noted(rig: &Rig, request: &str) {
    while times_noted(rig, request) == 0 {
        yield_now().await;
    }
}

pub(crate) fn let_go(rig: &Rig) {
    rig.source.write("app.psgi.go", "");
}
