//! Tests with real Perl processes. They supply the pool's snapshots themselves, so that none has to
//! wait for an application that hangs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use super::channel::{self, Frames};
use super::generation::{self, Origin};
use super::process::Process;
use super::shared::Shared;
use super::{Parts, monitor};
use crate::builder::Builder;
use crate::gateway::Gateway;
use crate::pool::WorkerLoad;
use crate::settings::Settings;
use crate::status::{GatewayStatus, WorkerState};
use crate::{frame, perl};

/// The time-out of a condition, far longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

fn application() -> TempDir {
    let folder = tempfile::tempdir().expect("the temporary directory can be written");
    let text = "sub { [200, [], ['good']] }";
    std::fs::write(folder.path().join("app.psgi"), text).expect("it can be written");
    folder
}

fn settings(folder: &TempDir, change: fn(Builder) -> Builder) -> Arc<Settings> {
    let builder = Gateway::builder(folder.path().join("app.psgi")).workers(1);
    Arc::new(change(builder).settings)
}

/// Starts a gateway, and also returns the state that its supervisor's tasks share.
async fn start(settings: Arc<Settings>) -> (Gateway, Arc<Shared>) {
    let directory = perl::private_directory().expect("the temporary directory can be written");
    let shared = Arc::new(Shared::new(settings, directory.path().to_path_buf()));
    let parts = Parts {
        shared: Arc::clone(&shared),
        origin: Origin::Started,
        directory: Some(directory),
        files: None,
    };
    let started = parts.start().await.expect("the application can be loaded");
    (Gateway::new(started.shared, started.commands), shared)
}

async fn until(gateway: &Gateway, is_so: impl Fn(&GatewayStatus) -> bool) -> GatewayStatus {
    let wait = async {
        loop {
            let status = gateway.status();
            if is_so(&status) {
                return status;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    let status = timeout(PATIENCE, wait).await;
    status.unwrap_or_else(|_| panic!("it stays at {:#?}", gateway.status()))
}

fn is_ready(status: &GatewayStatus) -> bool {
    matches!(&status.workers[..], [worker] if worker.state == WorkerState::Ready)
}

fn load(key: u32) -> WorkerLoad {
    WorkerLoad {
        key,
        running: 1,
        waiting: 0,
        served: 0,
        draining: false,
        condemned: false,
        lost: None,
        stuck: None,
    }
}

#[tokio::test]
async fn a_worker_that_hangs_beyond_the_timeout_is_killed_and_replaced() {
    let folder = application();
    let settings = settings(&folder, |builder| builder.timeout(Duration::from_secs(5)));
    let (gateway, shared) = start(settings).await;
    let before = gateway.status().workers[0].clone();
    let stuck_for = |seconds| WorkerLoad {
        stuck: Some(Duration::from_secs(seconds)),
        ..load(before.key)
    };
    monitor::look(&shared, &[stuck_for(5)]);
    assert_eq!(gateway.status().hung, 0);
    // Twice, as it takes a moment to be gone.
    monitor::look(&shared, &[stuck_for(6)]);
    monitor::look(&shared, &[stuck_for(7)]);
    let status = until(&gateway, |status| is_ready(status) && status.restarts == 1).await;
    assert_eq!(status.hung, 1);
    assert_ne!(status.workers[0].pid, before.pid);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_worker_that_closed_a_connection_is_killed_if_it_does_not_end() {
    let folder = application();
    let (gateway, shared) = start(settings(&folder, |builder| builder)).await;
    let before = gateway.status().workers[0].clone();
    let lost_for = |seconds| WorkerLoad {
        lost: Some(Duration::from_secs(seconds)),
        ..load(before.key)
    };
    monitor::look(&shared, &[lost_for(9)]);
    assert_eq!(gateway.status().workers[0].state, WorkerState::Ready);
    monitor::look(&shared, &[lost_for(11)]);
    let status = until(&gateway, |status| is_ready(status) && status.restarts == 1).await;
    assert_ne!(status.workers[0].pid, before.pid);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_worker_that_has_served_enough_is_replaced_by_one_that_is_ready_first() {
    let folder = application();
    let settings = settings(&folder, |builder| builder.max_requests(100));
    let (gateway, shared) = start(settings).await;
    let before = gateway.status().workers[0].clone();
    let served = |served| WorkerLoad {
        served,
        ..load(before.key)
    };
    monitor::look(&shared, &[served(89)]);
    assert_eq!(gateway.status().workers[0].state, WorkerState::Ready);
    monitor::look(&shared, &[served(100)]);
    monitor::look(&shared, &[served(101)]);
    assert_eq!(gateway.status().workers[0].state, WorkerState::Retiring);
    let status = until(&gateway, |status| {
        let serving = |state| matches!(state, WorkerState::Ready | WorkerState::Retiring);
        assert!(status.workers.iter().any(|worker| serving(worker.state)));
        is_ready(status) && status.workers[0].pid != before.pid
    })
    .await;
    assert_eq!((status.retired, status.restarts), (1, 0));
    gateway.shutdown().await;
}

/// Sends one request to a worker and checks that it responds.
async fn ask(socket: &Path) {
    let mut link = UnixStream::connect(socket).await.expect("a worker listens");
    let mut request = channel::frame(b'L', None);
    let environment = b"REQUEST_METHOD\0GET\0PATH_INFO\0/\0SERVER_PROTOCOL\0HTTP/1.1";
    frame::append(&mut request, b'R', |out| {
        out.extend_from_slice(&1_u32.to_be_bytes());
        out.push(0);
        let length = u32::try_from(environment.len()).expect("it is short");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(environment);
    });
    link.write_all(&request).await.expect("the worker reads");
    let response = Frames::new(link).next().await.expect("it is a frame");
    assert_eq!(response.expect("it responds").kind, b'r');
}

#[tokio::test]
async fn a_worker_whose_application_wants_its_end_is_replaced() {
    let folder = application();
    let text = "sub { $_[0]{'psgix.harakiri.commit'} = 1; [200, [], ['bye']] }";
    std::fs::write(folder.path().join("app.psgi"), text).expect("it can be written");
    let (gateway, shared) = start(settings(&folder, |builder| builder)).await;
    let before = gateway.status().workers[0].clone();
    ask(&shared.socket(before.key)).await;
    let status = until(&gateway, |status| {
        is_ready(status) && status.workers[0].pid != before.pid
    })
    .await;
    assert_eq!((status.retired, status.restarts), (1, 0));
    gateway.shutdown().await;
}

#[tokio::test]
async fn an_attached_gateway_forks_from_the_process_that_it_was_given() {
    let folder = application();
    let settings = settings(&folder, |builder| builder.preload(true));
    let directory = perl::private_directory().expect("the temporary directory can be written");
    let (process, channel) =
        Process::start(&settings, directory.path()).expect("perl can be started");
    let zygote = generation::attach(&settings, channel).await;
    let zygote = zygote.expect("the application can be loaded");
    let shared = Arc::new(Shared::new(settings, directory.path().to_path_buf()));
    let parts = Parts {
        shared,
        origin: Origin::Attached(zygote),
        directory: None,
        files: None,
    };
    let started = parts.start().await.expect("a worker can be forked");
    let gateway = Gateway::new(started.shared, started.commands);
    let before = gateway.status().workers[0].pid;
    assert_eq!(gateway.reload().await.expect("it can be forked again"), 2);
    let status = until(&gateway, is_ready).await;
    assert_ne!(status.workers[0].pid, before);

    process.kill();
    let closed = timeout(PATIENCE, gateway.closed()).await;
    closed.expect("it is told that the process has ended");
    gateway
        .reload()
        .await
        .expect_err("there is nothing to fork from");
    gateway.shutdown().await;
    process.end().await;
    assert!(directory.path().is_dir(), "it is not ours to remove");
}
