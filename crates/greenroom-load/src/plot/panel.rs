//! One picture with its title, legend and axes; and several of them as one SVG document.

use std::borrow::Cow;

use plotters::chart::ChartBuilder;
use plotters::drawing::IntoDrawingArea;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, FontStyle, RGBColor, ShapeStyle, TextStyle};

use super::axis::Axis;
use super::canvas::{Canvas, Line, Marks, Stroke, UNITS, escaped};
use super::drawing::{Area, Drawn, FONT, MARGIN, WIDTH, font, units};
use super::legend::Legend;
use super::look::{Dash, FINE_GRID, GRID, INK, PAPER, SOFT, Shape};

const TITLE_HEIGHT: u32 = 27 * UNITS;
const CHART_HEIGHT: u32 = 300 * UNITS;
const GAP: u32 = 20 * UNITS;
const TICK: u32 = 4 * UNITS;
const X_LABELS: u32 = 42 * UNITS;
const Y_LABELS: u32 = 74 * UNITS;
/// The right margin; it keeps the last tick's label inside.
const RIGHT: u32 = 22 * UNITS;
const TITLE_FONT: u32 = 17 * UNITS;

/// A picture.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) title: Cow<'static, str>,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) curves: Vec<Curve>,
    pub(super) legend: Legend,
}

/// A line with its title and style. Values are those of the axes.
#[derive(Debug)]
pub(super) struct Curve {
    /// The tooltip.
    pub(super) title: String,
    /// Stretches without a gap.
    pub(super) stretches: Vec<Vec<(f64, f64)>>,
    pub(super) colour: RGBColor,
    /// The dash; `None` draws marks only.
    pub(super) dash: Option<Dash>,
    pub(super) marks: Vec<(f64, f64)>,
    pub(super) shape: Shape,
}

impl Curve {
    fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.stretches.iter().all(Vec::is_empty)
    }
}

/// Draws panels below each other as an SVG document; `names` are those of the series, in full.
pub(super) fn draw(panels: &[Panel], names: &[&str]) -> String {
    let heights: u32 = panels.iter().map(|panel| panel.height() + GAP).sum();
    let height = heights + 2 * MARGIN - GAP.min(heights);
    let mut inside = String::new();
    let area = Canvas::new(&mut inside, (WIDTH, height)).into_drawing_area();
    draw_all(&area, panels).expect("a string takes everything");
    drop(area);
    document(panels, names, height, &inside)
}

fn draw_all(area: &Area<'_>, panels: &[Panel]) -> Drawn {
    let mut top = MARGIN;
    for panel in panels {
        let size = (WIDTH - 2 * MARGIN, panel.height());
        panel.draw(&area.clone().shrink((MARGIN, top), size))?;
        top += panel.height() + GAP;
    }
    Ok(())
}

fn document(panels: &[Panel], names: &[&str], height: u32, inside: &str) -> String {
    let titles: Vec<_> = panels.iter().map(|panel| &*panel.title).collect();
    let (title, names) = (titles.join("; "), escaped(&names.join("; ")));
    let (wide, high) = (WIDTH / UNITS, height / UNITS);
    let paper = super::look::hex(PAPER.light);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{wide}\" height=\"{high}\" \
         viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">\n\
         <title>{}</title>\n<desc>{names}</desc>\n\
         <path d=\"M0 0h{WIDTH}v{height}h-{WIDTH}z\" fill=\"{paper}\"/>\n{inside}</svg>\n",
        escaped(&title)
    )
}

impl Panel {
    fn height(&self) -> u32 {
        TITLE_HEIGHT + self.legend.height() + CHART_HEIGHT
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let title = font(TITLE_FONT, &INK.light, HPos::Left, VPos::Top);
        area.draw_text(&self.title, &bold(title), (0, 0))?;
        let (_, below) = area.split_vertically(TITLE_HEIGHT);
        let (legend, chart) = below.split_vertically(self.legend.height());
        self.legend.draw(&legend)?;
        self.draw_chart(&chart)
    }

    fn draw_chart(&self, area: &Area<'_>) -> Drawn {
        let mut chart = ChartBuilder::on(area)
            .margin_right(RIGHT)
            .margin_top(TICK * 2)
            .x_label_area_size(X_LABELS)
            .y_label_area_size(Y_LABELS)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        chart
            .configure_mesh()
            .bold_line_style(line(GRID.light, UNITS))
            .light_line_style(line(FINE_GRID.light, UNITS))
            .axis_style(line(SOFT.light, UNITS))
            .label_style(font(FONT, &INK.light, HPos::Center, VPos::Center))
            .axis_desc_style(font(FONT, &INK.light, HPos::Center, VPos::Center))
            .set_all_tick_mark_size(TICK)
            .x_desc(&*self.x.label)
            .y_desc(&*self.y.label)
            .draw()?;
        for element in self.lines() {
            chart.plotting_area().draw(&element)?;
        }
        for element in self.marks() {
            chart.plotting_area().draw(&element)?;
        }
        if self.curves.iter().all(Curve::is_empty) {
            note(&chart.plotting_area().strip_coord_spec(), "no data")?;
        }
        Ok(())
    }

    fn lines(&self) -> impl Iterator<Item = Line<(f64, f64)>> {
        self.curves.iter().flat_map(move |curve| {
            let stretches = curve.stretches.iter().filter(|stretch| stretch.len() > 1);
            curve.dash.into_iter().flat_map(move |dash| {
                stretches.clone().map(move |stretch| Line {
                    points: self.places(stretch),
                    stroke: Stroke {
                        colour: curve.colour,
                        dash,
                    },
                    title: curve.title.clone(),
                })
            })
        })
    }

    /// Returns the marks of all curves; a point alone between gaps gets one too, or it would not be
    /// seen.
    fn marks(&self) -> impl Iterator<Item = Marks<(f64, f64)>> {
        self.curves.iter().map(move |curve| {
            let alone = curve.stretches.iter().filter(|stretch| stretch.len() == 1);
            let points: Vec<_> = alone.flatten().chain(&curve.marks).copied().collect();
            Marks {
                points: self.places(&points),
                shape: curve.shape,
                colour: curve.colour,
            }
        })
    }

    fn places(&self, values: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let place = |(x, y): &(f64, f64)| (self.x.place(*x), self.y.place(*y));
        values.iter().map(place).collect()
    }
}

fn note(area: &Area<'_>, text: &str) -> Drawn {
    let (width, height) = area.dim_in_pixel();
    let style = font(TITLE_FONT, &SOFT.light, HPos::Center, VPos::Center);
    area.draw_text(text, &style, (units(width / 2), units(height / 2)))
}

fn bold(style: TextStyle<'_>) -> TextStyle<'_> {
    let TextStyle { font, color, pos } = style;
    TextStyle {
        font: font.style(FontStyle::Bold),
        color,
        pos,
    }
}

fn line(colour: RGBColor, width: u32) -> ShapeStyle {
    colour.stroke_width(width)
}
