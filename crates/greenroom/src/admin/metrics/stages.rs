//! The state of the stages of this process at the moment of the question.

use std::time::Duration;

use super::text::Text;

pub(super) fn add(text: &mut Text) {
    let stages = greenroom_stage::status().stages;
    text.begin("greenroom_stage_queue_length");
    for stage in &stages {
        let labels = [("stage", stage.name.as_str())];
        text.value("greenroom_stage_queue_length", &labels, stage.queue_len);
    }
    text.begin("greenroom_stage_predicted_wait_seconds");
    for stage in &stages {
        let labels = [("stage", stage.name.as_str())];
        let wait = Duration::from_micros(stage.predicted_wait_micros).as_secs_f64();
        text.value("greenroom_stage_predicted_wait_seconds", &labels, wait);
    }
    text.begin("greenroom_stage_threads");
    for stage in &stages {
        let threads = stage.threads;
        let computing = threads.working.saturating_sub(threads.blocked);
        for (state, count) in [
            ("computing", computing),
            ("blocked", threads.blocked),
            ("idle", threads.idle),
        ] {
            let labels = [("stage", stage.name.as_str()), ("state", state)];
            text.value("greenroom_stage_threads", &labels, count);
        }
    }
}
