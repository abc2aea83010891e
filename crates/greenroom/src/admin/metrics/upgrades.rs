//! Upgrades, whose count goes from version to version: whoever scrapes the admin address sees one
//! counter, though each process asks it of another.

use greenroom_server::{UpgradeResult, UpgradeStatus};

use super::text::Text;

const TOTAL: &str = "greenroom_upgrades_total";

pub(super) fn add(text: &mut Text) {
    let Some(status) = UpgradeStatus::of_process() else {
        return;
    };
    text.begin(TOTAL);
    for result in UpgradeResult::ALL {
        text.value(TOTAL, &[("outcome", result.name())], status.count(result));
    }
}
