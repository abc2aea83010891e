//! Conversion of flags into a plan.

use std::fs::File;
use std::io::BufReader;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_load::plan::{
    End, Pace, Paths, Phase, Place, Plan, Protocol, RequestTemplate, Schedule, StreamPlan, Target,
    TlsOptions,
};

use crate::args::bench::{Also, BenchArgs, LoadArgs, RequestArgs, Stage};

/// Descriptors kept for other things than connections, with one thread.
const DESCRIPTORS_KEPT: u64 = 64;
/// Descriptors kept for each further thread: those of its event loop.
const DESCRIPTORS_OF_THREAD: u64 = 4;
/// Streams on each HTTP/2 connection of an open loop: the usual limit of servers.
const STREAMS: u32 = 100;
/// As many connections as the limit on descriptors allows.
const UNBOUNDED: u32 = u32::MAX;
/// The most requests whose times `-g` keeps.
const RECORDS_MAX: usize = 1_000_000;

/// Returns the plan that the command line asks for.
pub(crate) fn plan(args: &BenchArgs) -> anyhow::Result<Plan> {
    let mut main = main_stream(args)?;
    if args.output.gnuplot.is_some() {
        main.records_max = RECORDS_MAX;
    }
    let also = args.also.iter().map(|also| further(&main, also, args));
    let mut streams = also.collect::<anyhow::Result<Vec<_>>>()?;
    streams.insert(0, main);
    share_descriptors(&mut streams)?;
    Ok(Plan {
        streams,
        interval: args.output.interval,
    })
}

fn main_stream(args: &BenchArgs) -> anyhow::Result<StreamPlan> {
    let Some(file) = &args.url_file else {
        return stream(&args.urls, &args.load, &args.request);
    };
    let input = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let (first, paths) = Paths::read(BufReader::new(input))
        .with_context(|| format!("--url-file {}", file.display()))?;
    let mut stream = stream(&[first], &args.load, &args.request)?;
    stream.name = file.display().to_string();
    stream.variable_length |= paths.count() > 1;
    stream.paths = Some(Arc::new(paths));
    Ok(stream)
}

/// Shares the descriptors that are left among the open loops without a bound of their own, each of
/// which needs one for each of its threads.
fn share_descriptors(streams: &mut [StreamPlan]) -> anyhow::Result<()> {
    let threads: u64 = streams.iter().map(|stream| u64::from(stream.threads)).sum();
    let kept = DESCRIPTORS_KEPT + DESCRIPTORS_OF_THREAD * threads.saturating_sub(1);
    let most = connections_max(kept);
    let is_unbounded = |stream: &StreamPlan| stream.connections == UNBOUNDED;
    let bounded = streams.iter().filter(|stream| !is_unbounded(stream));
    let bounded: u64 = bounded.map(|stream| u64::from(stream.connections)).sum();
    let limit = most + kept;
    ensure!(
        most > 0,
        "a limit of {limit} descriptors leaves none for connections: \
         {kept} are kept for other things; raise it: ulimit -n"
    );
    ensure!(
        bounded <= most,
        "-c {bounded}: at most {most} connections are allowed by the limit of {limit} descriptors, \
         {kept} of which are kept for other things; raise it: ulimit -n"
    );
    let unbounded = streams.iter().filter(|stream| is_unbounded(stream)).count();
    let each = (most - bounded) / unbounded.max(1) as u64;
    for stream in streams.iter_mut().filter(|stream| is_unbounded(stream)) {
        ensure!(
            u64::from(stream.threads) <= each,
            "the limit of {limit} descriptors leaves {each} for the connections of an open loop \
             without -c, which needs one for each thread (--threads {}); raise it: ulimit -n",
            stream.threads
        );
        stream.connections = u32::try_from(each).unwrap_or(UNBOUNDED);
    }
    Ok(())
}

fn connections_max(kept: u64) -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(u64::from(UNBOUNDED), |limit| limit.saturating_sub(kept))
}

fn check_threads(stream: &StreamPlan) -> anyhow::Result<()> {
    ensure!(
        stream.threads <= stream.connections,
        "--threads {} needs at least as many connections (-c)",
        stream.threads
    );
    Ok(())
}

/// Returns the one stream that every contender of a comparison gets.
pub(crate) fn alone(
    urls: &[Target],
    load: &LoadArgs,
    request: &RequestArgs,
) -> anyhow::Result<StreamPlan> {
    let mut stream = stream(urls, load, request)?;
    share_descriptors(std::slice::from_mut(&mut stream))?;
    Ok(stream)
}

fn stream(urls: &[Target], load: &LoadArgs, request: &RequestArgs) -> anyhow::Result<StreamPlan> {
    let first = urls.first().context("a URL is missing")?;
    let mut stream = StreamPlan::new(first.clone());
    stream.protocol = protocol(urls, request.http2)?;
    ensure!(
        stream.protocol != Protocol::WebSocket || (!request.head && request.method.is_none()),
        "-i and -m are for http and https: a WebSocket is opened with GET"
    );
    stream.targets = urls.to_vec();
    stream.request = template(request, stream.protocol)?;
    stream.pace = pace(load).context("--rate, --ramp or --stage")?;
    stream.end = end(load);
    stream.keep_alive = load.keep_alive;
    stream.in_flight_max = in_flight(load, &stream)?;
    stream.connections = connections(load, stream.is_open_loop());
    stream.timeout = load.timeout;
    load.source.iter().try_for_each(|source| is_ours(*source))?;
    stream.sources.clone_from(&load.source);
    stream.window_bytes = load
        .window
        .map(|size| usize::try_from(size.as_u64()).unwrap_or(usize::MAX));
    stream.threads = load.threads;
    stream.spin = load.spin;
    stream.variable_length = request.variable_length || stream.targets.len() > 1;
    stream.tls = TlsOptions {
        insecure: request.insecure,
        authorities: request.ca.clone(),
        identity: request.certificate.clone(),
        without_sni: request.no_sni,
    };
    for target in &mut stream.targets {
        redirect(target, load, request)?;
    }
    check_threads(&stream)?;
    Ok(stream)
}

fn protocol(urls: &[Target], http2: bool) -> anyhow::Result<Protocol> {
    let first = urls.first().map(|url| url.scheme.protocol());
    let first = first.unwrap_or(Protocol::Http1);
    if urls.iter().any(|url| url.scheme.protocol() != first) {
        bail!("the URLs of a stream are all http, or all ws; --also takes another");
    }
    match (first, http2) {
        (Protocol::WebSocket, true) => bail!("--http2 is for http and https, not for WebSockets"),
        (_, true) => Ok(Protocol::Http2),
        (protocol, false) => Ok(protocol),
    }
}

fn template(args: &RequestArgs, protocol: Protocol) -> anyhow::Result<RequestTemplate> {
    let (file, default) = match (&args.post_file, &args.put_file) {
        (Some(file), _) => (Some(file), "POST"),
        (None, Some(file)) => (Some(file), "PUT"),
        (None, None) => (None, if args.head { "HEAD" } else { "GET" }),
    };
    let body = file.map_or_else(|| Ok(Vec::new()), |file| read(file))?;
    let mut fields = Vec::new();
    if file.is_some() && protocol != Protocol::WebSocket {
        let content_type = args.content_type.as_deref().unwrap_or("text/plain");
        fields.push(("Content-Type".to_owned(), content_type.to_owned()));
    }
    if !args.cookie.is_empty() {
        fields.push(("Cookie".to_owned(), args.cookie.join("; ")));
    }
    if let Some(auth) = &args.auth {
        fields.push(("Authorization".to_owned(), basic(auth)));
    }
    if let Some(auth) = &args.proxy_auth {
        fields.push(("Proxy-Authorization".to_owned(), basic(auth)));
    }
    fields.retain(|(name, _)| {
        !args
            .header
            .iter()
            .any(|(given, _)| given.eq_ignore_ascii_case(name))
    });
    fields.extend(args.header.iter().cloned());
    Ok(RequestTemplate {
        method: args.method.clone().unwrap_or_else(|| default.to_owned()),
        fields,
        body,
        absolute_form: args.proxy.is_some(),
    })
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Returns the value of basic authentication (RFC 7617).
fn basic(auth: &str) -> String {
    format!("Basic {}", STANDARD.encode(auth))
}

fn pace(load: &LoadArgs) -> anyhow::Result<Pace> {
    let duration = load.duration.unwrap_or_default();
    let phases = if let Some(rate) = load.rate {
        vec![Phase {
            from: rate,
            to: rate,
            duration,
        }]
    } else if let Some(ramp) = load.ramp {
        vec![Phase {
            from: ramp.from,
            to: ramp.to,
            duration,
        }]
    } else {
        load.stage.iter().map(phase).collect()
    };
    if phases.is_empty() {
        return Ok(Pace::Closed);
    }
    Ok(Pace::Open(Schedule::new(phases)?))
}

fn phase(stage: &Stage) -> Phase {
    Phase {
        from: stage.rate,
        to: stage.rate,
        duration: stage.duration,
    }
}

fn end(load: &LoadArgs) -> End {
    let requests = load.requests.map(std::num::NonZeroU64::get);
    let is_unbounded = load.duration.is_none() && load.stage.is_empty();
    End {
        requests: requests.or(is_unbounded.then_some(1)),
        duration: load.duration,
    }
}

fn in_flight(load: &LoadArgs, stream: &StreamPlan) -> anyhow::Result<u32> {
    let pipelines = load.pipeline.is_some_and(|number| number > 1);
    ensure!(
        !(pipelines && stream.protocol == Protocol::WebSocket),
        "a WebSocket carries one message at a time here; --pipeline is for HTTP"
    );
    ensure!(
        !(pipelines && stream.protocol == Protocol::Http1 && stream.is_open_loop()),
        "--pipeline needs a closed loop: an open loop sends on free connections"
    );
    ensure!(
        !pipelines || load.keep_alive,
        "--pipeline needs -k: without it a connection carries one request"
    );
    Ok(load.pipeline.unwrap_or(in_flight_default(stream)))
}

fn in_flight_default(stream: &StreamPlan) -> u32 {
    match stream.protocol {
        Protocol::Http2 if stream.is_open_loop() => STREAMS,
        _ => 1,
    }
}

/// Returns the requests that each connection of a further stream carries at once: as many as those
/// of the main stream, where it can.
fn in_flight_further(load: &LoadArgs, stream: &StreamPlan) -> u32 {
    let can_pipeline = match stream.protocol {
        Protocol::Http1 => stream.keep_alive && !stream.is_open_loop(),
        Protocol::Http2 => stream.keep_alive,
        Protocol::WebSocket => false,
    };
    let asked = load.pipeline.filter(|_| can_pipeline);
    asked.unwrap_or(in_flight_default(stream))
}

fn connections(load: &LoadArgs, is_open_loop: bool) -> u32 {
    match load.connections {
        Some(number) => number.get(),
        None if is_open_loop => UNBOUNDED,
        None => load.threads,
    }
}

/// Sets where requests to a target go, if not to the host of its URL.
pub(crate) fn redirect(
    target: &mut Target,
    load: &LoadArgs,
    request: &RequestArgs,
) -> anyhow::Result<()> {
    if let Some(proxy) = &request.proxy {
        ensure!(
            !target.scheme.is_tls() && target.scheme.protocol() != Protocol::WebSocket,
            "{target}: -X sends http only"
        );
        target.place = proxy.clone();
    }
    if let Some(path) = &load.unix_socket {
        target.place = Place::Unix(path.clone());
    }
    Ok(())
}

fn is_ours(source: IpAddr) -> anyhow::Result<()> {
    let bound = UdpSocket::bind((source, 0)).map(drop);
    bound.with_context(|| format!("--source {source}: it must be an address of this machine"))
}

/// Returns a further stream: as the main one, except for its own settings.
fn further(main: &StreamPlan, also: &Also, args: &BenchArgs) -> anyhow::Result<StreamPlan> {
    let mut stream = main.clone();
    stream.targets.clone_from(&also.targets);
    stream.paths = None;
    for target in &mut stream.targets {
        redirect(target, &args.load, &args.request)?;
    }
    let name = also.name.clone();
    stream.name = name.unwrap_or_else(|| also.targets[0].to_string());
    stream.protocol = match main.protocol {
        Protocol::WebSocket => protocol(&also.targets, false)?,
        Protocol::Http1 | Protocol::Http2 => protocol(&also.targets, args.request.http2)?,
    };
    stream.variable_length = args.request.variable_length || also.targets.len() > 1;
    stream.records_max = 0;
    pace_further(&mut stream, main, also)?;
    stream.connections = match also.connections {
        Some(number) => number,
        None if stream.is_open_loop() => UNBOUNDED,
        None => 1,
    };
    stream.threads = main.threads.min(stream.connections);
    stream.keep_alive = also.keep_alive.unwrap_or(main.keep_alive);
    stream.in_flight_max = in_flight_further(&args.load, &stream);
    if let Some(method) = &also.method {
        stream.request.method.clone_from(method);
    }
    Ok(stream)
}

/// Lets a further stream last as long as the main stream sends.
fn pace_further(stream: &mut StreamPlan, main: &StreamPlan, also: &Also) -> anyhow::Result<()> {
    let duration = main
        .duration()
        .context("--also needs --duration, which says how long it runs")?;
    let phase = |from, to| vec![Phase { from, to, duration }];
    stream.pace = match (also.rate, also.ramp) {
        (Some(rate), _) => Pace::Open(Schedule::new(phase(rate, rate))?),
        (None, Some(ramp)) => Pace::Open(Schedule::new(phase(ramp.from, ramp.to))?),
        (None, None) => Pace::Closed,
    };
    stream.end = End {
        requests: None,
        duration: Some(duration),
    };
    Ok(())
}
