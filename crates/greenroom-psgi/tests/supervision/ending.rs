use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;

use crate::rig::{Folder, GOOD, are_ready, eventually, is_running, parent, serving, signal, until};

/// Writes down the path of our Perl files, and so of the private directory.
const TELLS_DIRECTORY: &str = "open my $out, '>', qq{$folder/directory}; \
     print {$out} $INC{'Greenroom/Zygote.pm'}; close $out;";

fn private_directory(folder: &Folder) -> PathBuf {
    let module = PathBuf::from(folder.read("directory"));
    let directory = module.ancestors().nth(3);
    directory
        .expect("it is in lib/Greenroom of the directory")
        .to_path_buf()
}

#[tokio::test]
async fn a_killed_worker_is_replaced_and_the_other_stays() {
    let folder = Folder::with(GOOD);
    let gateway = folder.builder().workers(2).start().await;
    let gateway = gateway.expect("the application can be loaded");
    let before = serving(&until(&gateway, |status| are_ready(status, 2)).await);
    signal(before[0], Signal::KILL);
    let status = until(&gateway, |status| {
        status.restarts == 1 && are_ready(status, 2)
    })
    .await;
    let after = serving(&status);
    assert_eq!(after[0], before[1]);
    assert!(!before.contains(&after[1]));
    assert_eq!(status.workers[1].key, 3, "keys are not used twice");
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_worker_that_cannot_be_started_again_is_tried_until_it_can() {
    let folder = Folder::with(&format!(
        "die qq{{doomed\\n}} if -e qq{{$folder/doomed}}; {GOOD}"
    ));
    let gateway = folder.start().await;
    folder.write("doomed", "");
    signal(serving(&gateway.status())[0], Signal::KILL);
    let status = until(&gateway, |status| status.restarts >= 4).await;
    assert!(serving(&status).is_empty());
    fs::remove_file(folder.path("doomed")).expect("it is there");
    until(&gateway, |status| are_ready(status, 1)).await;
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_lost_zygote_is_replaced_while_its_workers_serve_on() {
    let folder = Folder::with(GOOD);
    let gateway = folder.start().await;
    let before = serving(&gateway.status());
    signal(parent(before[0]), Signal::KILL);
    let status = until(&gateway, |status| {
        assert!(!serving(status).is_empty(), "somebody serves all the time");
        status.generation == 2 && are_ready(status, 1)
    })
    .await;
    assert_ne!(serving(&status), before);
    assert_eq!((status.restarts, status.reloads), (1, 0));
    eventually("the old worker is gone", || !is_running(before[0])).await;
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_leaves_no_process_and_no_directory() {
    let folder = Folder::with(&format!("{TELLS_DIRECTORY} {GOOD}"));
    let gateway = folder.builder().workers(2).start().await;
    let gateway = gateway.expect("the application can be loaded");
    let workers = serving(&until(&gateway, |status| are_ready(status, 2)).await);
    let zygote = parent(workers[0]);
    let directory = private_directory(&folder);
    assert!(directory.join("worker-1.sock").exists());
    let report = gateway.shutdown().await;
    assert!(report.killed.is_empty());
    assert!(!directory.exists());
    for pid in [workers[0], workers[1], zygote] {
        assert!(!is_running(pid));
    }
    gateway.closed().await;
    assert!(gateway.status().workers.is_empty());
    assert!(gateway.reload().await.is_err());
    assert!(gateway.shutdown().await.killed.is_empty());
}

#[tokio::test]
async fn a_worker_that_does_not_end_in_time_is_killed_and_named() {
    let folder = Folder::with(GOOD);
    let deadline = Duration::from_millis(100);
    let gateway = folder.builder().drain_deadline(deadline).start().await;
    let gateway = gateway.expect("the application can be loaded");
    let pid = serving(&gateway.status())[0];
    signal(pid, Signal::STOP);
    let report = gateway.shutdown().await;
    let killed: Vec<_> = report.killed.iter().map(|worker| worker.pid).collect();
    assert_eq!(killed, [pid]);
    eventually("it is gone", || !is_running(pid)).await;
}

#[tokio::test]
async fn a_gateway_that_is_dropped_leaves_no_process_and_no_directory() {
    let folder = Folder::with(&format!("{TELLS_DIRECTORY} {GOOD}"));
    let gateway = folder.start().await;
    let worker = serving(&gateway.status())[0];
    let (zygote, directory) = (parent(worker), private_directory(&folder));
    drop(gateway);
    eventually("the worker is gone", || !is_running(worker)).await;
    eventually("the zygote is gone", || !is_running(zygote)).await;
    eventually("the directory is gone", || !directory.exists()).await;
}
