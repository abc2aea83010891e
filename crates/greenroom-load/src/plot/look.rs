//! Colours, dashes and marks, which tell curves apart.

use plotters::style::RGBColor;

/// A colour on white, and its counterpart on a dark page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    pub(super) light: RGBColor,
    pub(super) dark: RGBColor,
}

const fn paint(light: (u8, u8, u8), dark: (u8, u8, u8)) -> Paint {
    Paint {
        light: RGBColor(light.0, light.1, light.2),
        dark: RGBColor(dark.0, dark.1, dark.2),
    }
}

pub(super) const PAPER: Paint = paint((0xff, 0xff, 0xff), (0x18, 0x20, 0x1c));
pub(super) const INK: Paint = paint((0x1a, 0x24, 0x1e), (0xe7, 0xee, 0xe9));
pub(super) const SOFT: Paint = paint((0x53, 0x61, 0x59), (0x9f, 0xb0, 0xa6));
pub(super) const GRID: Paint = paint((0xd3, 0xda, 0xd5), (0x3a, 0x48, 0x40));
pub(super) const FINE_GRID: Paint = paint((0xec, 0xf0, 0xed), (0x25, 0x2f, 0x2a));

/// The colours of Okabe and Ito, which people with any colour vision tell apart, without the
/// yellow, which is hard to see on white, and a grey. Those that are strong on white come first.
pub(super) const SERIES: [Paint; 8] = [
    paint((0x00, 0x72, 0xb2), (0x4f, 0xb0, 0xea)),
    paint((0xd5, 0x5e, 0x00), (0xff, 0x8a, 0x3c)),
    paint((0x00, 0x9e, 0x73), (0x2f, 0xc9, 0x9b)),
    paint((0xcc, 0x79, 0xa7), (0xe3, 0x9b, 0xc3)),
    paint((0x00, 0x00, 0x00), (0xff, 0xff, 0xfe)),
    paint((0xe6, 0x9f, 0x00), (0xf2, 0xb8, 0x33)),
    paint((0x56, 0xb4, 0xe9), (0x9c, 0xd6, 0xf7)),
    paint((0x8c, 0x8c, 0x8c), (0xb4, 0xb4, 0xb4)),
];

/// Returns all colours, for a style sheet that turns a figure dark.
pub(super) fn paints() -> impl Iterator<Item = Paint> {
    [PAPER, INK, SOFT, GRID, FINE_GRID]
        .into_iter()
        .chain(SERIES)
}

/// Formats a colour for SVG and CSS.
pub(super) fn hex(colour: RGBColor) -> String {
    format!("#{:02x}{:02x}{:02x}", colour.0, colour.1, colour.2)
}

/// The dash pattern of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dash {
    Solid,
    Long,
    Mixed,
    Short,
}

impl Dash {
    /// Returns the lengths of strokes and gaps, in the canvas' units.
    pub(super) fn lengths(self) -> Option<&'static str> {
        match self {
            Self::Solid => None,
            Self::Long => Some("70 40"),
            Self::Mixed => Some("90 35 20 35"),
            Self::Short => Some("1 48"),
        }
    }

    /// Returns the width in the canvas' units: dots are as wide as high.
    pub(super) fn width(self) -> u32 {
        if self == Self::Short { 28 } else { 20 }
    }
}

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Disc,
    Square,
    Triangle,
    Diamond,
    Wedge,
    Cross,
}

const SHAPES: [Shape; 5] = [
    Shape::Disc,
    Shape::Square,
    Shape::Triangle,
    Shape::Diamond,
    Shape::Wedge,
];

impl Shape {
    /// Returns its outline around the origin, in the canvas' units.
    pub(super) fn outline(self) -> &'static str {
        match self {
            Self::Disc => "m-38 0a38 38 0 1 0 76 0a38 38 0 1 0-76 0z",
            Self::Square => "m-34-34h68v68h-68z",
            Self::Triangle => "m0-46l44 76h-88z",
            Self::Diamond => "m0-48l48 48l-48 48l-48-48z",
            Self::Wedge => "m0 46l44-76h-88z",
            Self::Cross => {
                "m-46-32l14-14l32 32l32-32l14 14l-32 32l32 32l-14 14l-32-32l-32 32l-14-14l32-32z"
            }
        }
    }
}

/// The look of one series among others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) colour: RGBColor,
    pub(super) shape: Shape,
}

/// Returns the look of the series with this number: 40 differ.
pub(super) fn look(number: usize) -> Look {
    Look {
        colour: SERIES[number % SERIES.len()].light,
        shape: SHAPES[number % SHAPES.len()],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn looks_differ() {
        let looks = (0..40).map(look);
        let looks: HashSet<_> = looks
            .map(|look| (hex(look.colour), look.shape.outline()))
            .collect();
        assert_eq!(looks.len(), 40);
    }

    #[test]
    fn a_style_sheet_can_tell_the_colours_apart() {
        let light: HashSet<_> = paints().map(|paint| hex(paint.light)).collect();
        assert_eq!(light.len(), paints().count());
    }
}
