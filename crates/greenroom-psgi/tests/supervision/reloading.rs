use crate::rig::{Folder, GOOD, are_ready, eventually, is_running, parent, serving, until};

#[tokio::test]
async fn a_reload_brings_up_new_workers_before_the_old_ones_go() {
    let folder = Folder::with(GOOD);
    let gateway = folder.builder().workers(2).start().await;
    let gateway = gateway.expect("the application can be loaded");
    let before = serving(&until(&gateway, |status| are_ready(status, 2)).await);
    let zygote = parent(before[0]);
    let reloading = gateway.clone();
    let reload = tokio::spawn(async move { reloading.reload().await });
    let status = until(&gateway, |status| {
        assert!(serving(status).len() >= 2, "{status:#?}");
        status.generation == 2 && are_ready(status, 2)
    })
    .await;
    let reload = reload.await.expect("it does not panic");
    assert_eq!(reload.expect("the application can be loaded"), 2);
    assert!(serving(&status).iter().all(|pid| !before.contains(pid)));
    assert_eq!((status.reloads, status.reloads_failed), (1, 0));
    for pid in [before[0], before[1], zygote] {
        eventually("the old one is gone", || !is_running(pid)).await;
    }
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_reload_that_fails_leaves_what_served() {
    for preload in [false, true] {
        let folder = Folder::with(GOOD);
        let gateway = folder.builder().preload(preload).start().await;
        let gateway = gateway.expect("the application can be loaded");
        let before = serving(&gateway.status());
        folder.write_application("sub { [200, [], ['x'] }");
        let error = gateway.reload().await.expect_err("it cannot be loaded");
        assert!(error.to_string().contains("syntax error at "), "{error}");
        let status = until(&gateway, |status| are_ready(status, 1)).await;
        assert_eq!(serving(&status), before);
        assert_eq!((status.generation, status.reloads_failed), (1, 1));

        folder.write_application(GOOD);
        let reloaded = gateway.reload().await;
        assert_eq!(reloaded.expect("the application can be loaded"), 2);
        let status = until(&gateway, |status| are_ready(status, 1)).await;
        assert_ne!(serving(&status), before);
        gateway.shutdown().await;
    }
}

#[tokio::test]
async fn reloads_at_once_become_at_most_two() {
    let folder = Folder::with(GOOD);
    let gateway = folder.start().await;
    let reloads: Vec<_> = (0..5)
        .map(|_| {
            let gateway = gateway.clone();
            tokio::spawn(async move { gateway.reload().await })
        })
        .collect();
    for reload in reloads {
        let reload = reload.await.expect("it does not panic");
        reload.expect("the application can be loaded");
    }
    let status = until(&gateway, |status| are_ready(status, 1)).await;
    assert!(matches!(status.reloads, 1..=2), "{status:#?}");
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_change_of_a_module_reloads() {
    let folder = Folder::with(&format!("use Shop; {GOOD}"));
    folder.write("lib/Shop.pm", "package Shop; 1;");
    let builder = folder.builder().include(folder.path("lib"));
    let gateway = builder.reload_on_change(true).start().await;
    let gateway = gateway.expect("the application can be loaded");
    let before = serving(&gateway.status());
    folder.write("lib/Shop.pm", "package Shop; our $Changed = 1; 1;");
    let status = until(&gateway, |status| {
        status.reloads >= 1 && are_ready(status, 1)
    })
    .await;
    assert_ne!(serving(&status), before);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_ends_a_reload_that_is_under_way() {
    for preload in [false, true] {
        let folder = Folder::with(GOOD);
        let gateway = folder.builder().preload(preload).start().await;
        let gateway = gateway.expect("the application can be loaded");
        folder.write_application(
            "open my $out, '>', qq{$folder/loading}; print {$out} $$; close $out; sleep 1000;",
        );
        let reloading = gateway.clone();
        let reload = tokio::spawn(async move { reloading.reload().await });
        eventually("it loads", || !folder.read("loading").is_empty()).await;
        gateway.shutdown().await;
        let error = reload
            .await
            .expect("it does not panic")
            .expect_err("it was given up");
        assert_eq!(error.to_string(), "the gateway is shut down");
        let pid = folder.read("loading").parse().expect("it is a number");
        eventually("the process is gone", || !is_running(pid)).await;
    }
}
