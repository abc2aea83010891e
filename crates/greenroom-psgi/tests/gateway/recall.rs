//! A slow request never holds up a fast one, known or not.

use std::path::Path;

use futures_util::future::join_all;

use crate::rig::{Rig, text, within};

/// `/hold` blocks its worker until the file `go` is there.
const APP: &str = r#"
    my $go = "$0.go";
    my %answers = (
        '/short' => sub { [200, [], ['short']] },
        '/hold'  => sub { select undef, undef, undef, 0.01 until -e $go; [200, [], ['held']] },
    );
    sub { my $env = shift; $answers{$env->{PATH_INFO}}->($env) };
"#;

#[tokio::test]
async fn those_behind_a_long_run_go_to_another_worker() {
    within(async {
        let rig = Rig::with(APP, |builder| builder.workers(2)).await;
        while rig.gateway.status().queue.short_routes == 0 {
            assert_eq!(text(&rig.get("/short").await), "short");
        }
        let held = rig.get("/hold");
        let short = async {
            let answers = join_all((0..100).map(|_| rig.get("/short"))).await;
            assert!(answers.iter().all(|answer| text(answer) == "short"));
            let go = format!("{}.go", rig.source.app().display());
            std::fs::write(Path::new(&go), "").unwrap();
        };
        let (held, ()) = tokio::join!(held, short);
        assert_eq!(text(&held), "held");
        rig.end().await;
    })
    .await;
}
