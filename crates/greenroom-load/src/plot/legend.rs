//! The legend of lines and marks, above the picture and so never over the data.

use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{Line, Marks, Stroke, UNITS};
use super::drawing::{Area, Drawn, FONT, MARGIN, WIDTH, font, text_width, units};
use super::look::{Dash, INK, Shape};
use super::text::shortened;

/// The most characters of a series' name.
const NAME_CHARACTERS_MAX: usize = 64;
/// Height of a row; lengths here are in units.
const ROW: u32 = 21 * UNITS;
const SAMPLE: u32 = 34 * UNITS;
const SAMPLE_GAP: u32 = 7 * UNITS;
const ENTRY_GAP: u32 = 20 * UNITS;

/// Groups of entries; each group begins a row.
#[derive(Debug, Default)]
pub(super) struct Legend {
    rows: Vec<Vec<Placed>>,
}

/// A line or mark, and its meaning.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) text: String,
    pub(super) colour: RGBColor,
    pub(super) dash: Option<Dash>,
    pub(super) shape: Option<Shape>,
}

#[derive(Debug)]
struct Placed {
    left: u32,
    entry: Entry,
}

impl Entry {
    /// Creates a text without a sample.
    pub(super) fn heading(name: &str) -> Self {
        Self {
            text: shortened(name, NAME_CHARACTERS_MAX),
            colour: INK.light,
            dash: None,
            shape: None,
        }
    }

    fn width(&self) -> u32 {
        self.indent() + text_width(&self.text)
    }

    fn indent(&self) -> u32 {
        if self.dash.is_some() || self.shape.is_some() {
            SAMPLE + SAMPLE_GAP
        } else {
            0
        }
    }

    fn draw(&self, area: &Area<'_>, left: i32, middle: i32) -> Drawn {
        if let Some(dash) = self.dash {
            area.draw(&Line {
                points: vec![(left, middle), (left + units(SAMPLE), middle)],
                stroke: Stroke {
                    colour: self.colour,
                    dash,
                },
                title: self.text.clone(),
            })?;
        }
        if let Some(shape) = self.shape {
            area.draw(&Marks {
                points: vec![(left + units(SAMPLE / 2), middle)],
                shape,
                colour: self.colour,
            })?;
        }
        let style = font(FONT, &INK.light, HPos::Left, VPos::Center);
        area.draw_text(&self.text, &style, (left + units(self.indent()), middle))
    }
}

impl Legend {
    /// Breaks groups into rows.
    pub(super) fn new(groups: Vec<Vec<Entry>>) -> Self {
        Self {
            rows: groups.into_iter().flat_map(rows).collect(),
        }
    }

    pub(super) fn height(&self) -> u32 {
        self.rows.iter().map(|_| ROW).sum()
    }

    pub(super) fn draw(&self, area: &Area<'_>) -> Drawn {
        for (number, row) in (0..).zip(&self.rows) {
            for placed in row {
                let middle = units(number * ROW + ROW / 2);
                placed.entry.draw(area, units(placed.left), middle)?;
            }
        }
        Ok(())
    }
}

fn rows(group: Vec<Entry>) -> Vec<Vec<Placed>> {
    let mut rows = vec![Vec::new()];
    let mut left = 0;
    for entry in group {
        let width = entry.width();
        if left > 0 && left + width > WIDTH - 2 * MARGIN {
            rows.push(Vec::new());
            left = 0;
        }
        if let Some(row) = rows.last_mut() {
            row.push(Placed { left, entry });
        }
        left += width + ENTRY_GAP;
    }
    rows
}
