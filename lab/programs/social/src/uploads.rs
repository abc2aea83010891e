//! The timeline while large pictures are uploaded.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use greenroom_load::plan::{Pace, Plan, Schedule, StreamPlan};
use greenroom_load::run::{Stop, run};
use image::RgbImage;
use image::codecs::jpeg::JpegEncoder;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::api::{Client, Site};

/// Time of reading the timeline before the uploads begin.
const HEAD_START: Duration = Duration::from_millis(500);
/// Longest load: it ends with the uploads.
const LOAD_MAX: Duration = Duration::from_mins(2);
const CONNECTIONS: u32 = 1_000;
const INTERVAL: Duration = Duration::from_secs(1);
/// Pixels of a side: 12 megapixels, as telephones take them.
const WIDTH: u32 = 4_000;
const HEIGHT: u32 = 3_000;
/// JPEG quality, up to 100.
const JPEG_QUALITY: u8 = 90;
/// Largest deviation of a pixel from the gradient below it: with 24 the file has about 5 MB.
const NOISE: u32 = 24;

#[derive(Debug, Args)]
pub(crate) struct Options {
    file: PathBuf,
    #[arg(long)]
    uploads: usize,
    /// Reads of the timeline a second
    #[arg(long)]
    rate: f64,
}

impl Options {
    /// Reads in an open loop, from a little before the uploads to the response to the last one.
    pub(crate) async fn run(&self, client: &Client) -> anyhow::Result<Value> {
        let site = Site::read(&self.file)?;
        let jpeg = Bytes::from(jpeg(WIDTH, HEIGHT)?);
        let url = format!("{}/api/timeline", client.origin);
        let mut reads = StreamPlan::new(url.parse()?);
        reads.keep_alive = true;
        reads.variable_length = true;
        reads.connections = CONNECTIONS;
        reads.pace = Pace::Open(Schedule::constant(self.rate, LOAD_MAX)?);
        let plan = Plan {
            streams: vec![reads],
            interval: INTERVAL,
        };
        let stop = Stop::default();
        let reading = thread::spawn({
            let stop = stop.clone();
            move || run(&plan, None, &stop, &mut |_| ())
        });
        sleep(HEAD_START).await;
        let begin = Instant::now();
        let mut uploads = JoinSet::new();
        for _ in 0..self.uploads {
            let (client, site, jpeg) = (client.clone(), site.clone(), jpeg.clone());
            uploads.spawn(async move { site.upload_large(&client, &jpeg).await });
        }
        let ended = uploads.join_all().await;
        let seconds = begin.elapsed().as_secs_f64();
        stop.stop();
        let read = reading.join().map_err(|_| anyhow::anyhow!("a panic"))??;
        let failed = ended.iter().filter_map(|upload| upload.as_ref().err());
        let failed = failed.inspect(|error| eprintln!("{error:#}")).count();
        // What was under way at the end does not count.
        let tally = &read.streams.first().context("a stream")?.tally;
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        Ok(json!({
            "ok_p50_ms": millis(tally.good.quantile(0.5)),
            "ok_p99_ms": millis(tally.good.quantile(0.99)),
            "ok_max_ms": millis(tally.good.max()),
            "late_p99_ms": millis(tally.lag.quantile(0.99)),
            "rejected": tally.bad.count(),
            "failed": tally.failures.total(),
            "uploads_failed": failed,
            "uploads_seconds": seconds,
        }))
    }
}

/// Returns a JPEG that is as hard to decode as a photograph; the same each time.
fn jpeg(width: u32, height: u32) -> anyhow::Result<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(1);
    let picture = RgbImage::from_fn(width, height, |x, y| {
        let (right, down) = (x * 200 / width, y * 200 / height);
        let channels = [right, down, u32::midpoint(right, down)];
        let noisy = channels.map(|channel| channel + random.u32(..NOISE));
        image::Rgb(noisy.map(|channel| u8::try_from(channel).unwrap_or(u8::MAX)))
    });
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY)
        .encode_image(&picture)
        .context("a JPEG")?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_picture_has_as_many_bytes_as_a_photograph() {
        // A hundredth of the pixels, and so of about 5 MB.
        let bytes = jpeg(WIDTH / 10, HEIGHT / 10).expect("a JPEG").len();
        assert!((40_000..65_000).contains(&bytes), "{bytes}");
    }
}
