//! SVG as the drawing library's backend.
//!
//! The library's own backend has no dashes, which print needs, no titles, which a pointer and a
//! screen reader need, and whole pixels only. A unit here is a tenth of a pixel.

use std::convert::Infallible;
use std::fmt::{Display, Write};

use plotters::element::{Drawable, PointCollection};
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{FontStyle, FontTransform, RGBColor};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

use super::look::{Dash, PAPER, Shape, hex};

/// Units per pixel.
pub(super) const UNITS: u32 = 10;

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

/// A writer of the content of an SVG document.
#[derive(Debug)]
pub(super) struct Canvas<'a> {
    out: &'a mut String,
    size: (u32, u32),
}

impl<'a> Canvas<'a> {
    /// Creates a canvas of `size` units.
    pub(super) fn new(out: &'a mut String, size: (u32, u32)) -> Self {
        Self { out, size }
    }

    fn write(&mut self, element: impl Display) {
        write!(self.out, "{element}").expect("a string takes everything");
    }

    fn polyline(
        &mut self,
        points: impl Iterator<Item = BackendCoord>,
        stroke: Stroke,
        title: &str,
    ) {
        let mut list = String::new();
        for (x, y) in points {
            write!(list, "{x},{y} ").expect("a string takes everything");
        }
        let cap = if stroke.dash == Dash::Short {
            "round"
        } else {
            "butt"
        };
        let (colour, width) = (hex(stroke.colour), stroke.dash.width());
        self.write(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\" stroke-linecap=\"{cap}\"",
            list.trim_end()
        ));
        if let Some(lengths) = stroke.dash.lengths() {
            self.write(format_args!(r#" stroke-dasharray="{lengths}""#));
        }
        self.write(format_args!(
            "><title>{}</title></polyline>\n",
            escaped(title)
        ));
    }

    fn mark(&mut self, (x, y): BackendCoord, shape: Shape, colour: RGBColor) {
        // The rim in the paper's colour keeps marks apart that lie on each other.
        self.write(format_args!(
            "<path d=\"M{x} {y}{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"8\"/>\n",
            shape.outline(),
            hex(colour),
            hex(PAPER.light)
        ));
    }
}

/// Escapes text for content and attributes; characters that XML 1.0 does not allow become a
/// replacement character.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            control if control.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            other => out.push(other),
        }
    }
    out
}

fn rgb(colour: BackendColor) -> RGBColor {
    RGBColor(colour.rgb.0, colour.rgb.1, colour.rgb.2)
}

impl DrawingBackend for Canvas<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, colour: BackendColor) -> Drawn {
        self.write(format_args!(
            "<path d=\"M{x} {y}h1v1h-1z\" fill=\"{}\"/>\n",
            hex(rgb(colour))
        ));
        Ok(())
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        let mut data = String::new();
        for (index, (x, y)) in path.into_iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            write!(data, "{command}{x} {y}").expect("a string takes everything");
        }
        self.write(format_args!(
            "<path d=\"{data}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
            hex(rgb(style.color())),
            style.stroke_width()
        ));
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, y): BackendCoord,
    ) -> Drawn {
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let shift = match style.anchor().v_pos {
            VPos::Top => "0.76em",
            VPos::Center => "0.35em",
            VPos::Bottom => "-0.24em",
        };
        let (size, colour) = (style.size(), hex(rgb(style.color())));
        self.write(format_args!(
            "<text x=\"{x}\" y=\"{y}\" dy=\"{shift}\" text-anchor=\"{anchor}\" \
             font-size=\"{size}\" fill=\"{colour}\""
        ));
        if matches!(style.style(), FontStyle::Bold) {
            self.write(r#" font-weight="bold""#);
        }
        if matches!(style.transform(), FontTransform::Rotate270) {
            self.write(format_args!(r#" transform="rotate(-90 {x} {y})""#));
        }
        self.write(format_args!(">{}</text>\n", escaped(text)));
        Ok(())
    }
}

/// The style of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) colour: RGBColor,
    pub(super) dash: Dash,
}

/// A line through points, with its tooltip.
#[derive(Debug)]
pub(super) struct Line<P> {
    pub(super) points: Vec<P>,
    pub(super) stroke: Stroke,
    pub(super) title: String,
}

impl<'a, P: 'a> PointCollection<'a, P> for &'a Line<P> {
    type Point = &'a P;
    type IntoIter = &'a [P];

    fn point_iter(self) -> &'a [P] {
        &self.points
    }
}

impl<P> Drawable<Canvas<'_>> for Line<P> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        points: I,
        canvas: &mut Canvas<'_>,
        _: (u32, u32),
    ) -> Drawn {
        canvas.polyline(points, self.stroke, &self.title);
        Ok(())
    }
}

/// Marks of one shape.
#[derive(Debug)]
pub(super) struct Marks<P> {
    pub(super) points: Vec<P>,
    pub(super) shape: Shape,
    pub(super) colour: RGBColor,
}

impl<'a, P: 'a> PointCollection<'a, P> for &'a Marks<P> {
    type Point = &'a P;
    type IntoIter = &'a [P];

    fn point_iter(self) -> &'a [P] {
        &self.points
    }
}

impl<P> Drawable<Canvas<'_>> for Marks<P> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        points: I,
        canvas: &mut Canvas<'_>,
        _: (u32, u32),
    ) -> Drawn {
        for point in points {
            canvas.mark(point, self.shape, self.colour);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place() {
        assert_eq!(escaped("<a b='\"'>&"), "&lt;a b=&#39;&quot;&#39;&gt;&amp;");
        assert_eq!(
            escaped("\0\u{1b}[1m\u{ffff}ä"),
            "\u{fffd}\u{fffd}[1m\u{fffd}ä"
        );
    }
}
