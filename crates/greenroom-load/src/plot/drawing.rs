//! The lengths and styles that pictures and legends share.

use std::convert::Infallible;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{RGBColor, TextStyle};

use super::canvas::{Canvas, UNITS};

/// Width of a picture; all lengths here are in units.
pub(super) const WIDTH: u32 = 720 * UNITS;
pub(super) const MARGIN: u32 = 16 * UNITS;
pub(super) const FONT: u32 = 13 * UNITS;

pub(super) type Area<'a> = DrawingArea<Canvas<'a>, Shift>;
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<Infallible>>;

pub(super) fn font(size: u32, colour: &RGBColor, across: HPos, along: VPos) -> TextStyle<'_> {
    TextStyle::from(("sans-serif", size))
        .color(colour)
        .pos(Pos::new(across, along))
}

/// Converts a length to a coordinate.
pub(super) fn units(length: u32) -> i32 {
    length.try_into().unwrap_or(i32::MAX)
}

/// Estimates the width of a text: fonts differ, so a little more than the usual ones take.
pub(super) fn text_width(text: &str) -> u32 {
    let percent = |character: char| match character {
        'f' | 'i' | 'j' | 'l' | 'r' | 't' | ' '..='/' | ':' | ';' | '|' => 34,
        'A'..='Z' | 'm' | 'w' => 74,
        ascii if ascii.is_ascii() => 57,
        _ => 100,
    };
    let em = text.chars().map(percent).sum::<u32>();
    em * FONT / 100
}
